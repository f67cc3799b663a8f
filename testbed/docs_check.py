#!/usr/bin/env python3
"""docs_check.py BINARY [PAGE…]     proves docs/*.md: runs their blocks, and looks up what they name.

A fenced block in a shell's language says what becomes of it, behind the language:

  ```sh test               runs; must end well. The blocks of a page are one shell, in an empty folder, with BINARY as `tidepool`
  ```sh not-run: reason    does not run, and why
  ```text expect           what the block before it must have printed; `…` stands for anything

A page whose blocks talk to something that its reader has already, such as a platform with servers, has a script for that:
testbed/docs/<page>.sh is sourced before the first block, in the same shell. There `tidepool-lab` is the one beside BINARY, so a
script may start the demo. TMPDIR is the page's own. What a page leaves running is ended with it.

Each page runs in a network namespace of its own with nothing but loopback, so the usual ports are free and nobody outside is
reached. Besides: links lead somewhere, TIDEPOOL_ settings exist, troubleshooting.md has every error code that the API documents
name, and the tests that security.md names exist. Exit code 69: this machine cannot give a network namespace. Python 3.11, no packages.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from suite import processes
from suite.machine import ROOT, TESTBED

DOCS = ROOT / "docs"
SCRIPTS = TESTBED / "docs"
UNAVAILABLE = 69
PAGE_SECONDS = 180.0
SHELLS = {"sh", "bash", "shell", "console"}
FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)")
SETTING = re.compile(r"\bTIDEPOOL_[A-Z0-9_]+\b(?!…)")
# Written by tests alone, read before the settings are, or an example of one that there is not.
NO_SETTING = re.compile(r"TIDEPOOL_(TEST_.*|CONFIG|COLOUR)")
CODE = re.compile(r"^\| (?:\d{3}|—) \| (\d{4}) \|", re.MULTILINE)
# In security.md tests stand as `crate::module::name` or `spec.ts: title`.
RUST_TEST = re.compile(r"`((?:[a-z_0-9]+::)+[a-z_0-9]+)`")
WEB_TEST = re.compile(r"`([a-z-]+\.spec\.ts): ([^`]+)`")


@dataclass
class Block:
    line: int
    text: str
    expected: str | None = None


@dataclass
class Page:
    path: Path
    blocks: list[Block]
    left_out: list[tuple[int, str]]
    problems: list[str]

    @property
    def script(self) -> Path | None:
        """What is sourced before its blocks."""
        path = SCRIPTS / f"{self.path.stem}.sh"
        return path if path.exists() else None


def read(path: Path) -> Page:
    text = path.read_text(encoding="utf-8")
    page = Page(path, [], [], [])
    for fence in FENCE.finditer(text):
        line = text.count("\n", 0, fence.start()) + 1
        language, _, fate = fence["info"].strip().partition(" ")
        if "`" in fate:
            page.problems.append(f"{line}: a backtick behind the language ends the block before it began")
        elif fate == "test":
            page.blocks.append(Block(line, fence["text"]))
        elif fate.startswith("not-run: "):
            page.left_out.append((line, fate.removeprefix("not-run: ")))
        elif fate == "expect" and page.blocks:
            page.blocks[-1].expected = fence["text"]
        elif language in SHELLS or fate:
            page.problems.append(f"{line}: a block that says neither `test` nor `not-run: reason`")
    return page


# ── what the pages name ──

def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(path: Path) -> Iterator[str]:
    for target, anchor in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        there = (path.parent / target).resolve() if target else path
        if not there.exists():
            yield f"a link to {target}, which is not there"
        elif anchor and there.suffix == ".md" and anchor not in anchors(there):
            yield f"a link to {target}#{anchor}, which has no such heading"


def unknown_settings(path: Path, known: set[str]) -> Iterator[str]:
    for name in sorted(set(SETTING.findall(path.read_text(encoding="utf-8"))) - known):
        if not NO_SETTING.fullmatch(name):
            yield f"names the setting {name}, which there is not"


def missing_codes(path: Path) -> Iterator[str]:
    source = (ROOT / "crates/api/src/error.rs").read_text(encoding="utf-8")
    known = set(re.findall(r'StatusCode::\w+, "(\d{4})"', source))
    told = set(CODE.findall(path.read_text(encoding="utf-8")))
    yield from (f"says nothing of code {code}" for code in sorted(known - told))
    yield from (f"tells of code {code}, which there is not" for code in sorted(told - known))


def missing_tests(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    sources = {file: file.read_text(encoding="utf-8") for file in (ROOT / "crates").rglob("*.rs")}
    for name in RUST_TEST.findall(text):
        *modules, function = name.split("::")
        at = [source for file, source in sources.items() if modules[-1] in (file.stem, *file.parts)]
        if not any(re.search(rf"\bfn {re.escape(function)}\b", source) for source in at):
            yield f"names the test {name}, which there is not"
    for spec, title in WEB_TEST.findall(text):
        file = ROOT / "web/e2e" / spec
        if not file.exists() or title not in file.read_text(encoding="utf-8"):
            yield f"names the test {spec}: {title}, which there is not"
    items = [int(number) for number in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)]
    if items != list(range(1, len(items) + 1)):
        yield f"has items {items}, which do not count up from 1"


def claims(path: Path, known: set[str]) -> Iterator[str]:
    yield from dead_links(path)
    yield from unknown_settings(path, known)
    if path.name == "troubleshooting.md":
        yield from missing_codes(path)
    if path.name == "security.md":
        yield from missing_tests(path)


# ── running them ──

def shell_of(page: Page, outputs: Path) -> str:
    """One shell for the page: variables and servers of its script and of a block are there in the next."""
    lines = ["set -eu -o pipefail", "ip link set lo up", f"trap '[ $? = 0 ] || echo \"$at\" >{outputs}/failed' EXIT"]
    parts = [(page.script.name, f". {shlex.quote(str(page.script))}")] if page.script else []
    for at, text in [*parts, *((str(block.line), block.text) for block in page.blocks)]:
        lines += [f"at={at}", "{", text, f"}} >{outputs}/{at}.out 2>{outputs}/{at}.err </dev/null"]
    return "\n".join(lines) + "\n"


def matches(expected: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in expected.strip().split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None


def run(page: Page, binary: Path, unshare: list[str], folder: Path) -> Iterator[str]:
    """What went wrong, a line each."""
    work, outputs, tools, temporary = folder / "work", folder / "out", folder / "bin", folder / "tmp"
    for new in (work, outputs, tools, temporary):
        new.mkdir(parents=True)
    lab = binary.with_name("tidepool-lab")
    (tools / "tidepool").symlink_to(binary)
    (tools / "tidepool-lab").symlink_to(lab)
    if page.script and not lab.exists():
        yield f"its script {page.script.name} needs {lab}, which is not there"
        return
    (folder / "page.sh").write_text(shell_of(page, outputs))
    env = {name: value for name, value in os.environ.items() if not name.startswith("TIDEPOOL_")}
    env |= {"PATH": f"{tools}:{env['PATH']}", "HOME": str(work), "TMPDIR": str(temporary), "TZ": "UTC", "no_proxy": "*"}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*unshare, "bash", folder / "page.sh"], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, preexec_fn=processes.die_with_parent,
        )
        try:
            code = process.wait(PAGE_SECONDS)
        except subprocess.TimeoutExpired:
            code = 124
        finally:
            processes.end_group(process)
    if code != 0:
        at = (outputs / "failed").read_text().strip() if (outputs / "failed").exists() else "?"
        told = [(outputs / f"{at}.{kind}") for kind in ("out", "err")]
        shown = " / ".join(file.read_text(errors="replace").strip()[-300:] for file in told if file.exists())
        yield f"{at}: ended with {code}: {shown or (folder / 'log').read_text(errors='replace').strip()[-300:]}"
        return
    for block in page.blocks:
        printed = (outputs / f"{block.line}.out").read_text(errors="replace")
        if block.expected is not None and not matches(block.expected, printed):
            yield f"{block.line}: printed something else than the page says: {printed.strip()[-400:]}"


def namespace() -> list[str] | None:
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    tried = subprocess.run([*unshare, "ip", "link", "set", "lo", "up"], capture_output=True, check=False)
    return unshare if tried.returncode == 0 else None


def main(arguments: list[str]) -> int:
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    binary = Path(arguments[0]).resolve()
    if (unshare := namespace()) is None:
        print("docs: no network namespace to be had")
        return UNAVAILABLE
    processes.stop_on_signals()
    known = set(re.findall(r"^\| ([A-Z_0-9]+) \|", subprocess.check_output([binary, "settings"], text=True), re.MULTILINE))
    chosen = [DOCS / f"{Path(name).stem}.md" for name in arguments[1:]] or sorted(DOCS.glob("*.md"))
    passed, failed = 0, 0
    for path in chosen:
        page = read(path)
        wrong = [*page.problems, *claims(path, known)]
        if page.blocks and not page.problems:
            with tempfile.TemporaryDirectory(prefix="tidepool-docs-") as folder:
                wrong += run(page, binary, unshare, Path(folder))
        for line, reason in page.left_out:
            print(f"not run: {path.name}:{line} {reason}")
        for line in wrong:
            print(f"FAIL {path.name}: {line}")
        passed, failed = passed + (not wrong) + (len(page.blocks) if not wrong else 0), failed + len(wrong)
        print(f"{path.name}: {len(page.blocks)} blocks {'failed' if wrong else 'ran'}", flush=True)
    print(f"docs: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
