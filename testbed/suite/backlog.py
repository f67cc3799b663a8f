"""Ten thousand background tasks of servers that are sick, and a revocation beside them: for torture.py.

The LLM gateway is a foreign one, so that a revoked user's key is switched off there by a task; with the embedded gateway the record
alone does it. It is a simulated LiteLLM: what the platform asks of it, and no more.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .site import PG_PORT, Site, call

SERVERS, PER_SERVER = 20, 500
LIMIT = 5.0  # seconds until a revocation is in force
MODEL = "claude-sonnet-4-6"

# The table that the platform reads, as LiteLLM's migrations make it, without the columns that nobody asks for.
TABLES = """
CREATE TABLE "LiteLLM_SpendLogs" (request_id TEXT PRIMARY KEY, api_key TEXT NOT NULL DEFAULT '', spend DOUBLE PRECISION NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL DEFAULT 0, completion_tokens INTEGER NOT NULL DEFAULT 0, "startTime" TIMESTAMP(3) NOT NULL,
    "endTime" TIMESTAMP(3) NOT NULL, "completionStartTime" TIMESTAMP(3), model TEXT NOT NULL DEFAULT '', model_group TEXT DEFAULT '',
    custom_llm_provider TEXT DEFAULT '', metadata JSONB DEFAULT '{}', status TEXT);
