#!/usr/bin/env python3
"""sdk_check.py BINARY [--sdk NAME] [--every-byte] [PART…]     the official SDKs of OpenAI and Anthropic, in Python and Node, against the embedded gateway:

  Every case of testbed/sdk/cases is asked straight of a recording upstream and through the gateway. What the upstream got is
  equal but for the key and the wish for a stream's usage; what the SDK returned is equal: objects, chunks in their order, errors, status,
  headers; and the request log counts what the upstream said.

A PART is one of a case's name: `chat`, `messages-cut`. With `!` in front such cases are left out. `--sdk` takes python or node. With
`--every-byte` streams are cut at, and left after, each byte of some events instead of a few; that takes minutes.
testbed/install.sh sdk installs the SDKs. Everything is on loopback. Python 3.11, no packages.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from sdk import compare
from sdk.cases import Case, all_cases
from sdk.cases.case import EMBEDDING, SPENT
from sdk.upstream import DIRECT, GATEWAY, PATHS, PROVIDERS, Upstream, key_of
from suite import invariants, processes
from suite.machine import CACHE, TESTBED, scratch
from suite.services import free_port
from suite.site import ADMIN_EMAIL, Refused, Server, call, keys

SDK = CACHE / "sdk"
DRIVERS = {
    "python": [str(SDK / "python/bin/python"), str(TESTBED / "sdk/drive.py")],
    "node": [str(SDK / "node/node_modules/node/bin/node"), str(TESTBED / "sdk/drive.mjs")],
}
BODY_SETTING = "TIDEPOOL_GATEWAY_BODY_MIB"
DRIVER_SECONDS = 900
SETTLE = 10.0  # until the last answer is in the log


def must_not_be_logged(*given: str) -> None:
    """For the part `secrets`, which searches the logs of a run for them."""
    if trace := os.environ.get("TIDEPOOL_TEST_TRACE_DIR"):
        with Path(trace, "secrets.txt").open("a", encoding="utf-8") as known:
            known.writelines(f"{one}\n" for one in given)


class Tidepool(Server):
    """The binary on SQLite, with the recording upstream for its providers."""

    def __init__(self, binary: Path, folder: Path, upstream: Upstream) -> None:
        self.folder, self.password = folder, secrets.token_urlsafe(12)
        sides = ("EMPLOYEE", "ADMIN", "GATEWAY", "EMBED")
        ports = {side: free_port() for side in sides}
        self.admin, self.gateway = ports["ADMIN"], ports["GATEWAY"]
        env = {name: value for name, value in os.environ.items() if not name.startswith("TIDEPOOL_")}
        env |= keys() | {f"TIDEPOOL_{side}_LISTEN": f"127.0.0.1:{port}" for side, port in ports.items()}
        env |= {
            "TIDEPOOL_DATA_DIR": str(folder / "data"),
            "TIDEPOOL_BOOTSTRAP_ADMIN_EMAIL": ADMIN_EMAIL,
            "TIDEPOOL_BOOTSTRAP_ADMIN_PASSWORD": self.password,
            "TIDEPOOL_LOG_FORMAT": "json",
        }
        if BODY_SETTING in subprocess.check_output([binary, "settings"], text=True, env=env):
            env[BODY_SETTING] = "32"  # an older binary has no such setting, and refuses bodies of 20 MB
        for provider in PROVIDERS:
            env |= {f"TIDEPOOL_PROVIDER_{provider.upper()}_URL": upstream.url, f"TIDEPOOL_PROVIDER_{provider.upper()}_KEY": key_of(GATEWAY, provider)}
        must_not_be_logged(self.password, *(key_of(GATEWAY, provider) for provider in PROVIDERS))
        self.log = Path(os.environ.get("TIDEPOOL_TEST_TRACE_DIR") or folder) / "sdk.log"
        super().__init__([binary, "serve"], self.log, env, folder)

    def wait(self, seconds: float = 60) -> None:
        assert self.process
        if not processes.wait_until(self.answers, self.process, seconds):
            raise RuntimeError(f"tidepool did not become ready: {self.log.read_text(errors='replace')[-600:]}")

    def answers(self) -> bool:
        try:
            call(self.admin, "POST", "/auth/login", body={"email": ADMIN_EMAIL, "password": self.password})
        except (OSError, Refused):
            return False
        return True

    def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """What an administrator makes; the answer's data."""
        token = call(self.admin, "POST", "/auth/login", body={"email": ADMIN_EMAIL, "password": self.password})["token"]
        return call(self.admin, "POST", path, token, body)

    def sub_key(self, name: str, quota: int | None = None) -> str:
        """A key without an instance, since only such a one is shown."""
        key = self.create("/keys", {"name": name, "quota": quota})["secret"]
        must_not_be_logged(key)
        return key

    def add_model(self, name: str) -> None:
        """As the release's table knows it; the gateway reads models every two seconds."""
        self.create("/models", {"id": name, "from_table": name})
        time.sleep(2.5)

    def ask(self, sql: str) -> list[tuple[str, ...]]:
        return [tuple(str(value) for value in row) for row in self._query(sql)]

    def rows(self, key_name: str) -> dict[str, compare.Row]:
        """Of a key, and of those whose names begin with its name."""
        return {row["request_id"]: dict(row) for row in self._query(f"SELECT * FROM request_log WHERE token_name = '{key_name}' OR token_name LIKE '{key_name}-%'")}

    def _query(self, sql: str) -> list[sqlite3.Row]:
        with closing(sqlite3.connect(f"file:{self.folder}/data/tidepool.db?mode=ro", uri=True, timeout=20)) as database:
            database.row_factory = sqlite3.Row
            return database.execute(sql).fetchall()


