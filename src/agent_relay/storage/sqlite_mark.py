"""How far the database had come, in a small file beside it: what is missing at the next start was lost in between.

It is written after every commit and never flushed: it outlives the process, and after a power cut it may be old, but never says
more than was stored.
"""

from __future__ import annotations

import logging
import os
import struct
import zlib
from pathlib import Path

from msgspec import Struct

_FORMAT = struct.Struct("<4sIQQQ")
_MAGIC = b"ARLM"

_log = logging.getLogger(__name__)


class Reached(Struct, frozen=True):
    number: int  # of the newest message
    stored: int  # messages there ever were
    batch: int  # the last transaction


class Mark:
    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(f"{path}-mark", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        self._failed = False

    def read(self) -> Reached | None:
        """None: there is none yet, or it cannot be read."""
        content = os.pread(self._descriptor, _FORMAT.size, 0)
        if len(content) != _FORMAT.size:
            return None
        magic, check, *values = _FORMAT.unpack(content)
        return Reached(*values) if magic == _MAGIC and check == _check(values) else None

    def write(self, *values: int) -> None:
        """`number`, `stored`, `batch`. That it cannot be written is no reason to refuse messages."""
        try:
            os.pwrite(self._descriptor, _FORMAT.pack(_MAGIC, _check(values), *values), 0)
        except OSError as error:
            if not self._failed:
                _log.warning("How far the store has come could not be noted: %s", error.strerror)
            self._failed = True

    def close(self) -> None:
        os.close(self._descriptor)


def _check(values: tuple[int, ...] | list[int]) -> int:
    return zlib.crc32(struct.pack("<QQQ", *values))
