#!/usr/bin/env python3
"""torture.py BINARY [--minutes N] [--short] [--seed N]     what production does, all at once, and then whether anything is lost.

Employees claim, talk and give back, administrators make accounts and change instances, without a pause. Meanwhile, at random:

  PostgreSQL, three replicas   kill -9 of a replica, SIGTERM of one, a restart and a kill -9 of the database
  SQLite, one process          kill -9; the disk of the data folder full and free again (a small tmpfs)
  strangers                    bodies that never end, a burst of wrong passwords: bounded, and people get in meanwhile
  searches                     of a log of 2 million rows, abandoned as one types: nobody else waits, and names are found
  clock                        the wall clock of all processes jumps forth and back (libfaketime)
  a provider that bills        people hang up at any moment, and SIGTERM at the end: no less is counted than was billed
  a backlog                    10,000 background tasks of sick servers: a revoked user's key is off within 5 s
  silence                      connections to the database that are neither answered nor closed (a failover), replicas that stand still
                               (SIGSTOP), replicas with clocks a minute apart (not with --short)
  hosts                        servers crash and lose their cable (testbed/hosts.sh; not with --short)

Afterwards everything is started once more, and must come to rest: every write that was answered is there, the invariants hold,
no task or job is stuck. Each round prints what was done to it; the seed repeats the choice of faults, not their timing. Default
10 minutes; --short is one round of each, about a minute. Exit code 69: this machine cannot give what it takes. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from suite import backlog, invariants, outage, processes, searches, strangers
from suite.biller import Biller, leave_all
from suite.machine import TESTBED
from suite.site import Refused, Replica, Server, Site, call, enter_namespace, remove, room
from suite.workload import FAKETIME, INSTANCES, PASSWORD, UNKNOWN, Alone, Ledger, Load, populate, verdict

# ── the rounds ──

def on_postgres(binary: Path, folder: Path, seconds: float, chance: random.Random) -> bool:
    with ExitStack() as stack:
        site = Site(binary, folder, stack, 3, {"TIDEPOOL_TASK_LEASE_SECONDS": "5"})
        token, ledger, faults = site.login(site.replicas[0].admin), Ledger(), Counter[str]()
        people = populate(site.replicas[0].employee, site.replicas[0].admin, token, site.database.ask)

        with Load(site.ports, token, people, ledger):
            over = time.monotonic() + seconds
            while time.monotonic() < over:
                time.sleep(chance.uniform(0.5, 2.5))
                what = chance.choice(["kill -9 of a replica"] * 3 + ["SIGTERM of a replica", "restart of PostgreSQL", "kill -9 of PostgreSQL"])
                faults[what] += 1
                if "replica" in what:
                    victim = chance.choice(site.replicas)
                    victim.end(signal.SIGKILL if "kill" in what else signal.SIGTERM)
                    time.sleep(chance.uniform(0, 1))
                    victim.start()
                else:
                    site.database.end(signal.SIGKILL if "kill" in what else signal.SIGINT)
                    (folder / "pg/data/postmaster.pid").unlink(missing_ok=True)
                    time.sleep(chance.uniform(0, 1.5))
                    site.database.start()
                    site.database.wait()
                for replica in site.replicas:  # one that could not start without its database
                    if not replica.runs:
                        replica.start()
            for replica in site.replicas:
                start_again(replica)
        return verdict("PostgreSQL, three replicas", ledger, site.database.ask, faults)


def start_again(replica: Replica) -> None:
    """Until it is ready. One that was started while the database was away may end on its own a moment later."""
    deadline = time.monotonic() + 60
    while True:
        if not replica.runs:
            replica.start()
        try:
            return replica.wait()
        except RuntimeError:
            if time.monotonic() > deadline:
                raise


def soon(attempt: Any) -> bool:
    """Whether it goes well within ten seconds."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            attempt()
            return True
        except (Refused, *UNKNOWN):
            time.sleep(0.2)
    return False


