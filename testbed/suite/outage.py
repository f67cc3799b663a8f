"""Rounds of torture.py in which nothing is closed and no error is reported: connections to the database that go silent, processes that stand
still, machines whose clocks differ."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import re
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from .site import PG_PORT, Replica, Site, call
from .workload import FAKETIME, Ledger, Load, populate, verdict

PROXY_PORT = 6432
RECOVERY = 90.0  # after the last fault: the limit of a statement, and some


class BlackHole:
    """A TCP proxy to PostgreSQL. After `fail_over` the connections there are stay open and silent on the clients' side, and are closed on
    the server's, as if it was gone; new ones are forwarded, as if another had taken over."""

    def __init__(self, port: int, target: int) -> None:
        self._port, self._target = port, target
        self._loop = asyncio.new_event_loop()
        self._pumps: set[asyncio.Task[None]] = set()
        self._kept: list[asyncio.StreamWriter] = []
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        if not self._listening.wait(10):
            raise RuntimeError("the proxy does not listen")

    def _run(self) -> None:
        async def listen() -> None:
            self._server = await asyncio.start_server(self._forward, "127.0.0.1", self._port)
            self._listening.set()

        self._loop.run_until_complete(listen())
        self._loop.run_forever()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._kept.append(writer)
        task = asyncio.current_task()
        assert task
        self._pumps.add(task)
        try:
            there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        try:
            ways = [asyncio.ensure_future(_pump(reader, there_writer)), asyncio.ensure_future(_pump(there_reader, writer))]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                writer.close()
            finally:
                for way in ways:
                    way.cancel()
        except asyncio.CancelledError:
            pass  # silent from now on: the client's side stays open
        finally:
            there_writer.transport.abort()
            self._pumps.discard(task)

    def fail_over(self) -> int:
        """How many connections went silent."""
        async def cut() -> int:
            pumps = list(self._pumps)
            for pump in pumps:
                pump.cancel()
            return len(pumps)

        return asyncio.run_coroutine_threadsafe(cut(), self._loop).result(10)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass


def asked(port: int, path: str) -> tuple[int, str]:
    """Status and text of what stands outside of the API; 0 where nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    except (OSError, http.client.HTTPException):
        return 0, ""
    finally:
        connection.close()


def oldest_beat(replica: Replica) -> float:
    """How long ago the slowest loop of a replica did its work."""
    ages = [float(age) for age in re.findall(r'^tidepool_loop_age_seconds\{loop="[^"]+"\} (\S+)$', asked(replica.admin, "/metrics")[1], re.M)]
    return max(ages, default=1e9)


def not_recovered(site: Site, token: str) -> list[str]:
    """Every replica must be ready, write, and have all its loops at work. Says what is not so after `RECOVERY`."""
    deadline, wrong = time.monotonic() + RECOVERY, ["never looked"]
    while wrong and time.monotonic() < deadline:
        wrong = []
        for replica in site.replicas:
            status, text = asked(replica.admin, "/readyz")
            if status != 200:
                wrong.append(f"replica {replica.number} is not ready: {status} {text[:200]}")
            elif (age := oldest_beat(replica)) > 20:
                wrong.append(f"a loop of replica {replica.number} last worked {age:.0f} s ago, and /readyz says 200")
            try:
                call(replica.admin, "POST", "/users", token, {"email": f"{time.monotonic_ns()}@example.test", "name": "x"})
            except Exception as error:  # whatever it is, it is not what people want to see
                wrong.append(f"replica {replica.number} cannot write: {error}")
        time.sleep(0.5)
    return wrong


def ended(name: str, wrong: list[str]) -> bool:
    for line in wrong:
        print(f"FAIL {name}: {line}", flush=True)
    return not wrong


def with_black_holes(binary: Path, folder: Path, seconds: float, chance: random.Random) -> bool:
    """PostgreSQL fails over under load, and the old one's connections are neither answered nor closed."""
    name = "black-holed connections"
    with ExitStack() as stack:
        hole = BlackHole(PROXY_PORT, PG_PORT)
        stack.callback(hole.close)
        settings = {"TIDEPOOL_TASK_LEASE_SECONDS": "5", "TIDEPOOL_DATABASE_URL": f"postgres://postgres@127.0.0.1:{PROXY_PORT}/postgres"}
        site = Site(binary, folder, stack, 3, settings)
        token, ledger, faults = site.login(site.replicas[0].admin), Ledger(), Counter[str]()
        people = populate(site.replicas[0].employee, site.replicas[0].admin, token, site.database.ask)
        with Load(site.ports, token, people, ledger):
            over = time.monotonic() + seconds
            while time.monotonic() < over:
                time.sleep(chance.uniform(3, 12))
                faults["silent connections"] += hole.fail_over()
                faults["failovers"] += 1
            wrong = not_recovered(site, token)
        return ended(name, wrong) and verdict(name, ledger, site.database.ask, faults)


