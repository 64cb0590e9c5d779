"""The mark of how far the database had come, in a small file beside it: what is missing at the next start was lost in between.

It is changed in memory that is mapped to the file (a write would cost a turn of waiting for the interpreter lock) after every
commit, and never flushed: it outlives the process, and after a power cut it may be old, but never says more than was stored.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from pathlib import Path

from msgspec import Struct

_FORMAT = struct.Struct("<4sIQQQ")
_MAGIC = b"ARLM"


class Reached(Struct, frozen=True):
    number: int  # of the newest message
    stored: int  # messages there ever were
    batch: int  # the last transaction


class Mark:
    def __init__(self, path: Path) -> None:
        """Raises OSError where there is no room for it."""
        descriptor = os.open(f"{path}-mark", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            content = os.pread(descriptor, _FORMAT.size, 0)
            if len(content) < _FORMAT.size:  # written and not only made longer: what is mapped has to have its place on the disk
                os.pwrite(descriptor, bytes(_FORMAT.size), 0)
            self._memory = mmap.mmap(descriptor, _FORMAT.size)
        finally:
            os.close(descriptor)

    def read(self) -> Reached | None:
        """None: there is none yet, or it cannot be read."""
        magic, check, *values = _FORMAT.unpack(self._memory[:])
        return Reached(*values) if magic == _MAGIC and check == _check(values) else None

    def write(self, *values: int) -> None:
        """`number`, `stored`, `batch`."""
        _FORMAT.pack_into(self._memory, 0, _MAGIC, _check(values), *values)

    def close(self) -> None:
        self._memory.close()


def _check(values: tuple[int, ...] | list[int]) -> int:
    return zlib.crc32(struct.pack("<QQQ", *values))
