#!/usr/bin/env python3
"""run.py [PART…]     the test suite behind `make test`; without a PART all of them, in this order:

  setup     installs what is missing, starts a private PostgreSQL, an OpenID provider and four hosts (always runs first)
  web       builds both web apps, runs their unit tests
  rust      every Rust test
  api       both APIs against their OpenAPI documents, in a network namespace of its own
  docs      runs the blocks of docs/ that say that they are tests, looks up what the pages name
  scaleout  three replicas behind nginx: any request on any of them, a rolling restart under load
  torture   kills, restarts, a full disk and a jumping clock under load, then whether anything is lost (`make torture` is the long form)
  browser   end-to-end tests in Chromium
  secrets   searches everything that was logged for the secrets that the tests used
  real      what needs the real OpenClaw; only when it is named (`make test-real`)

It ends with a table, the named skips, and `N passed, N failed, N skipped`. With CI=true a skip is a failure.
testbed/README.md says what the tests are given. Python 3.11, no packages.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from suite import processes
from suite.machine import CI, InstallationBroke, Run, new_run
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
    unknown = [name for name in arguments if name not in NEEDS]
    if unknown:
        print(__doc__, f"\nrun.py: no such part: {' '.join(unknown)}", file=sys.stderr)
        return 2
    chosen = [name for name in NEEDS if name in arguments or (not arguments and name not in ONLY_WHEN_NAMED)]
    processes.stop_on_signals()
    processes.adopt_orphans()
    run = new_run()
    results: list[Result] = []
    with ExitStack() as servers:
        results.append(timed(run, "setup", lambda result: setup(run, chosen, servers, result)))
        for name in chosen:
            if name != "setup":
                results.append(timed(run, name, lambda result, name=name: PARTS[name](run, result)))
    print(summary(results, CI), flush=True)
    return exit_status(results, CI)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
