#!/usr/bin/env python3
"""demo_check.py [COMMAND…]     runs `make demo`, or another command that runs the demo, as a newcomer does.

Waits for the addresses that it prints and opens each; looks at the servers and restarts the ill assistant as an administrator; claims an
assistant and chats with it as an employee; presses Ctrl-C.

Fails if an address does not answer, if a server or an assistant is not as the demo says, if there is no answer to a chat within a
minute, or if a process, an open port or a folder is left afterwards. Python 3.11, no packages.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from suite import processes
from suite.machine import ROOT
from suite.websocket import Closed, WebSocket

URL = re.compile(r"https?://(?:127\.0\.0\.1|localhost)(?::\d+)?(?:/[^\s'\"]*)?")
BUILD_SECONDS = 1800.0  # nothing is compiled yet in a fresh clone
ANSWER_SECONDS = 30.0
END_SECONDS = 9.0
EXPECTED = 2  # the employees' and the administrators' application
CHAT_SECONDS = 60.0
PASSWORD = "tidepool-demo"
ILL = "lis-1-d"


def answers(url: str, page: bool) -> bool:
    """Whether there is a page, or at least somebody who says that there is none."""
    request = urllib.request.Request(url, headers={"Accept": "text/html"})  # as a browser asks
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as answer:
            return answer.status == 200
    except urllib.error.HTTPError:
        return not page
    except (urllib.error.URLError, OSError):
        return False


def listens(url: str) -> bool:
    parts = urllib.parse.urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname or "", parts.port or 80)) == 0


class Wrong(Exception):
    """What is not as it should be."""


class Api:
    """One side of the platform, as somebody who is logged in."""

    def __init__(self, url: str, email: str) -> None:
        self.url = url.rstrip("/")
        self.token = ""
        self.token = self.call("POST", "/auth/login", {"email": email, "password": PASSWORD})["token"]

    def call(self, method: str, path: str, body: object = None) -> dict:
        """The answer's data."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise Wrong(f"{method} {path} answered {error.code}: {error.read().decode(errors='replace')}") from error


def administer(url: str) -> None:
    """Three servers that pass their test, twelve assistants of which one is ill, logs and a configuration."""
    admin = Api(url, "admin@demo.example")
    servers = [server["id"] for server in admin.call("GET", "/servers")["list"]]
    if len(servers) != 3:
        raise Wrong(f"there are {len(servers)} servers")
    for server in servers:
        failed = [s for s in admin.call("POST", f"/servers/{server}/test", {})["steps"] if not s["ok"]]
        if failed:
            raise Wrong(f"server {server} does not pass its test: {failed}")
    health = {i["id"]: i["health_status"] for i in admin.call("GET", "/instances?page_size=50")["list"]}
    ill = {name: status for name, status in health.items() if status != "healthy"}
    if len(health) != 12 or ill != {ILL: "unhealthy"}:
        raise Wrong(f"of {len(health)} instances these are not healthy: {ill}")
    lines = [line["text"] for line in admin.call("GET", "/instances/fra-1-b/logs?lines=50")["list"]]
    if not any("listening on ws://127.0.0.1:" in line for line in lines):
        raise Wrong(f"the log of fra-1-b says nothing of its start: {lines}")
    if admin.call("GET", "/instances/fra-1-b/config")["config"]["gateway"]["mode"] != "local":
        raise Wrong("the configuration of fra-1-b is not shown")
    # What a person does about the one that is ill: it is started anew, and the next look finds it well.
    task = admin.call("POST", f"/instances/{ILL}/restart", {})["task_id"]
    wait_for(lambda: admin.call("GET", f"/tasks/{task}"), "the restart")
    run = check_health(admin)
    deadline = time.monotonic() + ANSWER_SECONDS
    while (now := admin.call("GET", f"/instances/{ILL}")["health_status"]) != "healthy":
        if time.monotonic() > deadline:
            raise Wrong(f"{ILL} is {now} after its restart and health check {run}")
        time.sleep(0.2)
    print(f"3 servers pass their test, 12 assistants, {ILL} is {ill[ILL]} until it is restarted, logs are shown", flush=True)


