"""One daemon to a database: a lock on the file itself, whatever path leads to it and whatever lock files are removed.

It is a lock of the open file and not of the process (OFD, Linux), on a byte that SQLite never looks at. SQLite's own locks
belong to the process, and closing any descriptor of the file lets go of them all: so the one that holds this lock is opened
before SQLite opens the file, and closed after SQLite has closed it. Where there are no such locks (macOS) a file beside it is
locked, and that can be removed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from pathlib import Path

from agent_relay.ports.store import StoreUnusable

_BYTE = 1 << 62  # SQLite locks bytes from 1 GiB on; a file does not come this far
_HELD = {errno.EAGAIN, errno.EACCES}


class DatabaseLock:
    def __init__(self, path: Path) -> None:
        """Raises StoreUnusable if another daemon has the file."""
        command = getattr(fcntl, "F_OFD_SETLK", None)
        self._descriptor = os.open(path if command is not None else f"{path}-lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if command is not None:
                fcntl.fcntl(self._descriptor, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0))
            else:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno in _HELD:
                raise StoreUnusable(
                    f"{path} is in use by another daemon. Stop that one (`agent-relay down` in its project), or choose another "
                    "--storage-path."
                ) from None
            raise StoreUnusable(f"{path} cannot be locked ({error.strerror}). Choose a --storage-path on another disk.") from None

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._descriptor)
