"""What cannot run beside the replicas, as servers on sockets: an assistant's gateway and the bot platform; and a WebSocket client."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import struct
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Frames:
    """One end of a WebSocket, after its handshake."""

    def __init__(self, stream: socket.socket, *, masked: bool, early: bytes = b"") -> None:
        self._stream, self._masked, self._early = stream, masked, early

    def _take(self, count: int) -> bytes:
        while len(self._early) < count:
            more = self._stream.recv(65536)
            if not more:
                raise ConnectionError("the socket ended without a close frame")
            self._early += more
        taken, self._early = self._early[:count], self._early[count:]
        return taken

    def receive(self) -> tuple[int, bytes]:
        """The next frame: its opcode (1 text, 8 close) and payload. Pings are answered."""
        while True:
            first, second = self._take(2)
            length = second & 127
            if length > 125:
                length = int.from_bytes(self._take(2 if length == 126 else 8))
            mask = self._take(4) if second & 128 else b"\0\0\0\0"
            payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(self._take(length)))
            if first & 15 == 9:
                self.send(payload, opcode=10)
            elif first & 15 != 10:
                return first & 15, payload

    def send(self, payload: bytes, opcode: int = 1) -> None:
        head = bytes([128 | opcode])
        mark = 128 if self._masked else 0
        head += bytes([mark | len(payload)]) if len(payload) < 126 else bytes([mark | 126]) + struct.pack(">H", len(payload))
        if self._masked:
            mask = os.urandom(4)
            head, payload = head + mask, bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self._stream.sendall(head + payload)

    def say(self, frame: dict[str, Any]) -> None:
        self.send(json.dumps(frame).encode())

    def hear(self) -> dict[str, Any]:
        opcode, payload = self.receive()
        if opcode == 8:
            raise ConnectionError(f"closed with {int.from_bytes(payload[:2])} {payload[2:].decode(errors='replace')}")
        return json.loads(payload)

    def close_code(self) -> int:
        """Waits for the end; answers its code, 1006 where there was no close frame."""
        try:
            while True:
                opcode, payload = self.receive()
                if opcode == 8:
                    self.send(payload[:2], opcode=8)
                    return int.from_bytes(payload[:2])
        except OSError:
            return 1006


def open_socket(host: str, port: int, path: str, seconds: float = 20) -> Frames:
    stream = socket.create_connection((host, port), timeout=seconds)
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}:{port}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
             f"Sec-WebSocket-Key: {key}", "", ""]
    stream.sendall("\r\n".join(lines).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        more = stream.recv(4096)
        if not more:
            raise ConnectionError("no answer to the WebSocket's handshake")
        head += more
    head, _, early = head.partition(b"\r\n\r\n")
    if b" 101 " not in head.splitlines()[0]:
        raise ConnectionError(head.splitlines()[0].decode())
    return Frames(stream, masked=True, early=early)


class Assistant(threading.Thread):
    """An OpenClaw gateway as far as the relay looks: challenge, hello, and an empty answer to everything."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._listener = socket.create_server((address, 0), backlog=64)
        self.url = f"ws://{address}:{self._listener.getsockname()[1]}"
        self.start()

    def run(self) -> None:
        while True:
            stream, _ = self._listener.accept()
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream: socket.socket) -> None:
        import hashlib

        try:
            head = b""
            while b"\r\n\r\n" not in head:
                head += stream.recv(4096) or (_ for _ in ()).throw(ConnectionError())
            key = re.search(rb"sec-websocket-key: (\S+)", head, re.IGNORECASE)
            if not key:
                stream.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                return
            accept = base64.b64encode(hashlib.sha1(key[1] + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            stream.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n")
            frames = Frames(stream, masked=False)
            frames.say({"type": "event", "event": "connect.challenge", "payload": {"nonce": "n", "ts": int(time.time() * 1000)}})
            while True:
                asked = frames.hear()
                hello = {"type": "hello-ok", "protocol": 4, "server": {"version": "2026.9.6", "connId": "c"},
                         "features": {"methods": ["models.list", "chat.send"], "events": ["chat"]},
                         "auth": {"role": "operator", "scopes": ["operator.read", "operator.write"]},
                         "policy": {"maxPayload": 26214400, "tickIntervalMs": 30000}}
                payload = hello if asked.get("method") == "connect" else {"models": []}
                frames.say({"type": "res", "id": asked.get("id"), "ok": True, "payload": payload})
        except (OSError, ValueError):
            pass
        finally:
            stream.close()


class BotPlatform:
    """Answers every method with success and counts the calls by bot token and method."""

    def __init__(self) -> None:
        calls = self.calls = Counter()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length") or 0))
                token, _, method = self.path.removeprefix("/bot").partition("/")
                calls[token, method] += 1
                body = json.dumps({"ok": True, "result": {"url": "", "id": 1}}).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
