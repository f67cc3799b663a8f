"""`make test TEST=name`: which part has the test."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from .machine import ROOT


def part_of(name: str) -> str | None:
    """The part whose sources have this name: a title in the web apps' tests, or a function or module of the Rust tests."""
    web = ROOT / "web"
    if _stands_in(name, web.glob("e2e/*.spec.ts")):
        return "browser"
    if _stands_in(name, (path for path in web.glob("*/src/**/*.test.ts*"))):
        return "web"
    last = re.escape(name.rpartition("::")[2])
    rust = [path for path in ROOT.glob("crates/**/*.rs") if re.search(rf"\b(?:fn|mod) \w*{last}", path.read_text(encoding="utf-8"))]
    if not rust:
        return None
    return "real" if all("real" in path.parts for path in rust) else "rust"


def _stands_in(name: str, files: Iterable[Path]) -> bool:
    return any(name in path.read_text(encoding="utf-8") for path in files)
