#!/usr/bin/env python3
"""run.py [PART…]     the test suite behind `make test`; without a PART all of them, in this order:
run.py --load       all of them beside a load on every core and the disk (`make flaky`)
run.py --test NAME  one test, by a part of its name, with the set-up of the part that has it (`make test TEST=NAME`)

  setup     installs what is missing, starts a private PostgreSQL, an OpenID provider and four hosts (always runs first)
  web       builds both web apps, runs their unit tests
  rust      every Rust test
  api       both APIs against their OpenAPI documents, in a network namespace of its own
  docs      runs the blocks of docs/ that say that they are tests, looks up what the pages name
  sdk       the official SDKs of OpenAI and Anthropic, straight against a recording upstream and through the embedded gateway
  scaleout  three replicas behind nginx: any request on any of them, a rolling restart under load
  torture   kills, restarts, a full disk and a jumping clock under load, then whether anything is lost (`make torture` is the long form)
  browser   end-to-end tests in Chromium
  secrets   searches everything that was logged for the secrets that the tests used
  real      what needs the real OpenClaw; only when it is named (`make test-real`)
  unit      what needs no root, no server and no browser; only when it is named (`make unit`)

It ends with a table of counts and times, the named skips, what failed with its first lines, and `N passed, N failed, N skipped`.
With CI=true a skip is a failure. What failed tests left is in the folder that it names last.
testbed/README.md says what the tests are given. Python 3.11, no packages.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from suite import processes
from suite.load import Load
from suite.machine import CI, InstallationBroke, Run, new_run
from suite.one import part_of
from suite.parts import NEEDS, ONLY_WHEN_NAMED, PARTS, setup
from suite.result import Result, exit_status, summary


def timed(run: Run, name: str, part: Callable[[Result], None]) -> Result:
    """Runs one part. Whatever goes wrong in it is a failure of that part, not the end of the run."""
    print(f"\n── {name} ──", flush=True)
    result, start = Result(name), time.monotonic()
    try:
        part(result)
    except (InstallationBroke, OSError) as broke:
        result.fail(str(broke))
    for stray in processes.reap_strays(run.pids):
        result.notes.append(f"left a process running, which was ended: {stray}")
    result.seconds = time.monotonic() - start
    run.done.add(name)
    return result


def main(arguments: list[str]) -> int:
    only, loaded = None, arguments[:1] == ["--load"]
    arguments = arguments[1:] if loaded else arguments
    if arguments[:1] == ["--test"] and len(arguments) == 2:
        only = arguments[1]
        if (part := part_of(only)) is None:
            print(f"run.py: no test has {only!r} in its name", file=sys.stderr)
            return 2
        arguments = [part]
    unknown = [name for name in arguments if name not in NEEDS]
    if unknown:
        print(__doc__, f"\nrun.py: no such part: {' '.join(unknown)}", file=sys.stderr)
        return 2
    chosen = [name for name in NEEDS if name in arguments or (not arguments and name not in ONLY_WHEN_NAMED)]
    processes.stop_on_signals()
    processes.adopt_orphans()
    run = new_run()
    run.only = only
    results: list[Result] = []
    with ExitStack() as servers:
        results.append(timed(run, "setup", lambda result: setup(run, chosen, servers, result)))
        run.load = Load(run.folder, servers, run.pids) if loaded else None
        for name in chosen:
            if name != "setup":
                results.append(timed(run, name, lambda result, name=name: PARTS[name](run, result)))
    if run.failed.exists():
        print(f"\nWhat failed tests left: {run.failed}", flush=True)
    print(summary(results, CI), flush=True)
    return exit_status(results, CI)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
