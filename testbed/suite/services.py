"""The servers that the whole run shares: private databases, a real OpenID provider, and hosts with systemd and sshd."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path

from .machine import CACHE, TESTBED, Run, scratch
from .processes import die_with_parent, end_group, wait_until

_PORT_TRIES = 5
# h1 and h3 for tests that leave them as they were, h2 for those that crash it, h4 with the real OpenClaw.
_HOSTS = 4


class ServiceBroke(Exception):
    """A server of ours did not come up; the message says why."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _start(run: Run, stack: ExitStack, command: list[str | Path], log: Path, stop: signal.Signals) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, env=run.env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=die_with_parent,
        )
    run.pids.add(process.pid)
    stack.callback(run.pids.discard, process.pid)
    stack.callback(end_group, process, stop)
    return process


def start_postgres(run: Run, stack: ExitStack) -> str:
    """Returns its URL. Tests create databases of their own in it."""
    return _start_database(run, stack, "postgres", "pg", b"ready to accept connections", signal.SIGINT)


def start_mariadb(run: Run, stack: ExitStack) -> str:
    """The same. The product keeps nothing in it, but gateways whose log it reads do."""
    return _start_database(run, stack, "mariadb", "maria", b"ready for connections", signal.SIGTERM)


def _start_database(run: Run, stack: ExitStack, name: str, command: str, ready: bytes, stop: signal.Signals) -> str:
    # Not in the cache folder: the database's user must reach it, and root's home is closed to others.
    for dead in scratch().glob(f"tidepool-{name}-*-*"):  # of a runner that was killed
        if not Path("/proc", dead.name.split("-")[2]).exists():
            shutil.rmtree(dead, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"tidepool-{name}-{os.getpid()}-", dir=scratch()))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    log = run.log(name)
    for _ in range(_PORT_TRIES):  # another process may take the port between our look and the database's start
        port = free_port()
        process = _start(run, stack, [TESTBED / "db.sh", f"{command}-run", folder, str(port)], log, stop)
        if wait_until(lambda: ready in log.read_bytes(), process, 60):
            return subprocess.check_output([TESTBED / "db.sh", f"{command}-url", str(port)], text=True).strip()
    raise ServiceBroke(f"{name} did not start: {_tail(log)}")


def start_idp(run: Run, stack: ExitStack) -> str:
    """Returns its issuer URL."""
    log = run.log("idp")
    process = _start(run, stack, [TESTBED / "idp.sh"], log, signal.SIGTERM)
    issuer = re.compile(r"^idp ready (\S+)$", re.MULTILINE)
    if wait_until(lambda: bool(issuer.search(log.read_text())), process, 60):
        return issuer.findall(log.read_text())[-1]
    raise ServiceBroke(f"the OpenID provider did not start: {_tail(log)}")


def start_hosts(run: Run, stack: ExitStack, chromium: bool = False) -> str:
    """Returns their folder; its hosts.json lists them. With `chromium`, the one that has the real OpenClaw has a browser, too."""
    # Their disks are overlays: the folder must not be on one, and a cache folder may be.
    folder = Path(tempfile.mkdtemp(prefix=f"tidepool-hosts-{os.getpid()}-", dir=scratch()))
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    log = run.log("hosts")
    command: list[str | Path] = [TESTBED / "hosts.sh", "run", str(_HOSTS), folder]
    real = [str(found.parent) for found in sorted(CACHE.glob("openclaw*/installed.txt"))]  # what one of them has
    command = ["env", f"HOSTS_OPENCLAW={':'.join(real)}", f"HOSTS_CHROMIUM={'h4' if chromium else ''}", *command]
    process = _start(run, stack, command, log, signal.SIGTERM)
    if wait_until(lambda: (folder / "hosts.json").exists(), process, 120):
        return str(folder)
    raise ServiceBroke(f"the hosts did not start: {_tail(log)}")


def _tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no output"
