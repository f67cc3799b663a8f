#!/usr/bin/env python3
"""Stands in for OpenClaw in the tests: its version, its validation, its doctor, a gateway with its health pages and the handshake of
its WebSocket, some RPCs, and a shell for who knows its token.

Its version is the name of the folder it lies in. What it shall do wrong stands in `standin.json` in the state folder:
{"delay": seconds before it listens, "unready": true, "crash": [versions that exit 1], "refuse": true (exit 78),
 "mute": [versions that answer no chat], "deaf": true (no reload), "wedged": true (pages, but no WebSocket),
 "outside_only": true (exit 1 in a cell), "loop": true (exit 1 until the doctor was there), "oom": true (out of memory),
 "sessions": what sessions.list answers}
"""
import base64
import ctypes
import hashlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time

VERSION = os.path.basename(os.path.dirname(os.path.abspath(__file__)))
STATE = os.environ.get("OPENCLAW_STATE_DIR", "")
CONFIG = os.environ.get("OPENCLAW_CONFIG_PATH", "")
CHAT = os.path.join(STATE, "state", "chat.json")
METHODS = ["chat.send", "chat.history", "chat.abort", "sessions.list"]
ROOT = set(
    "accessGroups acp agents approvals attachments auth bindings broadcast browser channels cloudWorkers commands cron desktop "
    "diagnostics discovery env gateway hooks logging mcp memory messages meta models nodeHost plugins proxy secrets security session "
    "skills surfaces talk telemetry tools transcripts tts ui update wizard".split()
)


def read_json(path, default):
    try:
        with open(path) as file:
            return json.load(file)
    except FileNotFoundError:
        return default


def issues():
    try:
        config = read_json(CONFIG, {})
    except ValueError as error:
        return [{"path": "<root>", "message": f"JSON5 parse failed: {error}"}]
    return [{"path": "<root>", "message": f'Unrecognized key: "{key}"'} for key in config if key not in ROOT]


def log(message):
    path = read_json(CONFIG, {}).get("logging", {}).get("file")
    if path:
        with open(path, "a") as file:
            file.write(json.dumps({"time": time.strftime("%FT%TZ"), "message": message}) + "\n")


def watch():
    def content():
        with open(CONFIG) as file:
            return file.read()

    last = content()
    while True:
        time.sleep(0.1)
        try:
            now = content()
        except OSError:
            continue
        if now != last and not wrong("deaf"):
            last = now
            log("config reload skipped (invalid config)" if issues() else "config hot reload applied (something)")


def wrong(key):
    return read_json(os.path.join(STATE, "standin.json"), {}).get(key)


