"""Circles of modules: files of a crate that import each other. A module and its own children are one; so is a crate's root with all."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

IMPORTED = re.compile(r"(?<![\w$])crate::(?:\{([^;]*?)\}\s*;|([a-z_0-9]+))", re.DOTALL)
COMMENT = re.compile(r"//[^\n]*")


def parts(listed: str) -> Iterator[str]:
    """The first word of each part of `{a, b::c, d::{e, f}}`, braces left off."""
    depth, word = 0, ""
    for character in listed + ",":
        depth += (character == "{") - (character == "}")
        if character == "," and depth == 0:
            yield word.strip().split("::")[0]
            word = ""
        else:
            word += character


def imports(source: Path) -> dict[str, set[str]]:
    """What each module directly below a crate's root imports of its neighbours. Tests may import whatever they like."""
    found: dict[str, set[str]] = {}
    for path in sorted(source.rglob("*.rs")):
        inside = path.relative_to(source)
        module = inside.parts[0].removesuffix(".rs")
        if module in ("lib", "main") or "tests" in inside.parts or path.name == "tests.rs":
            continue
        text = COMMENT.sub("", path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests")[0])
        names = found.setdefault(module, set())
        for listed, single in IMPORTED.findall(text):
            names.update(parts(listed) if listed else [single])
    return {module: (names & found.keys()) - {module} for module, names in found.items()}


def circles(edges: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules of which each reaches each other one."""

    def reached(start: str) -> set[str]:
        seen, left = set(), [start]
        while left:
            for name in edges[left.pop()] - seen:
                seen.add(name)
                left.append(name)
        return seen

    reach = {module: reached(module) for module in edges}
    found = {tuple(sorted(other for other in reach[module] if module in reach[other])) for module in edges if module in reach[module]}
    return [list(circle) for circle in sorted(found)]


def problems(root: Path) -> Iterator[str]:
    for source in sorted(root.glob("crates/*/src")):
        for circle in circles(imports(source)):
            yield f"{source.relative_to(root)}: {', '.join(circle)} import each other in a circle"
