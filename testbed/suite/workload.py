"""People and administrators at work, and whether anything of it is lost: the load of torture.py's rounds and their verdict."""

from __future__ import annotations

import http.client
import sqlite3
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from . import invariants
from .site import ADMIN_EMAIL, Refused, Replica, call, keys

PASSWORD = "a long password"
PEOPLE, INSTANCES = 6, 4  # fewer instances than people: claims are fought over
UNKNOWN = (OSError, http.client.HTTPException)  # nobody knows what became of the request
FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)


class Ledger:
    """What was answered, and so must be there."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users: list[str] = []
        self.chats: list[tuple[str, str]] = []  # instance, words
        self.claims: list[tuple[str, str]] = []  # person, instance
        self.returns = Counter()  # by person
        self.notes: dict[str, tuple[int, int]] = {}  # instance -> the last that was answered, the last that was tried
        self.outcomes: Counter[str] = Counter()
        self.odd: list[str] = []

    def count(self, what: str, error: Exception | None = None) -> None:
        with self.lock:
            if error is None:
                self.outcomes[f"{what} answered"] += 1
            elif isinstance(error, Refused) and error.status < 500:
                self.outcomes[f"{what} refused"] += 1
                # The refusals that people may get while things break.
                if error.code not in ("4090", "4091", "4092", "4040", "4290"):
                    self.odd.append(f"{what}: {error}")
            else:
                self.outcomes[f"{what} failed"] += 1


class Load:
    """People and administrators, until it is over. `ports` gives a replica's (employee, admin) at random."""

    def __init__(self, ports: Any, admin: str, people: dict[str, str], ledger: Ledger) -> None:
        self.ports, self.admin, self.people, self.ledger = ports, admin, people, ledger
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.working, args=(self.employee, email)) for email in people]
        self.threads += [threading.Thread(target=self.working, args=(self.administrator, number)) for number in range(2)]

    def __enter__(self) -> Load:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join()

    def working(self, part: Any, *arguments: Any) -> None:
        try:
            part(*arguments)
        except Exception as error:  # an answer that nobody expected ends the run's good name, not the run
            with self.ledger.lock:
                self.ledger.odd.append(f"{part.__name__}: {error!r}")

    def tried(self, what: str, method: str, path: str, token: str, body: Any = None, side: int = 0) -> Any:
        """The data, or None where it was refused or failed."""
        try:
            data = call(self.ports()[side], method, path, token, body, seconds=10)
            self.ledger.count(what)
            return data if data is not None else {}
        except (Refused, *UNKNOWN) as error:
            self.ledger.count(what, error)
            if isinstance(error, OSError):
                time.sleep(0.05)  # nobody listens
            return None

    def employee(self, email: str) -> None:
        token, ledger, mine = self.people[email], self.ledger, None
        while not self.over.is_set():
            held = self.tried("list", "GET", "/me/instances", token)
            if held is None:
                continue
            mine = held["instances"][0]["id"] if held["instances"] else None
            if mine is None:
                claimed = self.tried("claim", "POST", "/me/instances/claim", token, {})
                if claimed:
                    with ledger.lock:
                        ledger.claims.append((email, claimed["instance"]["id"]))
                else:
                    time.sleep(0.02)
                continue
            for _ in range(3):
                words = uuid.uuid4().hex
                if (answer := self.tried("chat", "POST", "/me/chat", token, {"instance_id": mine, "message": words})) is not None:
                    with ledger.lock:
                        ledger.chats.append((mine, words))
                        if answer["content"] != words:
                            ledger.odd.append(f"said {words}, heard {answer['content']}")
            if self.tried("return", "DELETE", f"/me/instances/{mine}/claim", token) is not None:
                with ledger.lock:
                    ledger.returns[email] += 1

    def administrator(self, number: int) -> None:
        """Each has an instance of its own to write to, so that the last note is known."""
        ledger, mine, note = self.ledger, f"i{number}", 0
        while not self.over.is_set():
            email = f"{uuid.uuid4().hex}@example.test"
            if self.tried("user", "POST", "/users", self.admin, {"email": email, "name": "x"}, side=1) is not None:
                with ledger.lock:
                    ledger.users.append(email)
            note += 1
            with ledger.lock:
                answered, _ = ledger.notes.get(mine, (0, 0))
                ledger.notes[mine] = (answered, note)
            if self.tried("note", "PATCH", f"/assistant-instances/{mine}", self.admin, {"notes": str(note)}, side=1) is not None:
                with ledger.lock:
                    ledger.notes[mine] = (note, note)


def populate(employee: int, admin: int, token: str, write: Callable[[str], object]) -> dict[str, str]:
    """A server that is not there, idle instances, people. Answers the people's tokens."""
    call(admin, "POST", "/servers", token, {"id": "s1", "name": "nowhere", "host": "192.0.2.1"})
    for number in range(INSTANCES):
        call(admin, "POST", "/assistant-instances", token, {"id": f"i{number}", "name": f"i{number}", "server_id": "s1", "model": "claude-sonnet-4-6"})
    # Only what is on its server is given out.
    write("UPDATE instance SET home = '/srv/assistants/' || id, isolation = 'own', runs_as = 'assistant-' || id WHERE server_id = 's1'")
    people = {}
    for number in range(PEOPLE):
        email = f"p{number}@example.test"
        call(admin, "POST", "/users", token, {"email": email, "name": email, "password": PASSWORD})
        people[email] = call(employee, "POST", "/auth/login", body={"email": email, "password": PASSWORD})["token"]
    return people


