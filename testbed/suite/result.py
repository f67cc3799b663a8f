"""What a part of the suite counted, and the table at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

_LINES_OF_A_FAILURE = 15


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
    seen: dict[str, list[str]] = field(default_factory=dict)  # what a failed test said, by its line in `failures`
    steps: list[tuple[str, float]] = field(default_factory=list)  # what the part's time went to: a command and its seconds
    tests: list[tuple[float, str]] = field(default_factory=list)  # seconds and name of each test that its tool timed

    def skip(self, name: str, reason: str) -> None:
        self.skipped += 1
        self.skips.append(f"{name}: {reason}")

    def fail(self, what: str, seen: list[str] | None = None) -> None:
        self.failed += 1
        self.failures.append(what)
        if seen:
            self.seen[what] = seen

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


def times(results: list[Result]) -> list[str]:
    """Where the time went: each part with its commands, then the ten slowest tests."""
    lines = ["", "Seconds:"]
    for result in results:
        lines.append(f"{result.seconds:>9.1f}  {result.part}")
        lines += [f"{'':>9}  {seconds:>9.1f}  {name}" for name, seconds in result.steps if seconds >= 1]
    slowest = sorted(((seconds, f"{result.part}: {name}") for result in results for seconds, name in result.tests), reverse=True)
    lines += ["", "The ten slowest tests:", *(f"{seconds:>9.1f}  {name}" for seconds, name in slowest[:10])] if slowest else []
    return lines


def summary(results: list[Result], ci: bool) -> str:
    """The table, the named skips and failures, and the plain closing line that CI reads."""
    lines = ["", f"{'part':<10}{'seconds':>9}{'passed':>9}{'failed':>9}{'skipped':>9}"]
    for result in results:
        lines.append(f"{result.part:<10}{result.seconds:>9.1f}{result.passed:>9}{result.failed:>9}{result.skipped:>9}")
    lines.append(f"{'all':<10}{sum(result.seconds for result in results):>9.1f}")
    lines += times(results)
    for title, kind in (("Notes", "notes"), ("Skipped", "skips"), ("Failed", "failures")):
        named = [(result, line) for result in results for line in getattr(result, kind)]
        lines += ["", f"{title}:"] if named else []
        for result, line in named:
            lines.append(f"  {result.part}: {line}")
            if kind == "failures":  # CI keeps the end of the output: the reason must stand there, not only the name
                lines += [f"      {seen}" for seen in result.seen.get(line, [])[:_LINES_OF_A_FAILURE]]
    if ci and any(result.skipped for result in results):
        lines += ["", "CI is set: a skip counts as a failure of the run."]
    passed, failed, skipped = (sum(getattr(result, name) for result in results) for name in ("passed", "failed", "skipped"))
    lines += ["", f"{passed} passed, {failed} failed, {skipped} skipped"]
    return "\n".join(lines)
