#!/usr/bin/env python3
"""Stands in for OpenClaw in the tests: its version, its validation, a gateway with its health pages, and two RPCs.

Its version is the name of the folder it lies in. What it shall do wrong stands in `standin.json` in the state folder:
{"delay": seconds before it listens, "unready": true, "crash": [versions that exit 1], "refuse": true (exit 78),
 "mute": [versions that answer no chat], "deaf": true (no reload)}
"""
import http.server
import json
import os
import signal
import sys
import threading
import time

VERSION = os.path.basename(os.path.dirname(os.path.abspath(__file__)))
STATE = os.environ.get("OPENCLAW_STATE_DIR", "")
CONFIG = os.environ.get("OPENCLAW_CONFIG_PATH", "")
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
    def do_GET(self):
        answers = {
            "/healthz": (200, {"ok": True, "status": "live"}),
            "/readyz": (503, {"ready": False, "failing": ["startup"]}) if wrong("unready") else (200, {"ready": True, "failing": []}),
            "/startupz": (200, {"ok": True, "status": "started", "version": VERSION}),
        }
        status, body = answers.get(self.path, (404, {}))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


def gateway(port):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    found = issues()
    if found:
        print(f"Gateway failed to start: Invalid config at {CONFIG}: {found[0]['message']}", flush=True)
        sys.exit(78)
    if wrong("refuse"):
        print("Gateway failed to start: Invalid config, as it was told to say", flush=True)
        sys.exit(78)
    if VERSION in (wrong("crash") or []):
        print("Gateway failed to start: as it was told to", flush=True)
        sys.exit(1)
    os.makedirs(os.path.join(STATE, "state"), exist_ok=True)
    with open(os.path.join(STATE, "state", "boots"), "a") as file:
        file.write(VERSION + "\n")
    time.sleep(wrong("delay") or 0)
    threading.Thread(target=watch, daemon=True).start()
    print(f"listening on ws://127.0.0.1:{port}", flush=True)
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Pages).serve_forever()


def call(method, params):
    path = os.path.join(STATE, "state", "chat.json")
    messages = read_json(path, [])
    if method == "chat.send":
        messages.append({"role": "user", "content": params["message"]})
        if VERSION not in (wrong("mute") or []):
            messages.append({"role": "assistant", "content": [{"type": "text", "text": "ready"}]})
        with open(path, "w") as file:
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
    elif arguments[:2] == ["gateway", "run"]:
        gateway(int(arguments[arguments.index("--port") + 1]))
    elif arguments[:2] == ["gateway", "call"]:
        print(json.dumps(call(arguments[2], json.loads(arguments[4]))))
    else:
        sys.exit("unknown command")


main(sys.argv[1:])
