"""Words of docs/glossary.md that are set in `code` in its last column: no identifier of ours has one for a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|r(#*)".*?"\1|"(?:\\.|[^"\\])*"', re.DOTALL)
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


def refused(root: Path) -> set[str]:
    rows = [line.split("|") for line in (root / "docs/glossary.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    words = {word for row in rows if len(row) == 5 for word in re.findall(r"`(\w+)`", row[3])}
    return words | {word.capitalize() for word in words}


def stored(root: Path) -> set[tuple[str, str]]:
    """Names of columns, which stay as they are: (word, file) as the glossary lists them."""
    text = (root / "docs/glossary.md").read_text(encoding="utf-8")
    return {(word, path) for word, path in re.findall(r"^- `(\w+)` in `(\S+)`", text, re.MULTILINE)}


def problems(root: Path) -> Iterator[str]:
    words, columns = refused(root), stored(root)
    for path in sorted(root.glob("crates/**/*.rs")):
        name = path.relative_to(root).as_posix()
        text = NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), path.read_text(encoding="utf-8"))
        for number, line in enumerate(text.splitlines(), 1):
            for word in IDENTIFIER.findall(line):
                if word in words and (word, name) not in columns:
                    yield f"{name}:{number}: {word} is a word that docs/glossary.md replaces by another"