def with_paused_processes(binary: Path, folder: Path, seconds: float, chance: random.Random) -> bool:
    """Replicas stand still for longer than their leases, and go on as if no time had passed."""
    name = "paused processes"
    with ExitStack() as stack:
        site = Site(binary, folder, stack, 3, {"TIDEPOOL_TASK_LEASE_SECONDS": "5"})
        token, ledger, faults = site.login(site.replicas[0].admin), Ledger(), Counter[str]()
        people = populate(site.replicas[0].employee, site.replicas[0].admin, token, site.database.ask)
        with Load(site.ports, token, people, ledger):
            over = time.monotonic() + seconds
            while time.monotonic() < over:
                time.sleep(chance.uniform(0.5, 2))
                victim = chance.choice(site.replicas)
                assert victim.process
                victim.process.send_signal(signal.SIGSTOP)
                try:
                    time.sleep(chance.uniform(6, 18))
                finally:
                    victim.process.send_signal(signal.SIGCONT)
                faults["pauses"] += 1
            wrong = not_recovered(site, token)
        return ended(name, wrong) and verdict(name, ledger, site.database.ask, faults)


def with_clocks_apart(binary: Path, folder: Path, seconds: float, _chance: random.Random) -> bool | None:
    """Three machines whose clocks are a minute apart: leases run by the database's, and whoever is off says so."""
    name = "clocks 60 s apart"
    if FAKETIME is None:
        print("left out: clocks that are apart, since there is no libfaketime (apt-get install libfaketime)")
        return None
    with ExitStack() as stack:
        def own(number: int) -> dict[str, str]:
            return {"LD_PRELOAD": str(FAKETIME), "FAKETIME": f"{60 * number - 60:+d}", "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

        site = Site(binary, folder, stack, 3, {"TIDEPOOL_TASK_LEASE_SECONDS": "5"}, own)
        # The first is behind: what it signs is valid for all.
        token, ledger, faults = site.login(site.replicas[0].admin), Ledger(), Counter[str]()
        people = populate(site.replicas[0].employee, site.replicas[0].admin, token, site.database.ask)
        with Load(site.ports, token, people, ledger):
            time.sleep(seconds)
        wrong = not_recovered(site, token)
        clocks = [json.loads(asked(replica.admin, "/readyz")[1] or "{}").get("data", {}).get("clock", {}).get("status") for replica in site.replicas]
        if clocks != ["off", "ok", "off"]:
            wrong.append(f"the clocks are said to be {clocks}")
        taken = int(site.database.ask("SELECT COUNT(*) FROM audit_log WHERE action = 'task.failed' AND detail LIKE '%its worker stopped answering%'")[0][0])
        gone = int(site.database.ask("SELECT COUNT(*) FROM job_run WHERE message = 'the process that ran it is gone'")[0][0])
        if taken or gone:
            wrong.append(f"{taken} tasks and {gone} runs of jobs were taken from workers that live")
        faults["replicas with clocks of their own"] = 3
        return ended(name, wrong) and verdict(name, ledger, site.database.ask, faults)
