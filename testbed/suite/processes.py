"""Starting, showing, timing out and ending the processes of a run. Everything that is started here ends here, by its pid."""

from __future__ import annotations

import ctypes
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

# Lines that say only that the work goes on: they are in the log, not on the screen.
_NOISE = re.compile(r"^\s*(Compiling|Downloading|Downloaded|Checking|Fresh|Adding|Locking|Updating|Blocking|PASS|npm warn)\b")
_HEARTBEAT_SECONDS = 60.0
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def adopt_orphans() -> None:
    """Processes whose parent ends become children of this one, so that none can escape `reap_strays`."""
    ctypes.CDLL(None, use_errno=True).prctl(_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """For preexec_fn: a child must not outlive a runner that was killed."""
    ctypes.CDLL(None, use_errno=True).prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)


def run_shown(
    command: list[str],
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float = 3600,
) -> tuple[int, list[str]]:
    """Runs a command, shows its telling lines as they come and keeps every line in `log`. Returns exit code and lines."""
    lines: list[str] = []
    with log.open("a", encoding="utf-8") as out:
        _show(f"$ {' '.join(command)}", out)
        process = subprocess.Popen(
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True, preexec_fn=die_with_parent,
        )
        deadline = last_shown = time.monotonic()
        deadline += timeout
        try:
            for line in _lines_of(process):
                now = time.monotonic()
                if line is None:
                    if now > deadline:
                        _show(f"{command[0]}: no end after {timeout:.0f} s", out)
                        return 124, lines
                    if now - last_shown > _HEARTBEAT_SECONDS:
                        last_shown = now
                        print(f"  … {lines[-1].strip() if lines else 'working'}", flush=True)
                    continue
                lines.append(line)
                if _NOISE.match(line):
                    print(line, file=out, flush=True)
                else:
                    last_shown = now
                    _show(line, out)
        finally:
            end_group(process)
            if process.stdout:
                process.stdout.close()
    return process.returncode, lines


def _show(line: str, out: TextIO) -> None:
    print(line, file=out, flush=True)
    print(line, flush=True)


def _lines_of(process: subprocess.Popen[bytes]) -> Iterator[str | None]:
    """The lines as they come; None at least once a second. Ends with the process, even if a stray holds the pipe open."""
    assert process.stdout
    pipe, rest, idle_after_end = process.stdout.fileno(), b"", 0
    while idle_after_end < 2:
        if not select.select([pipe], [], [], 0.5)[0]:
            idle_after_end += process.poll() is not None
            yield None
            continue
        chunk = os.read(pipe, 65536)
        if not chunk:
            break
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode(errors="replace").rstrip("\r") for line in whole)
        yield None
    if rest:
        yield rest.decode(errors="replace")
    while process.poll() is None:  # it has closed its output, but not ended
        time.sleep(0.05)
        yield None


def end_group(process: subprocess.Popen[bytes], first: signal.Signals = signal.SIGTERM) -> None:
    """Ends a process of ours and its process group: politely, then for good."""
    for kind, patience in ((first, 10.0), (signal.SIGKILL, 5.0)):
        if not _living(lambda it: it.group == process.pid):
            break
        os.killpg(process.pid, kind)
        deadline = time.monotonic() + patience
        while _living(lambda it: it.group == process.pid) and time.monotonic() < deadline:
            process.poll()
            time.sleep(0.02)
    process.wait()


def reap_strays(mine: set[int]) -> list[str]:
    """Ends what a part left running (adopted orphans; `mine` are the pids that may stay) and names it."""
    def strays() -> dict[int, str]:
        return _living(lambda it: it.parent == os.getpid() and it.pid not in mine)

    deadline = time.monotonic() + 2.0
    while strays() and time.monotonic() < deadline:
        time.sleep(0.05)  # what is ending already needs no naming
    named = sorted(strays().values())
    for kind in (signal.SIGTERM, signal.SIGKILL):
        for pid in strays():
            os.kill(pid, kind)
        time.sleep(0.3 if named else 0)
    return named


@dataclass
class _Process:
    pid: int
    parent: int
    group: int


def _living(wanted: Callable[[_Process], bool]) -> dict[int, str]:
    """Names of the wanted processes by pid, without the dead. Dead children of ours are collected on the way."""
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, fields = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            state, parent, group = fields.split()[:3]
        except OSError:  # it ended while we looked
            continue
        process = _Process(int(entry.name), int(parent), int(group))
        if state == "Z" and process.parent == os.getpid() and process.pid != process.group:
            os.waitpid(process.pid, os.WNOHANG)
        elif state not in "ZX" and wanted(process):
            found[process.pid] = name
    return found


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits for a server of ours; a server that has ended is not worth waiting for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if ready():
            return True
        if process.poll() is not None:
            return False
        time.sleep(0.05)
    return False


def stop_on_signals() -> None:
    """SIGTERM and SIGHUP unwind like Ctrl-C, so that every `finally` runs."""
    def unwind(number: int, _frame: object) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, unwind)
