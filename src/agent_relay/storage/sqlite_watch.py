"""Whether the database and its WAL are still the files that were opened.

A file that is deleted or replaced stays open, and everything written to it is gone with the process. Only the paths are looked
at: opening the database here, and closing it again, would let go of SQLite's locks.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal


class FileWatch:
    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._wal = f"{path}-wal"
        self._file = _identify(self._path)
        self._wal_file = _identify(self._wal)

    def opened(self) -> None:
        """A new connection was made, and may have made a new WAL."""
        self._wal_file = _identify(self._wal)

    def find_change(self) -> Literal["file", "wal"] | None:
        if _identify(self._path) != self._file:
            return "file"
        if _identify(self._wal) != self._wal_file:
            return "wal"
        return None


def _identify(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