def on_a_full_disk(binary: Path, folder: Path, seconds: float, chance: random.Random) -> bool:
    with ExitStack() as stack:
        disk = folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", disk], check=True)
        stack.callback(subprocess.run, ["umount", "-l", disk], check=False)
        alone = Alone(binary, disk, stack)
        ledger, faults = Ledger(), Counter[str]()
        with Load(alone.ports, alone.token, alone.people, ledger):
            over = time.monotonic() + seconds
            while time.monotonic() < over:
                time.sleep(chance.uniform(0.5, 2))
                what = chance.choice(["kill -9", "disk full"])
                faults[what] += 1
                if what == "kill -9":
                    alone.replica.end(signal.SIGKILL)
                else:
                    filler = disk / "filler"
                    with filler.open("wb", buffering=0) as out:
                        try:
                            while True:
                                out.write(b"x" * 4096)
                        except OSError:
                            pass  # no space left
                    time.sleep(chance.uniform(1, 3))
                    filler.unlink()
                    if not soon(lambda: call(alone.replica.admin, "POST", "/users", alone.token, {"email": f"{uuid.uuid4().hex}@example.test", "name": "x"})):
                        ledger.odd.append("with room on the disk again, nothing can be written for 10 s")
                if not alone.replica.runs:
                    alone.replica.start()
                    alone.replica.wait()
        whole = alone.ask("PRAGMA integrity_check")[0][0]
        if whole != "ok":
            print(f"FAIL SQLite: {whole}")
        return verdict("SQLite, one process", ledger, alone.ask, faults) and whole == "ok"


def on_a_jumping_clock(binary: Path, folder: Path, seconds: float, chance: random.Random) -> bool | None:
    if FAKETIME is None:
        print("left out: the clock's jumps, since there is no libfaketime (apt-get install libfaketime)")
        return None
    with ExitStack() as stack:
        offset = folder / "offset"
        offset.write_text("+0")
        # The wall clock alone: what measures how long something takes goes on.
        settings = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(offset), "FAKETIME_NO_CACHE": "1",
                    "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        alone = Alone(binary, folder, stack, settings)
        ledger, faults = Ledger(), Counter[str]()
        with Load(alone.ports, alone.token, alone.people, ledger):
            over = time.monotonic() + seconds
            while time.monotonic() < over:
                time.sleep(chance.uniform(1, 2))
                minutes = chance.choice([-90, -10, -1, 1, 10, 90])
                faults["jumps of the clock"] += 1
                new = folder / "offset.new"
                new.write_text(f"{minutes * 60:+d}")
                new.rename(offset)
            offset.write_text("+0")
        if int(alone.ask("SELECT MAX(created_at) - MIN(created_at) FROM audit_log")[0][0]) < seconds * 2000:
            print("FAIL the clock: it did not jump", flush=True)
            return False
        return verdict("the clock", ledger, alone.ask, faults)