def lost(ledger: Ledger, ask: invariants.Ask) -> list[str]:
    """Answered writes that are not there, or there twice."""
    wrong = list(ledger.odd[:5])
    users = {row[0] for row in ask("SELECT email FROM users")}
    wrong += [f"the account {email} was answered and is not there" for email in ledger.users if email not in users]
    said = Counter((row[0], row[1], row[2]) for row in ask("SELECT instance_id, role, content FROM chat_message"))
    for instance, words in ledger.chats:
        for role in ("user", "assistant"):
            if said[instance, role, words] != 1:
                wrong.append(f"the {role}'s words {words} are stored {said[instance, role, words]} times")
    logged = int(ask("SELECT COUNT(*) FROM request_log WHERE type = 2")[0][0])
    if logged < len(ledger.chats):
        wrong.append(f"{len(ledger.chats)} chats were answered, {logged} are in the request log")
    bound = Counter((row[0], row[1]) for row in ask("SELECT u.email, b.instance_id FROM binding b JOIN users u ON u.id = b.user_id"))
    for (email, instance), times in Counter(ledger.claims).items():
        if bound[email, instance] < times:
            wrong.append(f"{email} claimed {instance} {times} times, {bound[email, instance]} are there")
    ended = Counter(row[0] for row in ask("SELECT u.email FROM binding b JOIN users u ON u.id = b.user_id WHERE b.ended_at IS NOT NULL"))
    wrong += [f"{email} gave back {times} times, {ended[email]} are there" for email, times in ledger.returns.items() if ended[email] < times]
    kept = {row[0]: int(row[1] or 0) for row in ask("SELECT id, notes FROM instance WHERE notes <> ''")}
    for instance, (answered, tried) in ledger.notes.items():
        if not answered <= kept.get(instance, 0) <= tried:
            wrong.append(f"note {answered} of {instance} was answered, {kept.get(instance, 0)} is there")
    return wrong


def at_rest(ask: invariants.Ask, seconds: float) -> list[str]:
    """Waits until nothing runs on a lease of the dead; what is stuck is named."""
    stuck = "SELECT id FROM task WHERE status = 'processing' AND lease_until < {now} UNION ALL SELECT job_name FROM job_run WHERE status = 'running' AND lease_until < {now}"
    deadline = time.monotonic() + seconds
    while True:
        found = ask(stuck.format(now=int(time.time() * 1000) - 15_000))
        if not found or time.monotonic() > deadline:
            return [f"stuck for more than 15 s after its lease: {row[0]}" for row in found[:5]]
        time.sleep(0.5)


def verdict(name: str, ledger: Ledger, ask: invariants.Ask, faults: Counter[str]) -> bool:
    # The gateway loads its log by itself, that of the dead included; leases of the dead run out.
    deadline = time.monotonic() + 20
    while int(ask("SELECT COUNT(*) FROM request_log WHERE type = 2")[0][0]) < len(ledger.chats) and time.monotonic() < deadline:
        time.sleep(0.3)
    wrong = [*lost(ledger, ask), *invariants.broken(ask), *at_rest(ask, 60)]
    for line in wrong[:20]:
        print(f"FAIL {name}: {line}", flush=True)
    done = ", ".join(f"{count} {what}" for what, count in sorted(faults.items()))
    numbers = ", ".join(f"{count} {what}" for what, count in sorted(ledger.outcomes.items()) if not what.startswith("list"))
    print(f"{'FAIL' if wrong else 'ok '} {name}: {done}; {numbers}; {len(invariants.rules())} invariants", flush=True)
    return not wrong


class Alone:
    """One process on SQLite in a folder of its own."""

    def __init__(self, binary: Path, folder: Path, stack: ExitStack, settings: dict[str, str] | None = None) -> None:
        self.file = folder / "replica/data/tidepool.db"
        wanted = keys() | {"TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL": ADMIN_EMAIL, "TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD": PASSWORD,
                           "TIDEPOOL_TASK_LEASE_SECONDS": "5"} | (settings or {})
        self.replica = Replica(binary, 0, folder / "replica", wanted)
        stack.callback(self.replica.end)
        self.replica.start()
        self.replica.wait()
        self.token = call(self.replica.admin, "POST", "/auth/login", body={"email": ADMIN_EMAIL, "password": PASSWORD})["token"]
        self.people = populate(self.replica.employee, self.replica.admin, self.token, self.write)
        self.ports = lambda: (self.replica.employee, self.replica.admin)

    def write(self, sql: str) -> None:
        database = sqlite3.connect(self.file, timeout=20)
        try:
            with database:
                database.execute(sql)
        finally:
            database.close()

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        database = sqlite3.connect(f"file:{self.file}?mode=ro", uri=True, timeout=20)
        try:
            return [tuple("" if value is None else str(value) for value in row) for row in database.execute(sql)]
        finally:
            database.close()
