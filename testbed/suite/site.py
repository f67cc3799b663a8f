"""Replicas of the binary on one database, in a network namespace with nothing but its own addresses: for scaleout.py and torture.py."""

from __future__ import annotations

import http.client
import json
import os
import random
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .machine import TESTBED
from .processes import die_with_parent, end_group, wait_until

UNAVAILABLE = 69
# An address of this machine that is not loopback: assistants are never reached at that.
OUTSIDE = "10.99.0.1"
PG_PORT = 5432
ADMIN_EMAIL = "root@example.test"
_INSIDE = "TIDEPOOL_TESTBED_INSIDE"


def enter_namespace() -> None:
    """Runs this program again in a network namespace of its own, or ends it with 69 where there is none to be had."""
    if os.environ.get(_INSIDE):
        subprocess.run(["sh", "-c", f"ip link set lo up && ip addr add {OUTSIDE}/32 dev lo"], check=True)
        return
    if os.geteuid() != 0 or subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], capture_output=True, check=False).returncode:
        print("no network namespace to be had: this needs root")
        sys.exit(UNAVAILABLE)
    os.execvpe("unshare", ["unshare", "--net", sys.executable, *sys.argv], os.environ | {_INSIDE: "yes"})


class Refused(Exception):
    """An answer that is no success; `code` is the envelope's."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(f"{status} {code} {message}")
        self.status, self.code = status, code


def call(port: int, method: str, path: str, token: str = "", body: Any = None, seconds: float = 20) -> Any:
    """One request on a connection of its own; the envelope's data. OSError or HTTPException: nobody knows what became of it."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)
    try:
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        connection.request(method, f"/api/v1{path}", json.dumps(body) if body is not None else None, headers)
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    try:
        envelope = json.loads(text)
    except ValueError:
        raise Refused(answer.status, "", text[:80].decode(errors="replace")) from None
    if answer.status != 200:
        raise Refused(answer.status, envelope.get("code", ""), envelope.get("msg", ""))
    return envelope["data"]


class Server:
    """A process of ours that is started, ended and started again."""

    def __init__(self, command: list[str | Path], log: Path, env: dict[str, str] | None = None, cwd: Path | None = None) -> None:
        self._command, self._log, self._env, self._cwd = command, log, env, cwd
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as out:
            self.process = subprocess.Popen(self._command, env=self._env, cwd=self._cwd, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=die_with_parent)

    def end(self, kind: signal.Signals = signal.SIGTERM) -> float:
        """How long it took to end."""
        began = time.monotonic()
        if self.process:
            end_group(self.process, kind)
            self.process = None
        return time.monotonic() - began

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None


class Postgres(Server):
    def __init__(self, folder: Path, log: Path) -> None:
        # What was committed stays when the server is killed; only a crash of the machine would lose it.
        super().__init__([TESTBED / "db.sh", "pg-run", folder, str(PG_PORT), "-c", "synchronous_commit=on"], log)
        self.url = f"postgres://postgres@127.0.0.1:{PG_PORT}/postgres"

    def wait(self, seconds: float = 60) -> None:
        assert self.process
        if not wait_until(lambda: subprocess.run(["psql", "-qtAc", "SELECT 1", self.url], capture_output=True, check=False).returncode == 0, self.process, seconds):
            raise RuntimeError("PostgreSQL did not start")

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        printed = subprocess.run(["psql", "-qtA", "-v", "ON_ERROR_STOP=1", "-F", "\t", "-c", sql, self.url], capture_output=True, text=True, check=False)
        if printed.returncode:
            raise RuntimeError(f"{printed.stderr.strip()}: {sql}")
        return [tuple(line.split("\t")) for line in printed.stdout.splitlines()]


class Replica(Server):
    """Ports are 8080 to 8083 of the first, 8180 to 8183 of the second, and so on."""

    def __init__(self, binary: Path, number: int, folder: Path, settings: dict[str, str]) -> None:
        self.number, self.folder = number, folder
        self.employee, self.admin, self.gateway, embed = (8080 + 100 * number + i for i in range(4))
        env = {name: value for name, value in os.environ.items() if not name.startswith("TIDEPOOL_")}
        env |= {"TIDEPOOL_DATA_DIR": str(folder / "data"), "TIDEPOOL_EMPLOYEE_LISTEN": f"127.0.0.1:{self.employee}",
                "TIDEPOOL_ADMIN_LISTEN": f"127.0.0.1:{self.admin}", "TIDEPOOL_GATEWAY_LISTEN": f"127.0.0.1:{self.gateway}",
                "TIDEPOOL_EMBED_LISTEN": f"127.0.0.1:{embed}", "TIDEPOOL_PROVIDER_ECHO": "true", "TIDEPOOL_LOG_FORMAT": "json"} | settings
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__([binary, "serve"], folder / "log", env, folder)

    def ready(self) -> bool:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=5)
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False

    def wait(self, seconds: float = 60) -> None:
        assert self.process
        if not wait_until(self.ready, self.process, seconds):
            raise RuntimeError(f"replica {self.number} did not become ready: {self.tail()}")

    def tail(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-600:]


def keys() -> dict[str, str]:
    return {name: secrets.token_urlsafe(32) if "JWT" in name else __import__("base64").b64encode(secrets.token_bytes(32)).decode()
            for name in ("TIDEPOOL_MASTER_KEY", "TIDEPOOL_EMPLOYEE_JWT_SECRET", "TIDEPOOL_ADMIN_JWT_SECRET")}


class Site:
    """Some replicas on one PostgreSQL, with an administrator. Everything ends with the stack."""

    def __init__(self, binary: Path, folder: Path, stack: ExitStack, replicas: int, settings: dict[str, str] | None = None,
                 own: Callable[[int], dict[str, str]] | None = None, tables: str = "") -> None:
        """`own` gives what one of them has for itself. `tables` are made before the replicas start: those of a foreign gateway."""
        self.password = secrets.token_urlsafe(12)
        self.database = Postgres(folder / "pg", folder / "pg.log")
        stack.callback(self.database.end, signal.SIGINT)
        self.database.start()
        self.database.wait()
        if tables:
            self.database.ask(tables)
        shared = keys() | {"TIDEPOOL_DATABASE_URL": self.database.url, "TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL": ADMIN_EMAIL,
                           "TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD": self.password} | (settings or {})
        self.replicas = [Replica(binary, number, folder / f"replica{number}", shared | (own(number) if own else {})) for number in range(replicas)]
        for replica in self.replicas:
            stack.callback(replica.end)
            replica.start()
        for replica in self.replicas:
            replica.wait()

    def ports(self) -> tuple[int, int]:
        """The employees' and the administrators' port of one of them."""
        replica = random.choice(self.replicas)
        return replica.employee, replica.admin

    def login(self, port: int) -> str:
        return call(port, "POST", "/auth/login", body={"email": ADMIN_EMAIL, "password": self.password})["token"]


def room() -> Path:
    """A folder that the database's user can reach, for one run."""
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix=f"tidepool-site-{os.getpid()}-"))
    folder.chmod(0o755)
    return folder


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
