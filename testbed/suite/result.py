"""What a part of the suite counted, and the table at the end."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Result:
    """Counts of one part. `skips` and `failures` are the named ones: a line each for the summary."""

    part: str
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    skips: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def skip(self, name: str, reason: str) -> None:
        self.skipped += 1
        self.skips.append(f"{name}: {reason}")

    def fail(self, what: str) -> None:
        self.failed += 1
        self.failures.append(what)

    def settle(self, exit_code: int, command: str) -> None:
        """A command's exit code and its counts must tell the same story."""
        if exit_code != 0 and self.failed == 0:
            self.fail(f"{command} ended with exit code {exit_code}")
        elif exit_code == 0 and self.passed + self.failed + self.skipped == 0:
            self.fail(f"{command} ran no test")


def exit_status(results: list[Result], ci: bool) -> int:
    """In CI a skip is a failure: there the machine can give everything, so a skip hides something."""
    failed = any(result.failed for result in results)
    skipped = any(result.skipped for result in results)
    nothing_ran = not any(result.passed for result in results)
    return 1 if failed or nothing_ran or (ci and skipped) else 0


def summary(results: list[Result], ci: bool) -> str:
    """The table, the named skips and failures, and the plain closing line that CI reads."""
    lines = ["", f"{'part':<10}{'seconds':>9}{'passed':>9}{'failed':>9}{'skipped':>9}"]
    for result in results:
        lines.append(f"{result.part:<10}{result.seconds:>9.1f}{result.passed:>9}{result.failed:>9}{result.skipped:>9}")
    lines.append(f"{'all':<10}{sum(result.seconds for result in results):>9.1f}")
    for title, kind in (("Notes", "notes"), ("Skipped", "skips"), ("Failed", "failures")):
        named = [f"  {result.part}: {line}" for result in results for line in getattr(result, kind)]
        if named:
            lines += ["", f"{title}:", *named]
    if ci and any(result.skipped for result in results):
        lines += ["", "CI is set: a skip counts as a failure of the run."]
    passed, failed, skipped = (sum(getattr(result, name) for result in results) for name in ("passed", "failed", "skipped"))
    lines += ["", f"{passed} passed, {failed} failed, {skipped} skipped"]
    return "\n".join(lines)
