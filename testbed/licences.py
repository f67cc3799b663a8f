#!/usr/bin/env python3
"""licences.py     every dependency of the binary and of the web apps has a licence that we can live with, and comes from its registry.

Reads what `cargo metadata` and web/package-lock.json say; asks nobody. The lists are those of deny.toml, which cargo-deny reads:
this is its quick half, for `make lint`. Python 3.11, no packages.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"
TOKEN = re.compile(r"\(|\)|/|[A-Za-z0-9.+-]+")


def allowed(expression: str, permits: set[str]) -> bool:
    """Whether an SPDX expression can be met by permitted licences. `/` is what older crates write for OR."""
    tokens = TOKEN.findall(expression)

    def alternatives() -> bool:
        met = together()
        while tokens and tokens[0] in ("OR", "/"):
            tokens.pop(0)
            met = together() or met
        return met

    def together() -> bool:
        met = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            met = one() and met
        return met

    def one() -> bool:
        token = tokens.pop(0)
        if token == "(":
            met = alternatives()
            tokens.pop(0)
            return met
        if tokens and tokens[0] == "WITH":
            tokens.pop(0)
            token = f"{token} WITH {tokens.pop(0)}"
        return token in permits

    return bool(tokens) and alternatives() and not tokens


def crates(permits: set[str], exceptions: dict[str, set[str]]) -> Iterator[str]:
    # Only what this platform builds: `--offline` knows nothing of crates for others, which no build here has fetched.
    host = subprocess.run(["rustc", "--print", "host-tuple"], capture_output=True, text=True, check=True).stdout.strip()
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host]
    described = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if described.returncode != 0:
        yield f"cargo metadata: {described.stderr.strip().splitlines()[-1]}"
        return
    for package in json.loads(described.stdout)["packages"]:
        name, licence, source = package["name"], package["license"] or "", package["source"]
        if not allowed(licence, permits | exceptions.get(name, set())):
            yield f"{name} {package['version']}: licence {licence or 'not told'}"
        if source not in (None, CRATES_IO):
            yield f"{name} {package['version']}: comes from {source}"


def npm_packages(permits: set[str]) -> Iterator[str]:
    """Those that end up in the apps; what only builds and tests them is not given on."""
    locked = json.loads((ROOT / "web/package-lock.json").read_text(encoding="utf-8"))
    for path, package in locked["packages"].items():
        if path.startswith("node_modules/") and not package.get("dev") and not package.get("link"):
            if not allowed(package.get("license", ""), permits):
                yield f"{path.removeprefix('node_modules/')}: licence {package.get('license') or 'not told'}"


def main() -> int:
    lists = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["licenses"]
    permits = set(lists["allow"])
    exceptions = {entry["crate"]: set(entry["allow"]) for entry in lists.get("exceptions", [])}
    wrong = [*crates(permits, exceptions), *npm_packages(permits)]
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"licences: {len(wrong)} not allowed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
