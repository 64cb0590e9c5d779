"""A disk that fails on demand, for real processes: a shim in C (`shim.c`, built once a process), and its rules.

    faults = Faults(directory)
    daemon.environ |= faults.environ
    faults.set("fdatasync EIO messages.sqlite-wal *")   # call, error, part of the path, how often (and how many pass first)
    faults.wait_for("fdatasync")                        # until it has happened
    faults.clear()

Linux only: elsewhere a library is not so easily put before another.
"""

from __future__ import annotations

import atexit
import functools
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

_DEADLINE_S = 60.0
_POLL_S = 0.005


@functools.cache
def build_shim() -> Path:
    """The shared library; made anew in every process that asks, which takes a tenth of a second."""
    directory = Path(tempfile.mkdtemp(prefix="relay-shim-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    library = directory / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-o", library, source, "-ldl", "-lpthread"], check=True)
    return library


class Faults:
    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._control = Path(directory) / "faults"
        self._log = Path(f"{self._control}.log")
        self.environ = {"LD_PRELOAD": str(build_shim()), "FAULTS": str(self._control)}

    def set(self, *rules: str) -> None:
        """These from now on, and no others; see `shim.c` for what a rule says."""
        fresh = self._control.with_suffix(".new")
        fresh.write_text("".join(f"{rule}\n" for rule in rules))
        fresh.rename(self._control)

    def clear(self) -> None:
        self._control.unlink(missing_ok=True)

    @property
    def log(self) -> list[str]:
        """What was done so far: call, error (as a number; below zero for HALF, KILL and DIE) and path."""
        try:
            return self._log.read_text().splitlines()
        except FileNotFoundError:
            return []

    def wait_for(self, call: str, count: int = 1) -> None:
        """Until the call has failed this often, since the beginning."""
        deadline = time.monotonic() + _DEADLINE_S
        while sum(line.startswith(f"{call} ") for line in self.log) < count:
            if time.monotonic() > deadline:
                raise AssertionError(f"{call} did not fail {count} times: {self.log[-10:]}")
            time.sleep(_POLL_S)