def with_hosts(binary: Path, folder: Path, seconds: float, chance: random.Random) -> bool | None:
    """Servers that are asked all the time crash and are cut off; afterwards each is used as before."""
    looked = subprocess.run([TESTBED / "hosts.sh", "check"], capture_output=True, text=True, check=False)
    if looked.returncode != 0:
        print(f"left out: hosts, since {looked.stdout.strip()}")
        return None
    with ExitStack() as stack:
        hosts = Server([TESTBED / "hosts.sh", "run", "2", folder / "hosts"], folder / "hosts.log", dict(os.environ) | {"HOSTS_DOCKER": ""})
        stack.callback(hosts.end)
        hosts.start()
        deadline = time.monotonic() + 120
        while not (folder / "hosts/hosts.json").exists():
            if time.monotonic() > deadline or not hosts.runs:
                print(f"FAIL hosts: {(folder / 'hosts.log').read_text()[-300:]}")
                return False
            time.sleep(0.2)
        listed = json.loads((folder / "hosts/hosts.json").read_text())
        site = Site(binary, folder, stack, 2, {"TIDEPOOL_TASK_LEASE_SECONDS": "5"})
        first = site.replicas[0]
        token, ledger, faults = site.login(first.admin), Ledger(), Counter[str]()
        people = populate(first.employee, first.admin, token, site.database.ask)
        key = (folder / "hosts/id").read_text()
        names = [host["name"] for host in listed["hosts"]]
        for host in listed["hosts"]:
            call(first.admin, "POST", "/servers", token, {"id": host["name"], "name": host["name"], "host": host["relay"], "ssh_port": host["port"], "ssh_key": key})
            call(first.admin, "POST", "/assistant-instances", token, {"id": f"on-{host['name']}", "name": "x", "server_id": host["name"], "model": "claude-sonnet-4-6", "provision": True})

        def usable(name: str) -> bool:
            steps = call(first.admin, "POST", f"/servers/{name}/test", token, seconds=60)["steps"]
            return all(step["ok"] for step in steps if step["step"] in ("address", "host_key", "login", "sudo", "systemd"))

        def turn(*words: str) -> None:
            subprocess.run([TESTBED / "hosts.sh", words[0], folder / "hosts", *words[1:]], capture_output=True, check=True, timeout=120)

        def look_after() -> None:
            while not over.is_set():
                for path in ("/instances/health-check", *(f"/servers/{name}/detail" for name in names)):
                    try:
                        call(random.choice(site.replicas).admin, "GET", path, token, seconds=60)
                    except (Refused, *UNKNOWN):
                        pass

        over = threading.Event()
        looking = threading.Thread(target=look_after)
        with Load(site.ports, token, people, ledger):
            looking.start()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(chance.uniform(1, 3))
                what, name = chance.choice(["crash of a host", "pulled cable", "kill -9 of a replica"]), chance.choice(names)
                faults[what] += 1
                if what == "crash of a host":
                    turn("crash", name)
                    time.sleep(chance.uniform(0, 2))
                    turn("start", name)
                elif what == "pulled cable":
                    turn("cable", name, "down")
                    time.sleep(chance.uniform(1, 6))
                    turn("cable", name, "up")
                else:
                    victim = chance.choice(site.replicas)
                    victim.end(signal.SIGKILL)
                    victim.start()
                    victim.wait()
            over.set()
        looking.join()
        deadline = time.monotonic() + 60
        while not all(usable(name) for name in names) and time.monotonic() < deadline:
            time.sleep(1)
        unusable = [name for name in names if not usable(name)]
        if unusable:
            print(f"FAIL hosts: {', '.join(unusable)} cannot be used a minute after the last fault")
        return verdict("hosts", ledger, site.database.ask, faults) and not unusable


def among_strangers(binary: Path, folder: Path, _seconds: float, _chance: random.Random) -> bool:
    with ExitStack() as stack:
        alone = Alone(binary, folder, stack)
        port, email = alone.replica.employee, next(iter(alone.people))
        assert alone.replica.process
        wrong = strangers.unfinished_bodies(alone.replica.process.pid, port, email, PASSWORD) + strangers.burst(port, email, PASSWORD)
    for one in wrong:
        print(f"FAIL strangers: {one}", flush=True)
    return not wrong


def beside_abandoned_searches(binary: Path, folder: Path, seconds: float, chance: random.Random) -> bool:
    wrong = []
    with ExitStack() as stack:
        alone = Alone(binary, folder / "sqlite", stack)
        searches.fill_sqlite(alone.file)
        one = alone.replica
        wrong += searches.abandoned(one.employee, one.admin, alone.token, next(iter(alone.people.values())), seconds, chance)
        wrong += searches.found(one.admin, alone.token)
    with ExitStack() as stack:
        site = Site(binary, folder, stack, 1)
        one, token = site.replicas[0], site.login(site.replicas[0].admin)
        people = populate(one.employee, one.admin, token, site.database.ask)
        searches.fill_postgres(site.database.ask)
        wrong += searches.abandoned(one.employee, one.admin, token, next(iter(people.values())), seconds, chance)
        running = "SELECT query FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%FROM request_log%' AND pid <> pg_backend_pid()"
        if not processes.wait_until(lambda: not site.database.ask(running), site.database.process, 5):
            wrong.append("PostgreSQL still runs searches that nobody waits for")
        wrong += searches.found(one.admin, token)
    for line in wrong:
        print(f"FAIL abandoned searches: {line}", flush=True)
    return not wrong


