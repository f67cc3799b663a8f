"""A WebSocket client that is enough for checks: text frames, whole, over plain HTTP. Python 3.11, no packages."""

from __future__ import annotations

import base64
import os
import socket
import struct
import urllib.parse


class Closed(Exception):
    """The other side has ended the conversation, or never began it."""


class WebSocket:
    """One conversation."""

    def __init__(self, url: str, origin: str, timeout: float) -> None:
        parts = urllib.parse.urlsplit(url)
        self._socket = socket.create_connection((parts.hostname or "", parts.port or 80), timeout)
        self._held = b""
        key = base64.b64encode(os.urandom(16)).decode()
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        self._socket.sendall(
            f"GET {target} HTTP/1.1\r\nHost: {parts.netloc}\r\nOrigin: {origin}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._take(1)
        if b" 101 " not in head.split(b"\r\n", 1)[0]:
            raise Closed(head.decode(errors="replace"))

    def _take(self, count: int) -> bytes:
        while len(self._held) < count:
            more = self._socket.recv(65536)
            if not more:
                raise Closed("the connection ended")
            self._held += more
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    def send(self, text: str) -> None:
        """Sends a text."""
        self._frame(1, text.encode())

    def _frame(self, kind: int, body: bytes) -> None:
        mask = os.urandom(4)
        size = struct.pack("!B", 0x80 | len(body)) if len(body) < 126 else struct.pack("!BH", 0xFE, len(body))
        self._socket.sendall(bytes([0x80 | kind]) + size + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(body)))

    def receive(self) -> str:
        """The next text. Pings are answered."""
        while True:
            first, second = self._take(2)
            size = second & 0x7F
            if size == 126:
                (size,) = struct.unpack("!H", self._take(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", self._take(8))
            body = self._take(size)
            match first & 0x0F:
                case 1:
                    return body.decode()
                case 8:
                    raise Closed(f"closed: {body[:2].hex()} {body[2:].decode(errors='replace')}")
                case 9:
                    self._frame(10, body)

    def close(self) -> None:
        """Ends the conversation."""
        self._socket.close()