class Pages(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self.talk()
        answers = {
            "/healthz": (200, {"ok": True, "status": "live"}),
            "/readyz": (503, {"ready": False, "failing": ["startup"]}) if wrong("unready") else (200, {"ready": True, "failing": []}),
            "/startupz": (200, {"ok": True, "status": "started", "version": VERSION}),
        }
        status, body = answers.get(self.path, (404, {}))
        self.send_response(status)
        text = json.dumps(body).encode()
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = True

    def do_POST(self):
        """/shell: runs a script, as the real one's shell tool does for whoever holds it; its variables and text come as JSON."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path != "/shell" or self.headers.get("Authorization") != "Bearer " + read_json(CONFIG, {})["gateway"]["auth"]["token"]:
            return self.send_error(403)
        variables = {**os.environ, **asked["env"]}
        done = subprocess.run(["timeout", "-k", "2", "30", "sh", "-c", asked["script"], "sh"], env=variables, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=os.environ["HOME"], check=False)
        text = json.dumps({"status": done.returncode, "said": done.stdout[-2000:].decode(errors="replace")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text)
        self.close_connection = True

    def talk(self):
        """The WebSocket: a challenge, the token, and one answer per question."""
        self.close_connection = True
        if wrong("wedged"):
            time.sleep(30)
            return
        accept = base64.b64encode(hashlib.sha1((self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest())
        self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
        self.say({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": 0}})
        while True:
            request = self.hear()
            if request is None:
                return
            answer = {"type": "res", "id": request["id"], "ok": True, "payload": self.answer(request)}
            if answer["payload"] is None:
                answer = {"type": "res", "id": request["id"], "ok": False, "error": {"code": "UNAUTHORIZED", "message": "token mismatch"}}
            self.say(answer)
            if request["method"] == "chat.send":
                self.reply(request["params"])

    def reply(self, params):
        """What was said comes back, whole, as a gateway tells of a run that ended."""
        said = read_json(CHAT, [])[-1]
        payload = {"runId": params["idempotencyKey"], "sessionKey": params["sessionKey"], "seq": 1, "state": "final", "message": said}
        self.say({"type": "event", "event": "chat", "payload": payload})

    def answer(self, request):
        method, params = request["method"], request.get("params") or {}
        if method == "connect":
            if params["auth"]["token"] != read_json(CONFIG, {})["gateway"]["auth"]["token"]:
                return None
            return {"protocol": 4, "server": {"version": VERSION}, "features": {"methods": METHODS, "events": ["chat"]}, "auth": {"scopes": params["scopes"]}}
        if method in ("chat.send", "chat.history"):
            return call(method, params, "You said: ")
        if method == "sessions.list":
            return {"sessions": wrong("sessions") or []}
        if method in ("sessions.reset", "sessions.delete"):
            log("asked for " + method + " " + params["key"])
        return {"ok": True}

    def hear(self):
        head = self.rfile.read(2)
        if len(head) < 2 or head[0] & 15 == 8:
            return None
        size = head[1] & 127
        if size == 126:
            size = int.from_bytes(self.rfile.read(2), "big")
        elif size == 127:
            size = int.from_bytes(self.rfile.read(8), "big")
        mask = self.rfile.read(4)
        data = self.rfile.read(size)
        return json.loads(bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def say(self, frame):
        data = json.dumps(frame).encode()
        size = bytes([len(data)]) if len(data) < 126 else bytes([126]) + len(data).to_bytes(2, "big")
        self.wfile.write(b"\x81" + size + data)
        self.wfile.flush()

    def log_message(self, *_):
        pass


def gateway(port):
    # As a real gateway calls itself; the kernel cuts it.
    ctypes.CDLL(None).prctl(15, b"openclaw-gatewa", 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    found = issues()
    if found:
        print(f"Gateway failed to start: Invalid config at {CONFIG}: {found[0]['message']}", flush=True)
        sys.exit(78)
    if wrong("refuse"):
        print("Gateway failed to start: Invalid config, as it was told to say", flush=True)
        sys.exit(78)
    with open("/proc/self/status") as status:
        if wrong("outside_only") and "NoNewPrivs:\t1\n" in status.read():
            sys.exit("Gateway failed to start: not in a cell, as it was told to say")
    if wrong("oom"):
        print("FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory", flush=True)
        os.abort()
    if wrong("loop"):
        print("Gateway failed to start: Refusing to run automatic gateway startup migrations (config validity changed)", flush=True)
        sys.exit(1)
    own = read_json(CONFIG, {}).get("gateway", {})
    if own.get("bind") == "custom":
        print(f"Gateway failed to start: gateway bind=custom requested {own.get('customBindHost')} but resolved 0.0.0.0; refusing fallback.", flush=True)
        sys.exit(1)
    if VERSION in (wrong("crash") or []):
        print("Gateway failed to start: as it was told to", flush=True)
        sys.exit(1)
    os.makedirs(os.path.join(STATE, "state"), exist_ok=True)
    with open(os.path.join(STATE, "state", "boots"), "a") as file:
        file.write(VERSION + "\n")
    time.sleep(wrong("delay") or 0)
    threading.Thread(target=watch, daemon=True).start()
    print(f"listening on ws://127.0.0.1:{port}", flush=True)
    address = "0.0.0.0" if own.get("bind") == "lan" else "127.0.0.1"
    server = http.server.ThreadingHTTPServer((address, port), Pages)
    server.daemon_threads = True
    server.serve_forever()


def call(method, params, front=None):
    """The chat's RPCs; the reply is "ready", or what was said after `front`."""
    messages = read_json(CHAT, [])
    if method == "chat.send":
        messages.append({"role": "user", "content": params["message"]})
        if VERSION not in (wrong("mute") or []):
            messages.append({"role": "assistant", "content": [{"type": "text", "text": "ready" if front is None else front + params["message"]}]})
        with open(CHAT, "w") as file:
            json.dump(messages, file)
        return {"runId": params["idempotencyKey"], "status": "started"}
    return {"messages": messages}


def meddle():
    """Somebody's hand in the instance's own file, at the very moment between its being read and written: `hand` in standin.json, once."""
    state = os.path.dirname(os.path.dirname(read_json(CONFIG, {}).get("logging", {}).get("file", "/x/y")))
    flags = os.path.join(state, "standin.json")
    told = read_json(flags, {})
    if "hand" in told:
        real = os.path.join(state, "openclaw.json")
        for path, content in ((real, {**read_json(real, {}), **told.pop("hand")}), (flags, told)):
            with open(path + ".new", "w") as file:
                json.dump(content, file)
            os.replace(path + ".new", path)


def main(arguments):
    if arguments == ["--version"]:
        print(f"OpenClaw {VERSION} (standin)")
    elif arguments[:2] == ["config", "validate"]:
        found = issues()
        if not found:
            meddle()
        print(json.dumps({"valid": not found, "path": CONFIG, "issues": found}))
        sys.exit(1 if found else 0)
    elif arguments[:2] == ["doctor", "--fix"]:
        flags = os.path.join(STATE, "standin.json")
        told = read_json(flags, {})
        told.pop("loop", None)
        with open(flags + ".new", "w") as file:
            json.dump(told, file)
        os.replace(flags + ".new", flags)
        print("Doctor complete.")
    elif arguments[:2] == ["gateway", "run"]:
        gateway(int(arguments[arguments.index("--port") + 1]))
    elif arguments[:2] == ["gateway", "call"]:
        print(json.dumps(call(arguments[2], json.loads(arguments[4]))))
    else:
        sys.exit("unknown command")


main(sys.argv[1:])
