"""Paths of this repository that the documents set in `code`: each leads to a file or a folder that is there.

A path may be shortened from the left (`queue/src/permission.rs`, `place.rs`), and have places for names: `<noun>`, `NNNN`, `*`.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "docs/*.md")
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
# A source file by its name, or a folder by its last character. What else is a path begins with a folder of ours.
SOURCE = re.compile(r"\.(rs|py|ts|tsx|mjs|sh|sql|md|ts\*)$")
WORD = re.compile(r"[\w.*<>|-]+(/[\w.*<>|-]+)*/?")
PLACE = re.compile(r"<[\w|]+>|\bNNNN|\*")


def looks_like_one(text: str, folders: Iterable[str]) -> bool:
    """Absolute paths, and those that begin with a place for a name, are a server's or a browser's."""
    if not WORD.fullmatch(text) or text.startswith("<"):
        return False
    return SOURCE.search(text) is not None or text.endswith("/") or ("/" in text and text.split("/")[0] in folders)


def pattern(path: str) -> re.Pattern[str]:
    """What a whole path ends with."""
    parts = [re.escape(part) for part in PLACE.split(path.rstrip("/"))]
    return re.compile(r"(?:^|/)" + "[^/]+".join(parts) + "$", re.MULTILINE)


def folders_of(path: str) -> list[str]:
    """The folder at the root that it is in; of a crate also the crate and its own folder, such as `tests`."""
    folders = path.split("/")[:-1]
    return folders[:3] if folders[:1] == ["crates"] else folders[:1]


def missing(text: str, known: set[str]) -> Iterator[tuple[int, str]]:
    """Line and path of each that leads nowhere; `known` has files and folders."""
    folders = {part for path in known for part in folders_of(path)}
    listed = "\n".join(sorted(known))
    text = FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    for number, line in enumerate(text.splitlines(), 1):
        for path in CODE.findall(line):
            if looks_like_one(path, folders) and not pattern(path).search(listed):
                yield number, path


def tracked(root: Path) -> set[str]:
    """Files that git knows or would add, and their folders."""
    listed = subprocess.check_output(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, text=True)
    files = {name for name in listed.split("\0") if name and (root / name).is_file()}
    return files | {str(folder) for name in files for folder in Path(name).parents if folder.name}


def problems(root: Path) -> Iterator[str]:
    known = tracked(root)
    for document in sorted(path for glob in DOCUMENTS for path in root.glob(glob)):
        for number, path in missing(document.read_text(encoding="utf-8"), known):
            yield f"{document.relative_to(root)}:{number}: there is no {path}"
