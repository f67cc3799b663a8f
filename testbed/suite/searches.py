"""Searches of a request log of two million rows that are abandoned as one types: nobody else may wait for them, and what one searches for
is found. For testbed/torture.py; packets go to loopback alone."""

from __future__ import annotations

import http.client
import random
import sqlite3
import threading
import time
import urllib.parse
from contextlib import suppress
from pathlib import Path
from typing import Any

from .site import Refused, call

ROWS = 2_000_000
TYPISTS = 9  # as many as once stopped the platform
MOST_WAIT = 3.0  # seconds that anybody else may wait meanwhile
MOST_SEARCH = 1.0  # seconds for a search when nobody else searches
RECENT, OLD = "张伟", "李娜"  # the names of two people, in a row of the last minutes and in the oldest
STEPS = 8

# Failed requests, one each second until now: sums are of successful ones, so the invariants of sums hold.
FILL = (
    "INSERT INTO request_log (request_id, token_name, model, provider, type, is_stream, prompt_tokens, completion_tokens, quota, "
    "duration_ms, error_message, estimated, created_at) WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers "
    f"WHERE n < {ROWS}) SELECT 'fill-' || n, 'nobody', 'gpt-4o', 'openai', 5, 0, 0, 0, 0, 12, CASE n WHEN 1 THEN 'asked by {OLD} on Monday' "
    f"WHEN {ROWS - 300} THEN 'asked by {RECENT} just now' ELSE 'the provider answered 500 to request ' || n END, 0, "
    f"{{now}} - ({ROWS} - n) * 1000 FROM numbers"
)


def fill_sqlite(file: Path) -> None:
    database = sqlite3.connect(file, timeout=60, isolation_level=None)
    try:
        database.execute(FILL.format(now=int(time.time() * 1000)))
    finally:
        database.close()


def fill_postgres(ask: Any) -> None:
    ask(FILL.format(now=int(time.time() * 1000)))
    ask("ANALYZE request_log")


def searched(text: str, before: str = "") -> str:
    also = f"&search_before={urllib.parse.quote(before)}" if before else ""
    return f"/llm-request-logs?q={urllib.parse.quote(text)}&limit=5{also}"


def typing(port: int, token: str, over: threading.Event, chance: random.Random) -> None:
    """A word letter by letter; each search is given up for the next."""
    while not over.is_set():
        for length in range(1, 7):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            with suppress(OSError, http.client.HTTPException):
                connection.request("GET", f"/api/v1{searched('zzzzzz'[:length])}", headers={"Authorization": f"Bearer {token}"})
                over.wait(chance.uniform(0.02, 0.2))
            connection.close()


def abandoned(employee: int, admin: int, token: str, person: str, seconds: float, chance: random.Random) -> list[str]:
    """What somebody else has to wait for while all type; `person` is an employee's token."""
    over = threading.Event()
    threads = [threading.Thread(target=typing, args=(admin, token, over, random.Random(chance.random()))) for _ in range(TYPISTS)]
    for thread in threads:
        thread.start()
    wrong, worst, asked = [], 0.0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for port, path, who in ((employee, "/me/instances", person), (admin, "/users?limit=5", token), (admin, "/llm-request-logs?limit=5", token)):
            began = time.monotonic()
            try:
                call(port, "GET", path, who, seconds=30)
            except (Refused, OSError, http.client.HTTPException) as error:
                wrong.append(f"{path} while others search: {error}")
            worst, asked = max(worst, time.monotonic() - began), asked + 1
        time.sleep(0.05)
    over.set()
    for thread in threads:
        thread.join()
    if worst > MOST_WAIT:
        wrong.append(f"somebody waited {worst:.1f} s while others search")
    print(f"searches: {TYPISTS} typists abandoned searches of {ROWS:,} rows for {seconds:.0f} s; {asked} other requests, the slowest {worst:.2f} s", flush=True)
    return wrong[:5]


def found(admin: int, token: str) -> list[str]:
    """A name of two characters is found among the newest rows within a second, and in the oldest by searching further back."""
    wrong, took = [], float("inf")
    # The best of three: what else the machine does is not the subject.
    for _ in range(3):
        began = time.monotonic()
        answer = call(admin, "GET", searched(RECENT), token, seconds=30)
        took = min(took, time.monotonic() - began)
    if answer["total"] != 1 or not answer["searched_since"]:
        wrong.append(f"a search for {RECENT} found {answer['total']}, back to {answer['searched_since']}")
    if took > MOST_SEARCH:
        wrong.append(f"a search took {took:.1f} s")
    before, steps, slowest = "", 0, 0.0
    while steps < STEPS:
        began = time.monotonic()
        answer = call(admin, "GET", searched(OLD, before), token, seconds=30)
        steps, slowest = steps + 1, max(slowest, time.monotonic() - began)
        if answer["total"] or not answer["searched_since"]:
            break
        before = answer["searched_since"]
    if answer["total"] != 1:
        wrong.append(f"{OLD} is not found in {steps} steps")
    print(f"searches: {RECENT} was found in {took:.2f} s, {OLD} in {steps} steps of {slowest:.2f} s at most", flush=True)
    return wrong
