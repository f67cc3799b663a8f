"""A load beside the tests: every core busy, and a disk that is made to write through all the time.

It ends with the runner, whatever becomes of it, and stands still while tests run whose subject is speed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from .processes import die_with_parent, end_group

_BUSY = "while True: pass"
_SYNCING = """
import os, sys
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
while True:
    os.pwrite(file, os.urandom(65536), 0)
    os.fsync(file)
"""


class Load:
    def __init__(self, folder: Path, stack: ExitStack, pids: set[int]) -> None:
        commands = [[sys.executable, "-c", _BUSY] for _ in range(os.cpu_count() or 1)]
        commands.append([sys.executable, "-c", _SYNCING, str(folder / "load")])
        self._processes: list[subprocess.Popen[bytes]] = []
        for command in commands:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with_parent)
            pids.add(process.pid)
            stack.callback(end_group, process, signal.SIGKILL)
            self._processes.append(process)

    @contextmanager
    def paused(self) -> Iterator[None]:
        for process in self._processes:
            process.send_signal(signal.SIGSTOP)
            os.waitpid(process.pid, os.WUNTRACED)  # it stands still from here on
        try:
            yield
        finally:
            for process in self._processes:
                process.send_signal(signal.SIGCONT)
