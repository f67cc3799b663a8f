"""The parts of `make test`, in their order. Each fills a Result; later parts run whatever became of earlier ones."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path

from . import counting
from .machine import CACHE, ROOT, TESTBED, InstallationBroke, Run, latest_folder
from .processes import run_shown
from .result import Result
from .services import ServiceBroke, start_hosts, start_idp, start_mariadb, start_postgres

WEB = ROOT / "web"

# What testbed/install.sh must have put in place for each part; `setup` installs what the chosen parts need.
NEEDS: dict[str, tuple[str, ...]] = {
    "setup": (),
    "web": ("web",),
    "rust": ("nextest", "postgres", "mariadb", "idp", "openclaw", "hosts", "faketime"),
    "api": ("netns", "schemathesis"),
    "docs": ("docs",),
    "sdk": ("sdk",),
    "scaleout": ("netns", "postgres", "nginx"),
    "torture": ("netns", "postgres", "faketime"),
    "browser": ("web", "chromium", "idp", "nginx", "caddy", "hosts"),
    "secrets": (),
    "real": ("nextest", "postgres", "web", "chromium", "openclaw", "older", "former", "hosts", "litellm"),
    "unit": ("nextest", "web"),
}

_NEXTEST = ["cargo", "nextest", "run", "--workspace", "--locked"]
# Many tests wait for something: one more than there are cores keeps them busy.
_THREADS = ["--test-threads", str((os.cpu_count() or 1) + 1)]
_ALONE = "test(/(^|::)alone_/)"  # for nextest: the Rust tests whose subject is speed
_UNAVAILABLE = 69  # a script of ours: this machine cannot give what it takes

# What `make test` leaves out: too slow or too large to install, or a part of what it has.
ONLY_WHEN_NAMED = {"real", "unit"}


def setup(run: Run, chosen: list[str], stack: ExitStack, result: Result) -> None:
    """Installs what is missing, tests the runner itself, starts the servers that the other parts use."""
    everything = chosen == ["setup"]
    usual = NEEDS.keys() - ONLY_WHEN_NAMED
    needed = dict.fromkeys(part for name, parts in NEEDS.items() if name in chosen or (everything and name in usual) for part in parts)
    for part in needed:
        try:
            if reason := run.install(part):
                result.skip(part, reason)
            print(f"{part}: {reason or 'there'}", flush=True)
        except InstallationBroke as broke:
            result.fail(str(broke))
    code, lines = run_shown(
        [sys.executable, "-m", "unittest", "discover", "-b", "-t", str(TESTBED), "-s", str(TESTBED / "suite")], run.log("setup"), run.env)
    own_tests = int(next((match[1] for line in lines if (match := re.match(r"Ran (\d+) test", line))), 0))
    if code == 0:
        result.passed += own_tests
    result.settle(code, "the runner's own tests")
    for variable, part, start in (
        ("TIDEPOOL_TEST_PG_URL", "postgres", start_postgres),
        ("TIDEPOOL_TEST_MARIADB_URL", "mariadb", start_mariadb),
        ("TIDEPOOL_TEST_IDP_URL", "idp", start_idp),
        ("TIDEPOOL_TEST_HOSTS", "hosts", partial(start_hosts, chromium="chromium" in needed and "real" in chosen and "chromium" not in run.missing)),
    ):
        if part not in needed or part in run.missing:
            continue
        try:
            run.env[variable] = start(run, stack)
            print(f"{part}: {run.env[variable]}", flush=True)
        except ServiceBroke as broke:
            result.fail(str(broke))
    print(f"logs: {run.folder}", flush=True)


def web(run: Run, result: Result) -> None:
    """Both web apps are built, then their unit tests run."""
    if not _web_built(run, result):
        return
    _vitest(run, result)


def _vitest(run: Run, result: Result) -> None:
    only = ["--", "--testNamePattern", run.only] if run.only else []
    code, lines = _step(run, result, ["npm", "run", "test", *only], WEB, timeout=600)
    counting.count_vitest(lines, result, filtered=bool(run.only))
    result.settle(code, "npm run test")


def rust(run: Run, result: Result) -> None:
    """Every Rust test of the workspace, with the real databases, the real OpenID provider and real hosts."""
    _nextest(run, result, "default", run.env, _THREADS)


def unit(run: Run, result: Result) -> None:
    """What needs no root, no server and no browser: the web apps' unit tests, and the Rust tests that stand on SQLite alone."""
    _vitest(run, result)
    _nextest(run, result, "unit", run.env)


