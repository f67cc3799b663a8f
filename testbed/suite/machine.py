"""The folders of a run, what is installed, and the environment that the tests are given."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from .load import Load
from .result import Result

ROOT = Path(__file__).resolve().parents[2]
TESTBED = ROOT / "testbed"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidepool"
CI = os.environ.get("CI", "").lower() not in ("", "0", "false")
_UNAVAILABLE = 69  # install.sh: this machine cannot give it
_RUNS_KEPT = 5
_SCRATCH_BYTES = 6 << 30  # what a whole run puts there at most


@dataclass
class Run:
    """One run of the suite: its folder, and what its parts tell each other."""

    folder: Path
    target: Path
    env: dict[str, str]
    pids: set[int] = field(default_factory=set)  # servers that live for the whole run
    missing: dict[str, str] = field(default_factory=dict)  # install part -> why it cannot be had
    done: set[str] = field(default_factory=set)  # parts that have run
    built: bool = False  # whether the Rust code is
    only: str | None = None  # the one test to run, of `make test TEST=…`
    load: Load | None = None  # what runs beside the tests, of `make flaky`

    @property
    def trace(self) -> Path:
        """Where tests put their servers' logs and answers, and the secrets that must not be found in them."""
        return self.folder / "trace"

    @property
    def failed(self) -> Path:
        """What failed tests left: output, databases, screenshots, traces. Not searched for secrets: a database holds them sealed."""
        return self.folder / "failed"

    @property
    def skip_log(self) -> Path:
        return self.folder / "skips.txt"

    def quiet(self) -> AbstractContextManager[None]:
        """For tests whose subject is speed: nothing runs beside them."""
        return self.load.paused() if self.load else nullcontext()

    @property
    def binary(self) -> Path:
        return self.target / "debug" / "tidepool"

    def log(self, part: str) -> Path:
        return self.folder / f"{part}.log"

    def install(self, part: str) -> str | None:
        """Makes sure that a part of testbed/install.sh is there. Returns why not, where the machine cannot give it."""
        if part in self.missing:
            return self.missing[part]
        done = subprocess.run([TESTBED / "install.sh", part], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == _UNAVAILABLE:
            reason = done.stdout.strip().partition(": ")[2] or "cannot be installed here"
            self.missing[part] = reason
            return reason
        if done.returncode != 0:
            raise InstallationBroke(done.stdout.strip() or f"install.sh {part} ended with {done.returncode}")
        return None

    def install_or_skip(self, result: Result, *parts: str) -> bool:
        """As `install`, for a whole part of the suite: False means that it is skipped, and named."""
        for part in parts:
            if reason := self.install(part):
                result.skip(f"the whole part needs {part}", reason)
        return not result.skipped


class InstallationBroke(Exception):
    """An installation that should have worked."""


def new_run() -> Run:
    runs = CACHE / "runs"
    folder = runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    (folder / "trace").mkdir(parents=True)
    for old in sorted(path for path in runs.iterdir() if path.is_dir() and not path.is_symlink())[:-_RUNS_KEPT]:
        if not Path(f"/proc/{old.name.rpartition('-')[2]}").exists():  # not one that is still going on
            shutil.rmtree(old, ignore_errors=True)
    return Run(folder, _target(), _environment(folder))


def latest_folder() -> Path | None:
    """The folder of the run before this one, for `run.py secrets` alone."""
    folders = sorted(path for path in (CACHE / "runs").iterdir() if (path / "trace").is_dir())
    return folders[-2] if len(folders) > 1 else None


def _target() -> Path:
    given = os.environ.get("CARGO_TARGET_DIR")
    return Path(given) if given else (CACHE / "target" if CI else ROOT / "target")


def scratch() -> Path:
    """Where tests and their servers keep what they throw away: memory, where there is plenty of it. Removing the thousands of files of
    a hundred databases takes a disk minutes."""
    memory = Path("/dev/shm")
    try:
        size = os.statvfs(memory)
        if os.access(memory, os.W_OK) and size.f_bavail * size.f_frsize >= _SCRATCH_BYTES and _memory_available() >= 2 * _SCRATCH_BYTES:
            return memory
    except OSError:
        pass
    return Path(tempfile.gettempdir())


def _memory_available() -> int:
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def _environment(folder: Path) -> dict[str, str]:
    env = dict(os.environ)
    # Settings of somebody's own installation must not reach the tests.
    for name in [name for name in env if name.startswith("TIDEPOOL_")]:
        del env[name]
    env |= {
        "PATH": f"{CACHE / 'tools' / 'bin'}:{env['PATH']}",
        "CARGO_TARGET_DIR": str(_target().resolve()),
        "CARGO_TERM_PROGRESS_WHEN": "never",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "TMPDIR": str(scratch()),
        "TIDEPOOL_TEST_SKIP_LOG": str(folder / "skips.txt"),
        "TIDEPOOL_TEST_TRACE_DIR": str(folder / "trace"),
    }
    env.pop("FORCE_COLOR", None)
    return env