"""


class LiteLlm:
    """Keys by their hash: alias, and whether they are blocked."""

    def __init__(self) -> None:
        self.keys: dict[str, dict[str, Any]] = {}
        self.blocked: dict[str, float] = {}  # alias -> when it was switched off
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def say(self, status: int, body: Any) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_GET(self) -> None:
                path, query = urlsplit(self.path).path, parse_qs(urlsplit(self.path).query)
                if path == "/v1/models":
                    self.say(200, {"data": [{"id": MODEL}]})
                elif path == "/key/list":
                    wanted = query.get("key_alias", [None])[0]
                    self.say(200, {"keys": [key for key in outer.keys.values() if wanted in (None, key["key_alias"])], "total_pages": 1})
                elif path == "/key/info" and (key := outer.keys.get(query.get("key", [""])[0])):
                    self.say(200, {"info": key})
                elif path == "/health/readiness":
                    self.say(200, {"status": "healthy", "db": "connected"})
                elif path == "/global/spend":
                    self.say(200, {"spend": 0, "max_budget": 0})
                else:
                    self.say(404, {"detail": "not found"})

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                if self.path == "/key/generate":
                    value = asked.get("key") or f"sk-{secrets.token_hex(16)}"
                    name = hashlib.sha256(value.encode()).hexdigest()
                    outer.keys[name] = {"token": name, "key_alias": asked.get("key_alias"), "spend": 0.0, "max_budget": None, "blocked": False,
                                        "created_at": "2026-01-01T00:00:00Z"}
                    self.say(200, {"key": value, "token_id": name})
                elif self.path in ("/key/block", "/key/unblock") and (key := outer.keys.get(asked.get("key", ""))):
                    key["blocked"] = self.path == "/key/block"
                    if key["blocked"]:
                        outer.blocked[key["key_alias"]] = time.monotonic()
                    self.say(200, key)
                elif self.path == "/key/delete":
                    for name in asked.get("keys", []):
                        outer.keys.pop(name, None)
                    self.say(200, {"deleted_keys": asked.get("keys", [])})
                else:
                    self.say(404, {"detail": "not found"})

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Sick:
    """Servers that take connections and say nothing: each login to them lasts until it is given up."""

    def __init__(self, count: int) -> None:
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=1024) for _ in range(count)]
        self.ports = [listener.getsockname()[1] for listener in self.listeners]

    def close(self) -> None:
        for listener in self.listeners:
            listener.close()


def fleet(site: Site, token: str, sick: Sick, folder: Path) -> None:
    """Ten thousand instances on sick servers. They are written into the database: nobody waits for ten thousand requests."""
    admin = site.replicas[0].admin
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "login"], check=True, stdin=subprocess.DEVNULL)
    for number, port in enumerate(sick.ports):
        call(admin, "POST", "/servers", token, {"id": f"sick{number}", "name": "x", "host": "127.0.0.1", "ssh_port": port, "ssh_key_path": str(folder / "login")})
        site.database.ask(
            "INSERT INTO instance (id, id_key, server_id, name, gateway_port, gateway_url, gateway_token, model, health_status, notes, config_json, home, created_at, updated_at) "
            f"SELECT 'bulk-{number}-' || n, 'bulk-{number}-' || n, 'sick{number}', 'x', 20000 + 10 * n, '', '', '{MODEL}', 'unknown', '', '{{}}', '/srv/bulk/' || n, 0, 0 "
            f"FROM generate_series(1, {PER_SERVER}) AS n")


def revoke_beside(site: Site, token: str, gateway: LiteLlm) -> tuple[list[str], str]:
    """What is wrong, and the numbers."""
    first, people = site.replicas[0], []
    call(first.admin, "POST", "/servers", token, {"id": "s1", "name": "nowhere", "host": "192.0.2.1"})
    for number in range(3):
        name, email = f"held{number}", f"r{number}@example.test"
        call(first.admin, "POST", "/assistant-instances", token, {"id": name, "name": name, "server_id": "s1", "model": MODEL})
        user = call(first.admin, "POST", "/users", token, {"email": email, "name": email})["id"]
        call(first.admin, "PATCH", f"/instances/{name}/assign", token, {"user_id": user})
        call(first.admin, "POST", "/keys", token, {"instance_id": name})
        people.append((user, name))
    asked = call(first.admin, "POST", "/models/sync", token, {}, seconds=120)["task_ids"]
    # Asked for again, it is the same tasks: those that wait already.
    again = call(first.admin, "POST", "/models/sync", token, {}, seconds=120)["task_ids"]
    waiting = "SELECT COUNT(*) FROM task WHERE type = 'sync_models_to_instance' AND status IN ('pending', 'failed')"
    running = "SELECT COUNT(*) FROM task WHERE type = 'sync_models_to_instance' AND status = 'processing'"
    deadline = time.monotonic() + 30
    while int(site.database.ask(running)[0][0]) == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
    wrong, waits = [], []
    for user, name in people:
        began = time.monotonic()
        call(first.admin, "PATCH", f"/users/{user}", token, {"status": "revoked"})
        while name not in gateway.blocked and time.monotonic() - began < 60:
            time.sleep(0.02)
        waits.append(gateway.blocked.get(name, time.monotonic()) - began)
        if waits[-1] > LIMIT:
            wrong.append(f"the key of {name} was off {waits[-1]:.1f} s after its user was revoked, with {site.database.ask(waiting)[0][0]} tasks waiting")
    left = int(site.database.ask(waiting)[0][0])
    if left < SERVERS * PER_SERVER * 0.8:
        wrong.append(f"{left} tasks were left: there was no backlog")
    twice = int(site.database.ask("SELECT COUNT(*) FROM (SELECT instance_id FROM task WHERE type = 'sync_models_to_instance' AND status = 'pending' GROUP BY instance_id HAVING COUNT(*) > 1) x")[0][0])
    if twice:
        wrong.append(f"{twice} instances have more than one sync that waits")
    most = max(int(row[1]) for row in site.database.ask("SELECT server_id, COUNT(*) FROM task WHERE status = 'processing' AND server_id IS NOT NULL GROUP BY server_id") or [("", "0")])
    return wrong, f"{len(asked)} tasks, {len(again)} asked for again, {left} left; keys off after {', '.join(f'{wait:.2f}' for wait in waits)} s; at most {most} tasks on one server"


def settings(gateway: LiteLlm) -> dict[str, str]:
    """The log's table is in the platform's own database: the names are LiteLLM's, and in nobody's way."""
    return {"TIDEPOOL_GATEWAY_KIND": "litellm", "TIDEPOOL_GATEWAY_URL": gateway.url, "TIDEPOOL_GATEWAY_ADMIN_TOKEN": "of-a-simulated-gateway",
            "TIDEPOOL_GATEWAY_LOG_URL": f"postgres://postgres@127.0.0.1:{PG_PORT}/postgres", "TIDEPOOL_TASK_LEASE_SECONDS": "5"}
