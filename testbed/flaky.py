#!/usr/bin/env python3
"""flaky.py [N]     runs the whole suite N times (3), the first time beside a load, and appends a line per run to testbed/flaky.md.

`make flaky N=3`. A suite that is red now and then says nothing when it is red: this is how it is kept from becoming so.
Ends with 1 when any run failed. Python 3.11, no packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

TESTBED = Path(__file__).resolve().parent
TABLE = TESTBED / "flaky.md"
_CLOSING = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")


def commit() -> str:
    """The commit that is tested; a plus where the tree differs from it (this table does not count)."""
    name = subprocess.check_output(["git", "rev-parse", "--short", "HEAD"], cwd=TESTBED, text=True).strip()
    changed = subprocess.check_output(["git", "status", "--porcelain", "--", ":/", f":(exclude,top)testbed/{TABLE.name}"], cwd=TESTBED, text=True)
    return name + ("+" if changed.strip() else "")


def run_once(loaded: bool) -> bool:
    """One run of the suite, shown as it goes; its line goes into the table. True where nothing failed."""
    tested, start = commit(), time.monotonic()
    command = [sys.executable, str(TESTBED / "run.py"), *(["--load"] if loaded else [])]
    passed = failed = skipped = "?"
    names: list[str] = []
    in_failures = False
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stdout
        for line in process.stdout:
            print(line, end="", flush=True)
            in_failures = line.strip() == "Failed:" or (in_failures and line.strip() != "")
            if in_failures and re.match(r"  \w", line):  # what a failed test said is indented further
                names.append(line.strip())
            if closing := _CLOSING.match(line):
                passed, failed, skipped = closing.groups()
    minutes = (time.monotonic() - start) / 60
    day = time.strftime("%Y-%m-%d", time.gmtime())
    row = f"| {day} | {tested} | {'yes' if loaded else 'no'} | {passed} | {failed} | {skipped} | {minutes:.0f} | {'; '.join(names).replace('|', '/')} |\n"
    with TABLE.open("a", encoding="utf-8") as table:
        table.write(row)
    print(f"\n{TABLE.name}: {row}", flush=True)
    return process.returncode == 0


def main(arguments: list[str]) -> int:
    runs = int(arguments[0]) if arguments else 3
    good = [run_once(loaded=number == 0) for number in range(runs)]
    print(f"flaky: {sum(good)} of {runs} runs green")
    return 0 if all(good) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