def _nextest(run: Run, result: Result, profile: str, env: dict[str, str], options: Sequence[str] = ()) -> None:
    """Builds every Rust test, then runs those of a profile of .config/nextest.toml."""
    # nextest keeps its reports in the clone, wherever cargo builds (`store.dir` of its configuration).
    junit = ROOT / "target" / "nextest" / profile / "junit.xml"
    command = [*_NEXTEST, "--profile", profile, *options]
    only = ["-E", f"test({run.only})"] if run.only else []
    if not _built(run, result):
        return
    # Tests whose subject is speed come last, with nothing beside them.
    selections = [(f"test({run.only})", True)] if run.only else [(f"not {_ALONE}", False), (_ALONE, True)]
    notes = run.folder / f"notes-{profile}"
    notes.mkdir(exist_ok=True)
    env = env | {"TIDEPOOL_TEST_NOTES": str(notes)}
    for selection, quiet in selections:
        junit.unlink(missing_ok=True)
        with run.quiet() if quiet else nullcontext():
            code, _ = _step(run, result, [*command, "--no-tests", "pass", "-E", selection], env=env)
        counting.count_nextest(junit, run.skip_log, result)
        run.skip_log.unlink(missing_ok=True)
        result.settle(code, "cargo nextest")
    result.notes += [line for file in sorted(notes.iterdir()) for line in file.read_text(encoding="utf-8").splitlines()]


def real(run: Run, result: Result) -> None:
    """The tests that need the real OpenClaw, the real LiteLLM, or the binary of an older release."""
    if not run.install_or_skip(result, "postgres", "chromium", "openclaw", "older", "former", "hosts", "litellm"):
        return
    if "web" not in run.done and not _web_built(run, result):
        return
    given = {"OPENCLAW": "openclaw", "FORMER": "former/457b73a/tidepool", "LITELLM": "litellm"}
    _nextest(run, result, "real", run.env | {f"TIDEPOOL_TEST_{name}": str(CACHE / place) for name, place in given.items()})


def api(run: Run, result: Result) -> None:
    """Both APIs against their OpenAPI documents, by schemathesis, in a network namespace with nothing but loopback."""
    if not run.install_or_skip(result, "netns", "schemathesis"):
        return
    # Only root may make a network namespace by itself; others make it inside a user namespace, where that is allowed.
    unshare = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--net"]
    if (denied := subprocess.run([*unshare, "true"], capture_output=True, text=True, check=False)).returncode != 0:
        return result.skip("the whole part needs a network namespace", denied.stderr.strip() or "not allowed here")
    if not _built(run, result):
        return None
    folder = run.folder / "api"
    folder.mkdir()
    inside = [*unshare, sys.executable, "-m", "suite.fuzz", str(run.binary), str(folder)]
    code, _ = _step(run, result, inside, folder, run.env | {"PYTHONPATH": str(TESTBED)}, timeout=900)
    for line in (folder / "notes.txt").read_text().splitlines() if (folder / "notes.txt").exists() else []:
        result.notes.append(line)
    for line in (folder / "failures.txt").read_text().splitlines() if (folder / "failures.txt").exists() else []:
        result.fail(line)
    for side in ("employee", "admin"):
        counting.count_schemathesis(folder / f"{side}.xml", side, result)
    return result.settle(code, "schemathesis")


def docs(run: Run, result: Result) -> None:
    """The blocks of docs/ that say that they are tests, some of them against the demo, and what those pages name."""
    if not run.install_or_skip(result, "docs") or not _built(run, result):
        return
    code, lines = _step(run, result, [sys.executable, str(TESTBED / "docs_check.py"), str(run.binary)], timeout=600)
    if code == _UNAVAILABLE:
        return result.skip("the whole part needs a network namespace", "not allowed here")
    if told := next((match for line in lines if (match := re.match(r"docs: (\d+) passed, \d+ failed$", line))), None):
        result.passed += int(told[1])
    for line in lines:
        if line.startswith("FAIL "):
            result.fail(line.removeprefix("FAIL "))
        elif line.startswith("not run: "):
            result.notes.append(line)
    return result.settle(code, "docs_check.py")


def sdk(run: Run, result: Result) -> None:
    """The official SDKs against the embedded gateway, with a recording upstream."""
    _against_binary(run, result, ["sdk_check.py"])


def scaleout(run: Run, result: Result) -> None:
    """Three replicas on one PostgreSQL behind nginx, restarted one after the other under load."""
    _against_binary(run, result, ["scaleout.py"])


def torture(run: Run, result: Result) -> None:
    """The short form of `make torture`: a round of each kind of fault, then whether anything is lost."""
    _against_binary(run, result, ["torture.py", "--short"])


def _against_binary(run: Run, result: Result, command: list[str]) -> None:
    """A script of the testbed that takes the binary, and prints a line that begins with ok, FAIL or `left out:` for all it did."""
    name = result.part
    if not run.install_or_skip(result, *NEEDS[name]) or not _built(run, result):
        return
    code, lines = _step(run, result, [sys.executable, str(TESTBED / command[0]), str(run.binary), *command[1:]], timeout=900)
    if code == _UNAVAILABLE:
        return result.skip("the whole part needs a network namespace", lines[-1] if lines else "not allowed here")
    result.passed += sum(line.startswith("ok ") for line in lines)
    for line in lines:
        if line.startswith("FAIL "):
            result.fail(line.removeprefix("FAIL "))
        elif line.startswith("left out: "):
            result.skip(name, line.removeprefix("left out: "))
    return result.settle(code, command[0])