def drive(
    name: str, cases: list[Case], upstream: Upstream, tidepool: Tidepool, sub_key: str, others: dict[str, str]
) -> dict[tuple[str, str], compare.Steps]:
    """What the SDKs of a language returned, by case and target. A step may be asked by one of the `others`: sub keys, by their names."""
    targets = {
        DIRECT: {"url": upstream.url, "paths": PATHS, "keys": {provider: key_of(DIRECT, provider) for provider in PROVIDERS}, "others": {}},
        GATEWAY: {"url": f"http://127.0.0.1:{tidepool.gateway}", "paths": {}, "keys": dict.fromkeys(PROVIDERS, sub_key), "others": others},
    }
    env = {key: value for key, value in os.environ.items() if not key.upper().endswith("_PROXY")} | {
        "SDK_MODULES": str(SDK / "node/node_modules"),
        "NODE_NO_WARNINGS": "1",
    }
    plan = json.dumps({"targets": targets, "cases": [case.plan() for case in cases]})
    done = subprocess.run(DRIVERS[name], input=plan, env=env, capture_output=True, text=True, timeout=DRIVER_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(f"the driver for {name} ended with {done.returncode}: {done.stderr[-1500:]}")
    return {(line["case"], line["target"]): line["steps"] for line in map(json.loads, done.stdout.rstrip("\n").split("\n"))}


def settled(tidepool: Tidepool, key_name: str, cases: list[Case], upstream: Upstream) -> dict[str, compare.Row]:
    """The log, once every request that the upstream has answered is in it."""
    counted = {case.name for case in cases if case.counts}
    billed = sum(one.side == GATEWAY and one.usage is not None and one.case in counted for one in upstream.recorded)
    deadline = time.monotonic() + SETTLE
    while True:
        rows = tidepool.rows(key_name)
        logged = sum(row["type"] == 2 or row["estimated"] == 1 for row in rows.values())
        if logged >= billed or time.monotonic() > deadline:
            break
        time.sleep(0.1)
    if logged < billed:
        print(f"FAIL {key_name}: the upstream answered {billed} requests, {logged} are in the request log", flush=True)
    return rows


def problems(case: Case, returned: dict[tuple[str, str], compare.Steps], upstream: Upstream, rows: dict[str, compare.Row], sub_key: str) -> list[str]:
    direct, gateway = returned.get((case.name, DIRECT)), returned.get((case.name, GATEWAY))
    if direct is None or gateway is None:
        return ["it did not run"]
    asked = upstream.of(case.name, GATEWAY)
    found = [*compare.request_problems(case, upstream.of(case.name, DIRECT), asked, sub_key), *compare.answer_problems(case, direct, gateway)]
    if case.leaves:
        found += compare.leaving_problems(case, asked, 5)
    return [*found, *compare.row_problems(case, gateway, asked, rows)]


def run(name: str, cases: list[Case], upstream: Upstream, tidepool: Tidepool) -> bool:
    """All cases with the SDKs of one language. Whether all is well."""
    upstream.forget()
    began, sub_key = time.monotonic(), tidepool.sub_key(f"sdk-{name}")
    named = sorted({step["by"] for case in cases for step in case.steps if "by" in step})
    others = {by: tidepool.sub_key(f"sdk-{name}-{by}", quota=0 if by == SPENT else None) for by in named}
    returned = drive(name, cases, upstream, tidepool, sub_key, others)
    rows = settled(tidepool, f"sdk-{name}", cases, upstream)
    passed: Counter[str] = Counter()
    for case in cases:
        protocol = case.name.split("-")[0]
        found = problems(case, returned, upstream, rows, sub_key)
        passed[protocol] += not found
        if found:
            print(f"FAIL {name} {case.name}: {'; '.join(found)}"[:1500], flush=True)
    for protocol, count in (+passed).items():
        print(f"ok  {name} {protocol}: {count} cases", flush=True)
    print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)
    return sum(passed.values()) == len(cases)


def chosen(parts: list[str], every_byte: bool = False) -> list[Case]:
    wanted, unwanted = [part for part in parts if part[0] != "!"], [part[1:] for part in parts if part[0] == "!"]
    return [
        case
        for case in all_cases(every_byte)
        if (not wanted or any(part in case.name for part in wanted)) and not any(part in case.name for part in unwanted)
    ]


def main(arguments: list[str]) -> int:
    names = list(DRIVERS)
    if "--sdk" in arguments:
        at = arguments.index("--sdk")
        names, arguments = arguments[at + 1 : at + 2], arguments[:at] + arguments[at + 2 :]
    every_byte, arguments = "--every-byte" in arguments, [one for one in arguments if one != "--every-byte"]
    cases = chosen(arguments[1:], every_byte)
    if not arguments or not cases or any(name not in DRIVERS for name in names):
        print(__doc__, file=sys.stderr)
        return 2
    processes.stop_on_signals()
    with tempfile.TemporaryDirectory(prefix=f"tidepool-sdk-{os.getpid()}-", dir=scratch()) as folder, ExitStack() as stack:
        upstream = Upstream()
        stack.callback(upstream.close)
        tidepool = Tidepool(Path(arguments[0]).resolve(), Path(folder), upstream)
        stack.callback(tidepool.end)
        try:
            tidepool.start()
            tidepool.wait()
            tidepool.add_model(EMBEDDING)
            fine = [run(name, cases, upstream, tidepool) for name in names]
            broken = list(invariants.broken(tidepool.ask))
        except (RuntimeError, OSError, Refused, subprocess.TimeoutExpired) as error:
            print(f"FAIL {error}", flush=True)
            return 1
    print(f"FAIL {'; '.join(broken)}" if broken else f"ok  {len(invariants.rules())} invariants hold", flush=True)
    return 0 if all(fine) and not broken else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
