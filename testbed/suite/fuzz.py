"""fuzz BINARY FOLDER     starts the real binary and lets schemathesis loose on both of its APIs.

Runs inside a network namespace of its own (testbed/suite/parts.py makes it), so the usual ports are free and nothing that the
APIs are asked to dial can be reached. FOLDER gets the server's log, both documents, a JUnit file for each side, and
failures.txt and notes.txt with a line for each finding that is not an operation's own.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .machine import CACHE, TESTBED
from .processes import die_with_parent, end_group, run_shown, wait_until

# By path. Single sign-on stays in: it is not configured here, and its answer to that is part of the contract. So do the
# password changes: they ask for the old password, which nobody guesses.
_LEFT_OUT = {re.compile(r"/auth/logout$"): "ends the session"}
_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
_PANIC = re.compile(r"panicked at|stack overflow|RUST_BACKTRACE")
ADMIN_EMAIL = "root@example.test"
EMPLOYEE_EMAIL = "fuzz@example.test"


@dataclass
class Side:
    """One of the two APIs. Both listen where a fresh installation does."""

    name: str
    origin: str
    own_page: str  # answers only while the session lives
    token: str = ""

    @property
    def document_url(self) -> str:
        return f"{self.origin}/api/v1/openapi.json"


class Findings:
    """Lines for the runner: it is another process, so they go through files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fail(self, line: str) -> None:
        self._write("failures.txt", line)

    def note(self, line: str) -> None:
        self._write("notes.txt", line)

    def _write(self, name: str, line: str) -> None:
        print(line, flush=True)
        with (self._folder / name).open("a") as out:
            out.write(line + "\n")


def call(method: str, url: str, token: str = "", body: Any = None) -> Any:
    """One JSON request; returns the envelope's data."""
    request = urllib.request.Request(url, method=method, data=json.dumps(body).encode() if body is not None else None)
    request.add_header("Content-Type", "application/json")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    # A proxy of the machine's has no business between us and our own server.
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=20) as answer:
        document = json.load(answer)
    return document.get("data", document)


def answers(url: str) -> bool:
    try:
        call("GET", url)
        return True
    except (OSError, ValueError):
        return False


def left_out(document: dict[str, Any]) -> dict[tuple[str, str], str]:
    """Operations that are not tested here, with the reason."""
    found: dict[tuple[str, str], str] = {}
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if (operation := methods.get(method)) is None:
                continue
            responses = operation.get("responses", {})
            if reason := next((reason for pattern, reason in _LEFT_OUT.items() if pattern.search(path)), None):
                found[method.upper(), path] = reason
            elif "101" in responses:
                found[method.upper(), path] = "is a WebSocket"
            elif "text/event-stream" in responses.get("200", {}).get("content", {}):
                found[method.upper(), path] = "is a stream without an end"
    return found


def sign_in(employee: Side, admin: Side, passwords: dict[str, str]) -> None:
    """The admin is the only super_admin, which cannot be removed; the employee is one that it creates."""
    admin.token = call("POST", f"{admin.origin}/api/v1/auth/login", body={"email": ADMIN_EMAIL, "password": passwords[ADMIN_EMAIL]})["token"]
    new = {"email": EMPLOYEE_EMAIL, "name": "Fuzz", "department": "QA", "password": passwords[EMPLOYEE_EMAIL]}
    call("POST", f"{admin.origin}/api/v1/users", admin.token, new)
    employee.token = call("POST", f"{employee.origin}/api/v1/auth/login", body={"email": EMPLOYEE_EMAIL, "password": passwords[EMPLOYEE_EMAIL]})["token"]


def remember_secrets(values: list[str]) -> None:
    """The secrets part searches every log for them."""
    if trace := os.environ.get("TIDEPOOL_TEST_TRACE_DIR"):
        with open(f"{trace}/secrets.txt", "a", encoding="utf-8") as out:
            out.writelines(f"{value}\n" for value in values)