def browser(run: Run, result: Result) -> None:
    """The end-to-end tests, in Debian's Chromium against the real binary."""
    if not run.install_or_skip(result, "chromium"):
        return
    if "web" not in run.done and not _web_built(run, result):
        return
    if not _built(run, result):
        return
    assistant = run.binary.parent / "examples" / "assistant"
    env = run.env | {
        "TIDEPOOL_TEST_BIN": str(run.binary),
        "TIDEPOOL_TEST_ASSISTANT": str(assistant),
        "TIDEPOOL_TEST_CHROMIUM": "/usr/bin/chromium",
    }
    # Tests whose subject is speed are a project of their own, and come last, with nothing beside them.
    selections = [(["--grep", run.only], True)] if run.only else [(["--project", "chromium"], False), (["--project", "alone"], True)]
    for selection, quiet in selections:
        with run.quiet() if quiet else nullcontext():
            code, lines = _step(run, result, ["npm", "run", "e2e", "--", "--no-deps", *selection], WEB, env, timeout=1800)
        counting.count_playwright(lines, result)
        result.settle(code, "npm run e2e")
    if result.failed and (kept := WEB / "test-results").exists():
        shutil.copytree(kept, run.failed / "browser", dirs_exist_ok=True)


def secrets(run: Run, result: Result) -> None:
    """No secret that a test used may stand in anything that the suite or its servers wrote."""
    folder = run.folder if run.done - {"setup"} else latest_folder() or run.folder
    known = folder / "trace" / "secrets.txt"
    if not known.exists():
        if "rust" in run.done:
            result.fail("the Rust tests recorded no secret in $TIDEPOOL_TEST_TRACE_DIR/secrets.txt, so nothing was searched for")
        else:
            result.notes.append("no secrets were recorded: nothing to search for")
        return
    hits, searched = search_secrets(folder, known)
    for hit in hits:
        result.fail(hit)
    if not hits:
        result.passed += 1
    print(f"{searched} files searched, {len(hits)} hits", flush=True)


def search_secrets(folder: Path, known: Path) -> tuple[list[str], int]:
    """Places where a secret stands, as file:line and the secret's number (never the secret), and how many files were read."""
    wanted = {line.encode(): number for number, line in enumerate(known.read_text().splitlines(), 1) if line}
    hits = [f"secret number {number} is too short to be searched for" for secret, number in wanted.items() if len(secret) < 6]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path != known and path.relative_to(folder).parts[0] != "failed"]
    if wanted and not hits:
        # grep looks for all of them at once, in a second; a pattern of hundreds of words takes Python minutes.
        # What it prints holds the secrets: it stays in this process.
        command = ["grep", "-raFnoZ", f"--exclude={known.name}", "--exclude-dir=failed", "-f", "-", "."]
        found = subprocess.run(command, input=b"\n".join(wanted), cwd=folder, capture_output=True, timeout=600, check=False)
        if found.returncode > 1:
            raise OSError(f"grep ended with exit code {found.returncode}")
        for line in found.stdout.splitlines():
            path, _, rest = line.partition(b"\0")
            number, _, secret = rest.partition(b":")
            hits.append(f"{path.decode().removeprefix('./')}:{int(number)} holds secret number {wanted[secret]} of secrets.txt")
    return hits, len(files)


def _step(
    run: Run, result: Result, command: list[str], cwd: Path = ROOT, env: dict[str, str] | None = None, timeout: float = 3600,
) -> tuple[int, list[str]]:
    """Runs a command of a part; its output goes to the part's log, its time into the table at the end."""
    start = time.monotonic()
    code, lines = run_shown(command, run.log(result.part), env or run.env, cwd, timeout)
    name = " ".join(word.removeprefix(f"{ROOT}/") for word in command if word != sys.executable)
    result.steps.append((name, time.monotonic() - start))
    return code, lines


def _web_built(run: Run, result: Result) -> bool:
    code, _ = _step(run, result, ["npm", "run", "build"], WEB, timeout=600)
    if code != 0:
        result.fail(f"npm run build ended with exit code {code}")
    return code == 0


def _built(run: Run, result: Result) -> bool:
    """Every Rust test with both binaries and the example that they and the other parts start: one build, whatever part asks first.

    A build of the binaries alone would be another one, since its dependencies have other features then.
    """
    if not run.built:
        code, _ = _step(run, result, [*_NEXTEST, "--no-run"])
        run.built = code == 0
        if code != 0:
            result.fail(f"the Rust code does not build: exit code {code}")
    return run.built


PARTS: dict[str, Callable[[Run, Result], None]] = {
    "web": web, "rust": rust, "api": api, "docs": docs, "sdk": sdk, "scaleout": scaleout, "torture": torture, "browser": browser, "secrets": secrets,
    "real": real, "unit": unit,
}
