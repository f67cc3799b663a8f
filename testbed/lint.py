#!/usr/bin/env python3
"""lint.py     checks that no other linter makes: scripts parse, no path of one machine, no open end without an issue, images and
ports of packaging/ are what they should be, no two schemas of an API share a name, modules import each other in no circle, names are
the glossary's, paths in documents lead somewhere, commit subjects are short.

Files of more than 500 lines are listed as a warning. Looks at what git knows or would add. Python 3.11, no packages.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from suite import circles, doc_paths, glossary

ROOT = Path(__file__).resolve().parents[1]
LONG = 500
LONG_SUBJECT = 72
# The commit that subjects are looked at from.
SUBJECTS_SINCE = "a94aeb5"
# Generated or legal text that nobody reads line by line.
EXEMPT = re.compile(r"(^LICENSE|\.lock|package-lock\.json|^openapi/.*\.json|\.svg)$")
# Written in pieces, so that this file does not find itself.
MACHINE_PATH = re.compile(r"(?<![\w})])/(?:wor" r"k/(?:main|shared|repo)|home/[a-z]\w*/|Users/\w+/|root/\.)")
OPEN_END = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\(#\d+\))")
# The runner would not count it as skipped.
IGNORED = re.compile(r"^\s*#\[ign" r"ore\b")


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
        if IGNORED.search(line):
            yield f"{number}: an ignored test; delete it, or let it say why it cannot run here (testkit::skip)"


def bad_packaging() -> Iterator[str]:
    """What hadolint does not ask: who runs in the image, whether it is looked after, and who reaches what compose publishes."""
    dockerfile = (ROOT / "packaging/Dockerfile").read_text(encoding="utf-8")
    last = dockerfile[dockerfile.rindex("\nFROM "):]
    if not re.search(r"^USER (?!root|0\b)", last, re.MULTILINE):
        yield "packaging/Dockerfile: the image runs as root"
    if "\nHEALTHCHECK " not in last:
        yield "packaging/Dockerfile: the image has no HEALTHCHECK"
    compose = (ROOT / "packaging/compose.yaml").read_text(encoding="utf-8")
    for image in re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE) + re.findall(r"^ +image: (\S+)", compose, re.MULTILINE):
        if ":" not in image or image.endswith(":latest"):
            yield f"packaging: the image {image} has no version"
    for port in re.findall(r"^ +- (\S+:\d+)$", compose, re.MULTILINE):
        if not port.startswith("127.0.0.1:"):
            yield f"packaging/compose.yaml: {port} is published beyond this machine"
    unset = re.findall(r"\$\{\w+\}", compose)
    yield from (f"packaging/compose.yaml: {name} may be empty; write ${{NAME:?why}}" for name in unset)
    known = set(re.findall(r'^    "\w+" "(\w+)"', (ROOT / "crates/tidepool/src/config/setting.rs").read_text(encoding="utf-8"), re.MULTILINE))
    for name in ("Dockerfile", "compose.yaml", "example.env"):
        for setting in set(re.findall(r"\bTIDEPOOL_\w+", (ROOT / "packaging" / name).read_text(encoding="utf-8"))) - known:
            yield f"packaging/{name}: {setting} is no setting"


def shared_schemas() -> Iterator[str]:
    """utoipa keeps one of two schemas of the same name, and describes half of the answers wrongly."""
    defined = re.compile(r"#\[derive\([^\]]*ToSchema[^\]]*\)\](?:\s*#\[[^\n]*\])*\s*pub(?:\([^)]*\))? (?:struct|enum) (\w+)")
    source = ROOT / "crates/api/src"
    for app, other in (("admin", "employee"), ("employee", "admin")):
        places: dict[str, Path] = {}
        for path in sorted(source.rglob("*.rs")):
            if path.is_relative_to(source / other):
                continue
            for name in defined.findall(path.read_text(encoding="utf-8")):
                if name in places:
                    yield f"{path.relative_to(ROOT)}: {places[name].name} has a schema {name} too, in the {app} API"
                places[name] = path


def long_subjects() -> Iterator[str]:
    """Commits since the rule began. A clone without that history is not asked."""
    listed = subprocess.run(["git", "log", "--format=%h %s", f"{SUBJECTS_SINCE}..HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    for line in listed.stdout.splitlines() if listed.returncode == 0 else []:
        commit, subject = line.split(" ", 1)
        if len(subject) > LONG_SUBJECT:
            yield f"commit {commit}: its subject has {len(subject)} characters, more than {LONG_SUBJECT}"


def main() -> int:
    errors = [*bad_packaging(), *shared_schemas(), *circles.problems(ROOT), *glossary.problems(ROOT), *doc_paths.problems(ROOT), *long_subjects()]
    long = []
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