def fuzz(side: Side, folder: Path, findings: Findings) -> int:
    document = call("GET", side.document_url)
    (folder / f"{side.name}.json").write_text(json.dumps(document))
    command = [
        str(CACHE / "schemathesis/bin/schemathesis"), "--config-file", str(TESTBED / "schemathesis.toml"), "run",
        str(folder / f"{side.name}.json"), "--url", base_url(side, document), "--no-color",
        "--report", "junit", "--report-junit-path", str(folder / f"{side.name}.xml"),
    ]
    for (method, path), reason in left_out(document).items():
        findings.note(f"left out: {side.name} {method} {path} {reason}")
        command += ["--exclude-name", f"{method} {path}"]
    env = os.environ | {"TIDEPOOL_TEST_TOKEN": side.token, "TIDEPOOL_TEST_OWN_EMAIL": ADMIN_EMAIL, "PYTHONPATH": str(TESTBED)}
    code, _ = run_shown(command, folder / f"{side.name}.log", env, folder, timeout=600)
    try:
        call("GET", f"{side.origin}/api/v1/{side.own_page}", side.token)
    except OSError as error:
        findings.fail(f"the {side.name}'s token no longer works, so later examples tested little: {error}")
    return code


def base_url(side: Side, document: dict[str, Any]) -> str:
    """Where the document's paths begin: they may or may not carry the /api/v1 themselves."""
    carried = all(path.startswith("/api/v1") for path in document["paths"])
    return side.origin if carried else f"{side.origin}/api/v1"


def check_server(process: subprocess.Popen[bytes], log: Path, sides: tuple[Side, ...], findings: Findings) -> None:
    """After all that, the server must still be there, and must not have panicked."""
    if process.poll() is not None:
        findings.fail(f"the server ended with exit code {process.returncode}")
        return
    for side in sides:
        if not answers(side.document_url):
            findings.fail(f"the {side.name} listener no longer answers")
    for number, line in enumerate(log.read_text(errors="replace").splitlines(), 1):
        if _PANIC.search(line):
            findings.fail(f"server.log:{number}: {line[:300]}")


def main(binary: str, folder: Path) -> int:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    employee, admin = Side("employee", "http://127.0.0.1:8080", "me"), Side("admin", "http://127.0.0.1:8081", "users")
    passwords = {ADMIN_EMAIL: secrets.token_urlsafe(16), EMPLOYEE_EMAIL: secrets.token_urlsafe(16)}
    findings, log, code = Findings(folder), folder / "server.log", 0
    with tempfile.TemporaryDirectory(prefix="tidepool-fuzz-") as data, log.open("wb") as out:
        process = subprocess.Popen(
            [binary, "serve"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, cwd=data,
            start_new_session=True, preexec_fn=die_with_parent,
            env=os.environ | {
                "TIDEPOOL_DATA_DIR": data,
                "TIDEPOOL_EMPLOYEE_LISTEN": "127.0.0.1:8080",
                "TIDEPOOL_ADMIN_LISTEN": "127.0.0.1:8081",
                "TIDEPOOL_ROLES": "employee,admin,gateway",
                "TIDEPOOL_PROVIDER_ECHO": "true",
                "TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL": ADMIN_EMAIL,
                "TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD": passwords[ADMIN_EMAIL],
            },
        )
        try:
            if not wait_until(lambda: answers(admin.document_url) and answers(employee.document_url), process, 60):
                findings.fail(f"the server did not come up: {log.read_text(errors='replace')[-300:]!r}")
                return 1
            sign_in(employee, admin, passwords)
            remember_secrets([*passwords.values(), employee.token, admin.token])
            for side in (employee, admin):  # the admin may revoke the employee, never the other way round
                code |= fuzz(side, folder, findings)
            check_server(process, log, (employee, admin), findings)
        finally:
            end_group(process, signal.SIGTERM)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