def check_health(admin: Api) -> str:
    """Begins a check of the whole fleet; one that goes on may have looked before, so it is waited for."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return admin.call("POST", "/job-runs/health_check/run")["id"]
        except Wrong as wrong:
            if "answered 409" not in str(wrong) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def wait_for(look: Callable[[], dict], what: str) -> None:
    """Waits until a task is done."""
    deadline = time.monotonic() + CHAT_SECONDS
    while (task := look())["status"] != "done":
        if task["status"] == "dead" or time.monotonic() > deadline:
            raise Wrong(f"{what} is {task['status']}: {task}")
        time.sleep(0.2)


def chat(url: str) -> None:
    """An employee claims an assistant and is answered over the WebSocket."""
    began = time.monotonic()
    employee = Api(url, "mara@demo.example")
    claimed = employee.call("POST", "/me/instances/claim", {})
    instance = claimed["instance"]["id"]
    wait_for(lambda: employee.call("GET", f"/me/tasks/{claimed['task_id']}"), "the claim")
    ticket = employee.call("POST", f"/me/instances/{instance}/ws-ticket", {})["ticket"]
    address = f"{url.rstrip('/')}/api/v1/me/instances/{instance}/ws?ticket={urllib.parse.quote(ticket)}"
    socket_ = WebSocket(address, url.rstrip("/"), CHAT_SECONDS)
    try:
        if (hello := json.loads(socket_.receive()))["event"] != "relay.hello":
            raise Wrong(f"the first frame is {hello}")
        params = {"sessionKey": "agent:main:main", "message": "Good morning from the check", "idempotencyKey": "check-1"}
        socket_.send(json.dumps({"type": "req", "id": "1", "method": "chat.send", "params": params}))
        while True:
            frame = json.loads(socket_.receive())
            payload = frame.get("payload") or {}
            if frame.get("ok") is False or payload.get("state") in ("error", "aborted"):
                raise Wrong(f"the chat failed: {frame}")
            if frame.get("event") == "chat" and payload.get("state") == "final":
                said = "".join(part.get("text", "") for part in payload["message"]["content"])
                break
    except Closed as closed:
        raise Wrong(f"the WebSocket ended: {closed}") from closed
    finally:
        socket_.close()
    if "Good morning from the check" not in said:
        raise Wrong(f"the answer is {said!r}")
    if (took := time.monotonic() - began) > CHAT_SECONDS:
        raise Wrong(f"the first answer came after {took:.0f} s")
    print(f"mara claimed {instance} and was answered {said!r} after {took:.1f} s", flush=True)


def check(log: Path) -> str | None:
    """Returns what is wrong, or None."""
    def printed() -> str:
        return log.read_text(encoding="utf-8", errors="replace")

    def urls() -> list[str]:
        return list(dict.fromkeys(url.rstrip(".,)") for url in URL.findall(printed())))

    temporary = log.parent / "tmp"
    temporary.mkdir()
    with log.open("w") as output:
        process = subprocess.Popen(
            sys.argv[1:] or ["make", "demo"], cwd=ROOT, env={**os.environ, "TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=processes.die_with_parent,
        )
    try:
        if not processes.wait_until(lambda: len(urls()) >= EXPECTED, process, BUILD_SECONDS):
            return f"make demo printed no addresses; the end of its output:\n{printed()[-2000:]}"
        shown, deadline = urls(), time.monotonic() + ANSWER_SECONDS
        while silent := [url for url in shown if not answers(url, page=url in shown[:EXPECTED])]:
            if time.monotonic() > deadline or process.poll() is not None:
                return f"no answer from {', '.join(silent)}; the end of the output:\n{printed()[-2000:]}"
            time.sleep(0.2)
        print(f"make demo answers at {', '.join(shown)}", flush=True)
        employees, administrators = shown[:2]
        try:
            administer(administrators)
            chat(employees)
        except Wrong as wrong:
            return f"{wrong}; the end of the output:\n{printed()[-2000:]}"
    finally:
        pressed = time.monotonic()
        processes.end_group(process, signal.SIGINT)
    if (took := time.monotonic() - pressed) > END_SECONDS:
        return f"Ctrl-C did not end make demo within {END_SECONDS:.0f} s"
    print(f"Ctrl-C ended it after {took:.1f} s", flush=True)
    if strays := processes.reap_strays(set()):
        return f"make demo left processes running: {', '.join(strays)}"
    if still := [url for url in shown if listens(url)]:
        return f"somebody still listens at {', '.join(still)}"
    if folders := list(temporary.glob("tidepool-*")):
        return f"make demo left {', '.join(map(str, folders))}"
    return None


def main() -> int:
    # A shell that started us in the background has told us to ignore Ctrl-C; the demo must not inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    processes.stop_on_signals()
    processes.adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="tidepool-demo-") as folder:
        wrong = check(Path(folder) / "output")
    if wrong:
        print(f"demo: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
