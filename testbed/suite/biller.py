"""A model provider on a socket that bills as real ones do: what it read as soon as it has the request, and what it writes until it
notices that the other side has left. And people who hang up on it at any moment."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from . import invariants


class Biller:
    """Answers with a random number of words, streamed or not. A token is two bytes of text."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.seen: Counter[str] = Counter()  # billed tokens, requests, and how many of them were left
        biller = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                read = 3 + sum(4 + (len(message["content"].encode()) + 1) // 2 for message in asked["messages"])
                biller.count(billed=read, requests=1)
                try:
                    biller.answer(self, asked, read)
                except OSError:
                    biller.count(left=1)
                    self.close_connection = True

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def count(self, **seen: int) -> None:
        with self.lock:
            self.seen.update(seen)

    def answer(self, to: Any, asked: dict[str, Any], read: int) -> None:
        words, pause = random.randrange(1, 60), random.choice([0.0, 0.002, 0.02])
        # Billed before the first word. In a stream that is left in the middle nobody could know of it.
        thinking = 0 if asked.get("stream") else random.choice([0, 2_000])
        self.count(billed=thinking)
        time.sleep(random.choice([0.0, 0.05, 0.3]))
        if not asked.get("stream"):
            self.count(billed=words * 2)
            message = {"role": "assistant", "content": "word" * words}
            body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": usage(read, thinking + words * 2)}
            data = json.dumps(body).encode()
            to.send_response(200)
            to.send_header("content-type", "application/json")
            to.send_header("content-length", str(len(data)))
            to.end_headers()
            to.wfile.write(data)
            return
        to.send_response(200)
        to.send_header("content-type", "text/event-stream")
        to.send_header("transfer-encoding", "chunked")
        to.end_headers()
        for _ in range(words):
            self.count(billed=2)
            event(to, {"choices": [{"index": 0, "delta": {"content": "word"}}]})
            time.sleep(pause)
        event(to, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        time.sleep(pause * 5)
        event(to, {"choices": [], "usage": usage(read, thinking + words * 2)})
        chunk(to, b"data: [DONE]\n\n")
        to.wfile.write(b"0\r\n\r\n")

    def verdict(self, ask: invariants.Ask) -> tuple[list[str], str]:
        """What is wrong with what the platform counted, and the numbers."""
        sums = "COUNT(*), COALESCE(SUM(prompt_tokens + completion_tokens), 0), COALESCE(SUM(estimated), 0)"
        rows, counted, estimated = map(int, ask(f"SELECT {sums} FROM request_log WHERE type = 2")[0])
        billed, requests, left = (self.seen[what] for what in ("billed", "requests", "left"))
        wrong = [f"{billed} tokens were billed, {counted} are counted"] if counted < billed else []
        if rows < requests:
            wrong.append(f"{requests} requests reached the provider, {rows} are in the log")
        if not left or not estimated:
            wrong.append("nobody left in the middle")
        return wrong, f"{requests} requests, {left} cancelled, {estimated} estimated; {billed} tokens billed, {counted} counted"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def usage(read: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def event(to: Any, data: dict[str, Any]) -> None:
    chunk(to, f"data: {json.dumps(data)}\n\n".encode())


def chunk(to: Any, data: bytes) -> None:
    to.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
    to.wfile.flush()


def leave_all(port: int, people: list[tuple[str, str]], model: str, seconds: float, chance: random.Random) -> None:
    """All of them (token and instance) ask and hang up for so long, each again and again."""
    over = time.monotonic() + seconds

    def leaving(token: str, instance: str, own: random.Random) -> None:
        while time.monotonic() < over:
            hang_up(port, token, instance, model, own)

    threads = [threading.Thread(target=leaving, args=(*one, random.Random(chance.random()))) for one in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def hang_up(port: int, token: str, instance: str, model: str, chance: random.Random) -> None:
    """Asks, and leaves after a moment, whatever has come by then."""
    question = {"instance_id": instance, "message": "a " * chance.choice([5, 500, 20_000]), "model": model, "stream": chance.random() < 0.7}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        connection.request("POST", "/api/v1/me/chat", json.dumps(question), headers)
        connection.sock.settimeout(chance.choice([0.02, 0.1, 0.4, 5]))
        while connection.sock.recv(4096):
            if chance.random() < 0.05:
                break
    except OSError:
        pass  # it took longer than this one waits
    finally:
        connection.close()
