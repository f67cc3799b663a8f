#!/usr/bin/env python3
"""demo_check.py     runs `make demo` as a newcomer does: waits for the addresses that it prints, opens each, presses Ctrl-C.

Fails if an address does not answer, or if a process or an open port is left afterwards. Python 3.11, no packages.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True  # no __pycache__ in the clone

from suite import processes
from suite.machine import ROOT

URL = re.compile(r"https?://(?:127\.0\.0\.1|localhost)(?::\d+)?(?:/[^\s'\"]*)?")
BUILD_SECONDS = 1800.0  # nothing is compiled yet in a fresh clone
ANSWER_SECONDS = 30.0
END_SECONDS = 9.0
EXPECTED = 2  # the employees' and the administrators' application


def answers(url: str) -> bool:
    request = urllib.request.Request(url, headers={"Accept": "text/html"})  # as a browser asks
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as answer:
            return answer.status == 200
    except (urllib.error.URLError, OSError):
        return False


def listens(url: str) -> bool:
    parts = urllib.parse.urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((parts.hostname or "", parts.port or 80)) == 0


def check(log: Path) -> str | None:
    """Returns what is wrong, or None."""
    def printed() -> str:
        return log.read_text(encoding="utf-8", errors="replace")

    def urls() -> list[str]:
        return list(dict.fromkeys(url.rstrip(".,)") for url in URL.findall(printed())))

    with log.open("w") as output:
        process = subprocess.Popen(
            ["make", "demo"], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=processes.die_with_parent,
        )
    try:
        if not processes.wait_until(lambda: len(urls()) >= EXPECTED, process, BUILD_SECONDS):
            return f"make demo printed no addresses; the end of its output:\n{printed()[-2000:]}"
        shown, deadline = urls(), time.monotonic() + ANSWER_SECONDS
        while silent := [url for url in shown if not answers(url)]:
            if time.monotonic() > deadline or process.poll() is not None:
                return f"no answer from {', '.join(silent)}; the end of the output:\n{printed()[-2000:]}"
            time.sleep(0.2)
        print(f"make demo answers at {', '.join(shown)}", flush=True)
    finally:
        pressed = time.monotonic()
        processes.end_group(process, signal.SIGINT)
    if (took := time.monotonic() - pressed) > END_SECONDS:
        return f"Ctrl-C did not end make demo within {END_SECONDS:.0f} s"
    print(f"Ctrl-C ended it after {took:.1f} s", flush=True)
    if strays := processes.reap_strays(set()):
        return f"make demo left processes running: {', '.join(strays)}"
    if still := [url for url in shown if listens(url)]:
        return f"somebody still listens at {', '.join(still)}"
    return None


def main() -> int:
    # A shell that started us in the background has told us to ignore Ctrl-C; the demo must not inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    processes.stop_on_signals()
    processes.adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="tidepool-demo-") as folder:
        wrong = check(Path(folder) / "output")
    if wrong:
        print(f"demo: {wrong}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
