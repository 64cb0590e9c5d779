"""Reading what `screen_log` writes while it is being written: every line once, in order.

`LogReader` reads only what is new, by offsets, also when the history is put away and begun anew. `Follower` decides what of it
to show: a line that scrolled off is final; the screen is shown when it is still, and then only what was not shown before.
"""

from __future__ import annotations

import contextlib
import os
from difflib import SequenceMatcher
from typing import BinaryIO

import msgspec
from msgspec import Struct

from agent_relay.terminal.files.private_files import read_private
from agent_relay.terminal.recordings.screen_log import HISTORY_FILE, OLD_HISTORY_FILE, SIGHT_FILE, LoggedScreen

_COMPARED_LINES = 500  # a screen's rows are among the first that follow it; comparing a flood with them would take seconds


class News(Struct, frozen=True):
    scrolled: list[str]  # off the screen, since the last time
    rows: list[str]  # of the screen now
    is_over: bool


class LogReader:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._seen: tuple[int, int] | None = None

    def poll(self) -> News | None:
        """What is new since the last call; None when nothing is, or nothing was ever written."""
        path = os.path.join(self._folder, SIGHT_FILE)
        try:
            found = os.stat(path)
        except OSError:
            return None
        if (found.st_ino, found.st_mtime_ns) == self._seen:
            return None
        with contextlib.suppress(msgspec.MsgspecError):
            shown = msgspec.json.decode(read_private(path) or b"", type=LoggedScreen)
            self._seen = (found.st_ino, found.st_mtime_ns)
            return News(self._read_history(shown), shown.rows, shown.is_over)
        return None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read_history(self, shown: LoggedScreen) -> list[str]:
        data = b""
        if shown.history == 0 or self._number != shown.history:
            data = self._read_what_was_put_away(shown.history)
        if shown.history and self._number == shown.history:
            assert self._file is not None
            data += self._file.read(max(0, shown.history_bytes - self._file.tell()))
        return data.decode("utf-8", "replace").split("\n")[:-1]

    @property
    def _number(self) -> int:
        """Of the file that was read last. It stays open, so that no other gets its number."""
        return os.fstat(self._file.fileno()).st_ino if self._file is not None else 0

    def _read_what_was_put_away(self, following: int) -> bytes:
        """The rest of the file read so far, and one that came and went since, or before us. After that the next one is open."""
        data = self._file.read() if self._file is not None else b""
        put_away = self._find(OLD_HISTORY_FILE)
        if put_away is not None and os.fstat(put_away.fileno()).st_ino not in {self._number, following}:
            data += put_away.read()
            self._turn_to(put_away)
        elif put_away is not None:
            put_away.close()
        for name in (HISTORY_FILE, OLD_HISTORY_FILE) if following else ():
            file = self._find(name)
            if file is not None and os.fstat(file.fileno()).st_ino == following:
                self._turn_to(file)
                break
            if file is not None:
                file.close()
        return data

    def _turn_to(self, file: BinaryIO) -> None:
        self.close()
        self._file = file

    def _find(self, name: str) -> BinaryIO | None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):
            return os.fdopen(os.open(os.path.join(self._folder, name), flags), "rb")
        return None


class Follower:
    """What to show next, given what was shown."""

    def __init__(self) -> None:
        self._shown: list[str] = []  # of the screen, and not known to have scrolled off

    def take(self, scrolled: list[str], rows: list[str], *, is_still: bool) -> list[str]:
        """Lines to show. `scrolled` since the last call; `rows` count when they are still."""
        near, far = scrolled[:_COMPARED_LINES], scrolled[_COMPARED_LINES:]
        fresh, known = _compare(self._shown, near, [] if far else rows)
        self._shown = self._shown[known:]
        fresh += far
        if is_still:
            late, _ = _compare(self._shown, rows, [])
            fresh += late
            self._shown = rows
        return fresh


def _compare(shown: list[str], lines: list[str], following: list[str]) -> tuple[list[str], int]:
    """Those of `lines` that are not among `shown`, and how many of `shown` come before what follows the lines."""
    if not lines:
        return [], 0
    end = len(lines)
    fresh: list[str] = []
    known = 0
    for kind, first, last, start, stop in SequenceMatcher(None, shown, [*lines, *following], autojunk=False).get_opcodes():
        if start >= end:
            break
        if kind == "equal":
            known = first + min(stop, end) - start
        else:
            fresh += lines[start : min(stop, end)]
            known = last if stop <= end else known
    return fresh, known
