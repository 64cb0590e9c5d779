"""Whether the machine has been off since the last events were written without anybody saying goodbye.

The operating system keeps what a killed daemon wrote. A power cut may take the last of it, although somebody has seen it; its
numbers must not come again, so they are passed over.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

_BOOT_FILE = "/proc/sys/kernel/random/boot_id"


class _Mark(msgspec.Struct):
    boot: str
    closed: bool


def read_boot_id() -> str:
    """Another one after every start of the machine; empty where the system has none to tell."""
    try:
        with open(_BOOT_FILE, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


class Life:
    def __init__(self, path: str, boot_id: str) -> None:
        self._path = path
        self._boot_id = boot_id

    def begin(self) -> bool:
        """True: the last life may have ended with the machine's. Raises OSError."""
        cut = False
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError), open(self._path, "rb") as file:
            mark = msgspec.json.decode(file.read(), type=_Mark)
            cut = not mark.closed and mark.boot != self._boot_id
        self._write(closed=False)
        return cut

    def end(self) -> None:
        """Everything is on the disk."""
        with contextlib.suppress(OSError):
            self._write(closed=True)

    def _write(self, *, closed: bool) -> None:
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, msgspec.json.encode(_Mark(self._boot_id, closed)) + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
