"""Reads the counts out of what the test tools print or write."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable
from pathlib import Path

from .result import Result

_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_VITEST_FAILED = re.compile(r"^\s*FAIL\s+(.+? > .+)$")
_VITEST_TOTAL = re.compile(r"^\s*Tests\s+(.*\(\d+\))\s*$")
_PLAYWRIGHT_TOTAL = re.compile(r"^\s+(\d+) (passed|failed|skipped|flaky|interrupted|did not run)\b(?: \([\d.]+\w+\))?\s*$")
_PLAYWRIGHT_FAILURE = re.compile(r"^\s+\d+\) \[[\w-]+\] › (.+?)[\s─]*$")  # its error follows
_PLAYWRIGHT_CASE = re.compile(r"^\s{4}\[[\w-]+\] › (.+?)[\s─]*$")
# What web/e2e/reporter.ts prints of the slowest.
_PLAYWRIGHT_SLOW = re.compile(r"^Slow: ([\d.]+)s\s+(.+)$")
_PLAYWRIGHT_SKIP = re.compile(r"^Skipped: (.+?): (.+)$")


def plain(line: str) -> str:
    """The line without colours."""
    return _ANSI.sub("", line)


def count_vitest(lines: Iterable[str], result: Result, filtered: bool = False) -> None:
    """`Tests  1 failed | 11 passed | 2 skipped | 1 todo (15)`, once for every vitest process.

    Where the run was `filtered` to one test, vitest calls all others skipped.
    """
    failed: dict[str, None] = {}
    for line in map(plain, lines):
        if name := _VITEST_FAILED.match(line):
            failed[name[1]] = None
        if not (total := _VITEST_TOTAL.match(line)):
            continue
        counts = {word: int(number) for number, word in re.findall(r"(\d+) (failed|passed|skipped|todo)", total[1])}
        result.passed += counts.get("passed", 0)
        _fail_each(counts.get("failed", 0), list(failed), "a vitest case, named above", result)
        failed.clear()
        for _ in range(0 if filtered else counts.get("skipped", 0) + counts.get("todo", 0)):
            result.skip("vitest", "a case is marked as skipped or todo")


def count_playwright(lines: Iterable[str], result: Result) -> None:
    """The closing lines of its list reporter, and the skips that web/e2e/skip-reporter.ts names.

    A flaky test has failed once, so it counts as failed; one that did not run counts as skipped.
    """
    totals: dict[str, int] = {}
    cases: dict[str, list[str]] = {}  # the names that follow each total
    errors: dict[str, list[str]] = {}  # what each failed test said
    last, failing = "", ""
    skipped: list[tuple[str, str]] = []
    for line in map(plain, lines):
        if total := _PLAYWRIGHT_TOTAL.match(line):
            last, failing = total[2], ""
            totals[last] = int(total[1])
        elif failure := _PLAYWRIGHT_FAILURE.match(line):
            failing = failure[1]
        elif last and (case := _PLAYWRIGHT_CASE.match(line)):
            cases.setdefault(last, []).append(case[1])
        elif skip := _PLAYWRIGHT_SKIP.match(line):
            skipped.append((skip[1], skip[2]))
        elif slow := _PLAYWRIGHT_SLOW.match(line):
            result.tests.append((float(slow[1]), slow[2]))
        elif failing:
            errors.setdefault(failing, []).extend([line.strip()] if line.strip() else [])
    result.passed += totals.get("passed", 0)
    for word in ("failed", "flaky", "interrupted"):
        _fail_each(totals.get(word, 0), cases.get(word, []), f"a browser case ({word}), named above", result, errors)
    for number in range(totals.get("skipped", 0) + totals.get("did not run", 0)):
        result.skip(*(skipped[number] if number < len(skipped) else ("a browser case", "did not run")))


def count_nextest(junit: Path, skip_log: Path, result: Result) -> None:
    """Counts from nextest's JUnit file. A test that wrote a line to the skip log ended early: it is no pass."""
    skips = [line.partition(": ") for line in skip_log.read_text().splitlines() if line] if skip_log.exists() else []
    skipped_names = {name for name, _, _ in skips}
    if junit.exists():
        for case in ElementTree.parse(junit).iter("testcase"):
            name = case.get("name", "")
            result.tests.append((float(case.get("time", 0)), f"{case.get('classname')} {name}"))
            problems = [*case.iter("failure"), *case.iter("error")]
            if problems:
                result.fail(f"{case.get('classname')} {name}", [line for line in (problems[0].text or "").splitlines() if line.strip()])
            elif name not in skipped_names and name.rpartition("::")[2] not in skipped_names:
                result.passed += 1
    for name, _, reason in dict.fromkeys(skips):
        result.skip(name, reason)


def count_schemathesis(junit: Path, label: str, result: Result) -> None:
    """One case for every operation. A case that schemathesis skipped was filtered out by us beforehand."""
    if not junit.exists():
        return
    for case in ElementTree.parse(junit).iter("testcase"):
        problems = [*case.iter("failure"), *case.iter("error")]
        if problems:
            result.fail(f"{label} {case.get('name')}: {_first_lines(problems[0])}")
        elif case.find("skipped") is None:
            result.passed += 1


def _fail_each(count: int, names: list[str], nameless: str, result: Result, errors: dict[str, list[str]] | None = None) -> None:
    """`count` failures; the tools name each, but the count is what holds."""
    for number in range(count):
        name = names[number] if number < len(names) else nameless
        result.fail(name, (errors or {}).get(name))


def _first_lines(problem: ElementTree.Element) -> str:
    """What was wrong, in one line; the log has the rest."""
    text = (problem.text or problem.get("message") or "").partition("Reproduce with")[0]
    lines = [line.strip() for line in text.splitlines() if line.strip() and "Test Case ID" not in line]
    return " | ".join(lines)[:300]
