#!/usr/bin/env python3
"""lint.py     checks that no other linter makes: scripts parse, no path of one machine, no open end without an issue.

Files of more than 500 lines are listed as a warning. Looks at what git knows or would add. Python 3.11, no packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONG = 500
# Generated or legal text that nobody reads line by line.
EXEMPT = re.compile(r"(^LICENSE|\.lock|package-lock\.json|^openapi/.*\.json|\.svg)$")
# Written in pieces, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w})])/(?:wor" r"k/(?:main|shared|repo)|home/[a-z]\w*/|Users/\w+/|root/\.)")
OPEN_END = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")


def files() -> list[Path]:
    """Tracked files and new ones that are not ignored."""
    listed = subprocess.check_output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, text=True)
    return [path for name in listed.split("\0") if name and (path := ROOT / name).is_file() and not EXEMPT.search(name)]


def syntax_errors(path: Path, text: str) -> Iterator[str]:
    if path.suffix == ".py":
        try:
            compile(text, str(path), "exec")
        except SyntaxError as error:
            yield f"{error.lineno}: {error.msg}"
    elif path.suffix == ".sh" or re.match(r"#!.*\b(ba)?sh\b", text):
        checked = subprocess.run(["bash", "-n", path], capture_output=True, text=True, check=False)
        if checked.returncode != 0:
            yield f"0: {checked.stderr.strip()}"


def bad_lines(text: str) -> Iterator[str]:
    for number, line in enumerate(text.splitlines(), 1):
        if found := MACHINE_PATH.search(line):
            yield f"{number}: a path of one machine: {found[0]}"
        if found := OPEN_END.search(line):
            yield f"{number}: {found[0]} without an issue; write {found[0]}(#123)"


def main() -> int:
    errors, long = [], []
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a picture or a font
        name = path.relative_to(ROOT)
        errors += [f"{name}:{problem}" for problem in (*syntax_errors(path, text), *bad_lines(text))]
        if (length := text.count("\n")) > LONG:
            long.append(f"{name}: {length} lines, more than {LONG}")
        if text.startswith("#!") and not path.stat().st_mode & 0o100:
            errors.append(f"{name}:1: has a #! line but no run bit")
    for line in long:
        print(f"warning: {line}")
    for line in errors:
        print(line, file=sys.stderr)
    print(f"repository checks: {len(errors)} errors, {len(long)} warnings")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
