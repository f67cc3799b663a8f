"""Strangers at the sign-in of a running server: bodies that never end, and a burst of wrong passwords. What they may take is bounded, and
whoever belongs here gets in meanwhile. For testbed/torture.py; packets go to loopback alone."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path

BODIES, BODY, SENT = 1500, 1 << 20, 1000 << 10
MOST_MEMORY = 200 << 20  # bytes that all of them together may cost
ADDRESSES, TRIES = 60, 8
MOST_WAIT = 10.0  # seconds until somebody with the right password is in
RIGHT_ANSWERS = {401, 429, 503}


def memory(pid: int) -> int:
    """Bytes of memory that the process holds."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def log_in(port: int, email: str, password: str, address: str = "127.0.0.1") -> tuple[int, str]:
    """The status of a sign-in from this address, and its Retry-After."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30, source_address=(address, 0))
    try:
        body = json.dumps({"email": email, "password": password})
        connection.request("POST", "/api/v1/auth/login", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers.get("Retry-After", "")
    finally:
        connection.close()


def gets_in(port: int, email: str, password: str) -> float | None:
    """Seconds until the right password was accepted; a 503 is tried again."""
    began = time.monotonic()
    while time.monotonic() - began < MOST_WAIT:
        if log_in(port, email, password, "127.0.3.1")[0] == 200:
            return time.monotonic() - began
        time.sleep(0.1)
    return None


def unfinished_bodies(pid: int, port: int, email: str, password: str) -> list[str]:
    before = memory(pid)
    with ExitStack() as stack:
        for _ in range(BODIES):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            one.sendall(f"POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {BODY}\r\n\r\n".encode())
            with suppress(OSError):  # refused, and closed
                one.sendall(b" " * SENT)
        time.sleep(1)
        cost, waited = memory(pid) - before, gets_in(port, email, password)
    print(f"strangers: {BODIES} unfinished bodies cost {cost >> 20} MiB (at most {MOST_MEMORY >> 20}); somebody was in after {shown(waited)}", flush=True)
    return [*(["they cost too much memory"] if cost > MOST_MEMORY else []), *([] if waited is not None else ["nobody gets in meanwhile"])]


def burst(port: int, email: str, password: str) -> list[str]:
    answers: Counter[int] = Counter()
    lock = threading.Lock()

    def guess(number: int) -> None:
        for again in range(TRIES):
            try:
                status, retry = log_in(port, email, f"wrong {again}", f"127.0.{4 + number // 200}.{1 + number % 200}")
            except OSError:
                status, retry = 0, ""
            with lock:
                answers[status if status != 503 or retry else 500] += 1

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(ADDRESSES)]
    for thread in threads:
        thread.start()
    waited = gets_in(port, email, password)
    for thread in threads:
        thread.join()
    print(f"strangers: {sum(answers.values())} wrong passwords from {ADDRESSES} addresses: {dict(answers)}; the right one was in after {shown(waited)}", flush=True)
    odd = {status: count for status, count in answers.items() if status not in RIGHT_ANSWERS}
    return [*([f"odd answers: {odd}"] if odd else []), *([] if waited is not None else ["the right password does not get in"])]


def shown(waited: float | None) -> str:
    return f"{waited:.1f} s" if waited is not None else f"more than {MOST_WAIT:.0f} s"
