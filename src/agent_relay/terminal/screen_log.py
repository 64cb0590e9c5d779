"""What an agent's terminal showed, as text files: `history.log` grows as lines scroll off, `screen.txt` is what it shows now.

They are what `agent-relay logs` reads, also when the agent has ended.
"""

from __future__ import annotations

import contextlib
import os

from agent_relay.terminal.screen import Screen

HISTORY_FILE = "history.log"
SCREEN_FILE = "screen.txt"
MAX_HISTORY_BYTES = 8_388_608  # then the file becomes history.old.log, and a new one is begun
_SCREEN_EVERY_S = 1.0


class ScreenLog:
    def __init__(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._history = os.path.join(folder, HISTORY_FILE)
        self._screen = os.path.join(folder, SCREEN_FILE)
        self._next_position = 0
        self._written_t = float("-inf")
        self._unwritten: Screen | None = None
        for path in (self._history, self._screen):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # of an earlier run

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
        if screen is None:
            return
        text = "\n".join(line.text for line in screen.visible).rstrip("\n")
        temporary = f"{self._screen}.tmp"
        with contextlib.suppress(OSError):
            descriptor = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(f"{text}\n".encode("utf-8", "replace"))
            os.replace(temporary, self._screen)

    def _append(self, text: str) -> None:
        with contextlib.suppress(OSError):
            descriptor = os.open(self._history, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "ab") as file:
                file.write(text.encode("utf-8", "replace"))
                size = file.tell()
            if size > MAX_HISTORY_BYTES:
                os.replace(self._history, f"{self._history.removesuffix('.log')}.old.log")
