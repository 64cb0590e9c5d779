"""The end of the last daemon that wrote here, and how far it had come, in a small file beside the events.

The operating system keeps what a killed daemon wrote; what it had not written yet is lost. A power cut may take more, although
somebody has seen it: its numbers must not come again, so they are passed over.
"""

from __future__ import annotations

import contextlib
import enum
import os

import msgspec

_BOOT_FILE = "/proc/sys/kernel/random/boot_id"


class Ending(enum.Enum):
    FAREWELL = enum.auto()  # everything was written; also where nobody was here before
    KILLED = enum.auto()  # what was not written yet is lost
    CUT = enum.auto()  # the machine ended with it


class _Mark(msgspec.Struct, omit_defaults=True):
    boot: str
    closed: bool
    last_seq: int = 0
    message: int | None = None
    numbering: str = ""
    position: int = 0


def read_boot_id() -> str:
    """Another one after every start of the machine; empty where the system has none to tell."""
    try:
        with open(_BOOT_FILE, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


class Life:
    """`last_seq` and `message` are what was noted last, and never too high: this event was written for good, and so were the
    events of all messages up to this number. `message` None: nobody knows. Of a copy, `numbering` names the one that it follows,
    and `position` is how far it has come in the log that brings it; "" and 0: it is none."""

    def __init__(self, path: str, boot_id: str) -> None:
        self._path = path
        self._boot_id = boot_id
        self.last_seq = 0
        self.message: int | None = None
        self.numbering = ""
        self.position = 0
        self.noted_ms = 0  # when that was, as the file system says

    def read(self) -> Ending:
        """Reads what the last one left. Raises OSError."""
        ending = Ending.FAREWELL
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError), open(self._path, "rb") as file:
            mark = msgspec.json.decode(file.read(), type=_Mark)
            self.last_seq, self.message = mark.last_seq, mark.message
            self.numbering, self.position = mark.numbering, mark.position
            self.noted_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            if not mark.closed:
                ending = Ending.KILLED if mark.boot == self._boot_id else Ending.CUT
        return ending

    def begin(self) -> None:
        """Nobody has said goodbye from now on. Raises OSError."""
        self._write(closed=False)

    def note(self, last_seq: int, message: int | None, *, closed: bool = False) -> None:
        """So far everything is on the disk; `closed`: and that is all there is. Raises OSError."""
        self.last_seq, self.message = last_seq, message
        self._write(closed=closed)

    def _write(self, *, closed: bool) -> None:
        """Renamed into its place: half a mark would say less than the one before."""
        temporary = f"{self._path}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
        with os.fdopen(os.open(temporary, flags, 0o600), "wb", buffering=0) as file:
            mark = _Mark(self._boot_id, closed, self.last_seq, self.message, self.numbering, self.position)
            file.write(msgspec.json.encode(mark) + b"\n")
            os.fsync(file.fileno())
        os.replace(temporary, self._path)