def with_a_billing_provider(binary: Path, folder: Path, seconds: float, chance: random.Random) -> bool:
    with ExitStack() as stack:
        biller = Biller()
        stack.callback(biller.close)
        settings = {"TIDEPOOL_PROVIDER_OPENAI_URL": biller.url, "TIDEPOOL_PROVIDER_OPENAI_KEY": "of-a-simulated-provider"}
        alone = Alone(binary, folder, stack, settings)
        tokens = list(alone.people.values())[:INSTANCES]
        held = [call(alone.replica.employee, "POST", "/me/instances/claim", token, {})["instance"]["id"] for token in tokens]
        people = [pair for pair in zip(tokens, held, strict=True) for _ in range(4)]
        leave_all(alone.replica.employee, people, "gpt-4o", seconds, chance)
        took = alone.replica.end(signal.SIGTERM)
        wrong, numbers = biller.verdict(alone.ask)
        wrong += [f"stopping took {took:.0f} s"] if took > 15 else []
        wrong += invariants.broken(alone.ask)
        for line in wrong[:20]:
            print(f"FAIL a provider that bills: {line}", flush=True)
        print(f"{'FAIL' if wrong else 'ok '} a provider that bills: {numbers}", flush=True)
        return not wrong


def beside_a_backlog(binary: Path, folder: Path, _seconds: float, _chance: random.Random) -> bool:
    with ExitStack() as stack:
        gateway, sick = backlog.LiteLlm(), backlog.Sick(backlog.SERVERS)
        stack.callback(gateway.close)
        stack.callback(sick.close)
        site = Site(binary, folder, stack, 2, backlog.settings(gateway), tables=backlog.TABLES)
        token = site.login(site.replicas[0].admin)
        backlog.fleet(site, token, sick, folder)
        wrong, numbers = backlog.revoke_beside(site, token, gateway)
        wrong += invariants.broken(site.database.ask)
    for line in wrong[:20]:
        print(f"FAIL a backlog: {line}", flush=True)
    print(f"{'FAIL' if wrong else 'ok '} a backlog: {numbers}", flush=True)
    return not wrong


IN_EVERY_RUN = [on_postgres, on_a_full_disk, on_a_jumping_clock, among_strangers, beside_abandoned_searches,
                with_a_billing_provider, beside_a_backlog]
ROUNDS = [*IN_EVERY_RUN, with_hosts, outage.with_black_holes, outage.with_paused_processes, outage.with_clocks_apart]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--round", help="this one alone, by a part of its name")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    chosen = parser.parse_args(arguments)
    enter_namespace()
    processes.stop_on_signals()
    chance = random.Random(chosen.seed)
    rounds = IN_EVERY_RUN if chosen.short and not chosen.round else ROUNDS
    rounds = [one for one in rounds if not chosen.round or chosen.round in one.__name__]
    seconds = 10.0 if chosen.short else 45.0
    over = time.monotonic() + (0 if chosen.short else chosen.minutes * 60)
    print(f"seed {chosen.seed}", flush=True)
    went_well = True
    while True:
        for number, one in enumerate(rounds):
            if number and not chosen.short and time.monotonic() > over:
                break
            folder = room()
            try:
                went_well = one(chosen.binary.resolve(), folder, seconds, chance) is not False and went_well
            except (RuntimeError, OSError, Refused, subprocess.SubprocessError) as error:
                print(f"FAIL {one.__name__}: {error}", flush=True)
                went_well = False
            finally:
                remove(folder)
        if time.monotonic() >= over:
            return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
