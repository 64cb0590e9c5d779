"""The log of an agent's screen, as files: `history.log` grows as lines scroll off, `screen.txt` is what it shows now.

`screen.json` says the same as `screen.txt` and how much of the history came before it, so that a reader who follows
finds every line once (`LogReader`). A lock is held for as long as somebody writes; the kernel lets go of it however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from difflib import SequenceMatcher
from typing import BinaryIO

import msgspec
from msgspec import Struct

from agent_relay.private_files import is_locked, read_private, replace_private
from agent_relay.terminal.files.private_files import append_private
from agent_relay.terminal.screen.contents import Screen

_COMPARED_LINES = 500  # a screen's rows are among the first that follow it; comparing a flood with them would take seconds
HISTORY_FILE, OLD_HISTORY_FILE = "history.log", "history.old.log"
SCREEN_FILE, SIGHT_FILE, LOCK_FILE = "screen.txt", "screen.json", "screen.lock"
MAX_HISTORY_BYTES = 8_388_608  # then the file becomes history.old.log, and a new one is begun
_SCREEN_EVERY_S = 0.5
_LOCK_TRIES, _LOCK_STEP_S = 20, 0.005  # a reader may be looking whether it is held


class LoggedScreen(Struct, frozen=True):
    """`history` and `history_bytes`: the file, by its number, and how much of it comes before these rows."""

    rows: list[str]
    history: int = 0  # 0: there is none, or it was only just put away
    history_bytes: int = 0
    is_over: bool = False


class ScreenLog:
    def __init__(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._folder = folder
        self._next_position = 0
        self._written_t = float("-inf")
        self._history = self._history_bytes = 0
        self._unwritten: Screen | None = None
        self._written: LoggedScreen | None = None
        with contextlib.suppress(OSError):
            known = os.stat(self._path(HISTORY_FILE), follow_symlinks=False)
            self._history, self._history_bytes = known.st_ino, known.st_size
        self._lock = _hold_lock(self._path(LOCK_FILE))

    def begin(self) -> None:
        """A new run: what an earlier one showed goes away. For a program that is taken up it goes on instead."""
        for name in (HISTORY_FILE, OLD_HISTORY_FILE, SCREEN_FILE, SIGHT_FILE):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._path(name))
        self._history = self._history_bytes = 0

    def note(self, screen: Screen, t: float) -> None:
        above = [line for line in screen.lines if self._next_position <= line.position < screen.first_visible]
        if above:
            self._next_position = screen.first_visible
            self._append("".join(f"{line.text}\n" for line in above))
        self._unwritten = screen
        if t - self._written_t >= _SCREEN_EVERY_S:
            self._written_t = t
            self.flush()

    def flush(self) -> None:
        screen, self._unwritten = self._unwritten, None
        if screen is not None:
            # A window that grew shows lines again that had scrolled off.
            rows = [line.text for line in screen.visible if line.position >= self._next_position]
            self._write(LoggedScreen(_without_blank_end(rows), self._history, self._history_bytes))

    def close(self) -> None:
        """The program has ended; nothing more will come."""
        self.flush()
        last = self._written or LoggedScreen([])
        self._write(msgspec.structs.replace(last, is_over=True))
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _write(self, shown: LoggedScreen) -> None:
        if shown == self._written:
            return
        self._written = shown
        text = "\n".join(shown.rows)
        with contextlib.suppress(OSError):
            replace_private(self._path(SIGHT_FILE), msgspec.json.encode(shown))
            replace_private(self._path(SCREEN_FILE), f"{text}\n".encode("utf-8", "replace"))

    def _append(self, text: str) -> None:
        path = self._path(HISTORY_FILE)
        with contextlib.suppress(OSError):
            self._history_bytes = append_private(path, text.encode("utf-8", "replace"))
            self._history = os.stat(path).st_ino
            if self._history_bytes > MAX_HISTORY_BYTES:
                os.replace(path, self._path(OLD_HISTORY_FILE))
                self._history = self._history_bytes = 0

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)


def _without_blank_end(rows: list[str]) -> list[str]:
    count = max((index for index, row in enumerate(rows, 1) if row), default=0)
    return rows[:count]


def _hold_lock(path: str) -> int | None:
    """For a reader to see whether somebody writes; without it nothing is lost but that."""
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        return None
    for _ in range(_LOCK_TRIES):
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        time.sleep(_LOCK_STEP_S)
    os.close(descriptor)
    return None


def is_being_written(folder: str) -> bool:
    return is_locked(os.path.join(folder, LOCK_FILE))


class LogUpdate(Struct, frozen=True):
    scrolled: list[str]  # off the screen, since the last time
    rows: list[str]  # of the screen now
    is_over: bool


class LogReader:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._file: BinaryIO | None = None
        self._seen: tuple[int, int] | None = None

    def poll(self) -> LogUpdate | None:
        """Reads what is new since the last call; None when nothing is, or nothing was ever written."""
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
            return LogUpdate(self._read_history(shown), shown.rows, shown.is_over)
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


class LogFollower:
    """Decides what to show next, given what was shown."""

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
