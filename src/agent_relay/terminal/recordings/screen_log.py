"""What an agent's terminal showed, as files: `history.log` grows as lines scroll off, `screen.txt` is what it shows now.

`screen.json` says the same as `screen.txt` and how much of the history came before it, so that a reader who follows finds
every line once (`log_reading`). A lock is held for as long as somebody writes; the kernel lets go of it however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

import msgspec
from msgspec import Struct

from agent_relay.terminal.files.private_files import append_private, is_locked, replace_private
from agent_relay.terminal.screen.contents import Screen

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
