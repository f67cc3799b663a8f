"""The folders of a run, what is installed, and the environment that the tests are given."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from .result import Result

ROOT = Path(__file__).resolve().parents[2]
TESTBED = ROOT / "testbed"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidepool"
CI = os.environ.get("CI", "").lower() not in ("", "0", "false")
_UNAVAILABLE = 69  # install.sh: this machine cannot give it
_RUNS_KEPT = 5


@dataclass
class Run:
    """One run of the suite: its folder, and what its parts tell each other."""

    folder: Path
    target: Path
    env: dict[str, str]
    pids: set[int] = field(default_factory=set)  # servers that live for the whole run
    missing: dict[str, str] = field(default_factory=dict)  # install part -> why it cannot be had
    done: set[str] = field(default_factory=set)  # parts that have run

    @property
    def trace(self) -> Path:
        """Where tests put their servers' logs and answers, and the secrets that must not be found in them."""
        return self.folder / "trace"

    @property
    def skip_log(self) -> Path:
        return self.folder / "skips.txt"

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
        "TIDEPOOL_TEST_SKIP_LOG": str(folder / "skips.txt"),
        "TIDEPOOL_TEST_TRACE_DIR": str(folder / "trace"),
    }
    env.pop("FORCE_COLOR", None)
    return env
