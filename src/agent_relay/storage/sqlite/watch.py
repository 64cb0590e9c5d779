"""Whether the database and its WAL are still the files that were opened.

A file that is deleted or replaced stays open, and everything written to it is gone with the process. Only the paths are looked
at: opening the database here, and closing it again, would let go of SQLite's locks. It is asked after every commit, and each look
costs a turn of waiting for the interpreter lock: so one look at the folder is all, as long as nothing in it came or went.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Literal

_SETTLED_NS = 100_000_000  # file systems date changes by a coarse clock: two within the same 10 ms may look like one

_Identity = tuple[int, int]


class FileWatch:
    def __init__(self, path: Path) -> None:
        self._folder = str(path.parent)
        self._path = str(path)
        self._wal = f"{path}-wal"
        self._file = _identify(self._path)
        self._wal_file = _identify(self._wal)
        self._settled: tuple[int, int, int] | None = None  # the folder as it was when all was well, for a while already

    def opened(self) -> None:
        """A new connection was made, and may have made a new WAL."""
        self._wal_file = _identify(self._wal)
        self._settled = None

    def find_change(self) -> Literal["file", "wal"] | None:
        folder = _look_at(self._folder)
        if folder is not None and folder == self._settled:
            return None
        self._settled = None
        if _identify(self._path) != self._file:
            return "file"
        if _identify(self._wal) != self._wal_file:
            return "wal"
        if folder is not None and abs(time.time_ns() - folder[2]) > _SETTLED_NS:
            self._settled = folder
        return None


def _look_at(folder: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _identify(path: str) -> _Identity | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
