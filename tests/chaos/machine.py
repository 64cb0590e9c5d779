"""A machine whose wall clock jumps and whose disk is slow when told to (`machine.c`, built when it is asked for)."""

from __future__ import annotations

import atexit
import functools
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

_NUMBERS = struct.Struct("=qq")
_NS = 1_000_000_000


@functools.cache
def build_machine() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="relay-machine-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    library = directory / "machine.so"
    source = Path(__file__).with_name("machine.c")
    subprocess.run(["cc", "-O1", "-Wall", "-Werror", "-fPIC", "-shared", "-o", library, source, "-ldl"], check=True)
    return library


class Machine:
    def __init__(self, directory: Path) -> None:
        self._file = directory / "machine"
        self._file.write_bytes(_NUMBERS.pack(0, 0))
        self._offset_s = self._delay_s = 0.0
        self.environ = {"LD_PRELOAD": str(build_machine()), "CHAOS_MACHINE": str(self._file)}

    def set_clock(self, offset_s: float) -> None:
        """So far from the real time, at once."""
        self._offset_s = offset_s
        self._write()

    def slow_down_disk(self, delay_s: float) -> None:
        """Every fdatasync takes so much longer."""
        self._delay_s = delay_s
        self._write()

    def _write(self) -> None:
        with self._file.open("r+b") as file:  # in place: it is mapped
            file.write(_NUMBERS.pack(int(self._offset_s * _NS), int(self._delay_s * _NS)))
