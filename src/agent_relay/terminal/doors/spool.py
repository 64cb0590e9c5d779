"""The spool of messages that wait for a hook.

A way in through a CLI's hooks reaches only an agent that works. Messages wait here until a hook asks for them, at the end of a
tool or of a turn, and several go at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from agent_relay.private_files import replace_private
from agent_relay.terminal.doors.door import DoorMessage

MAX_BYTES = 9_000  # of more than about 10,000 Claude Code and Codex show the agent a part, and put the whole into a file


def size_of(message: DoorMessage) -> int:
    return len(f"{message.text}\n\n".encode())


class Spool:
    """`marker`: the file without which hooks do not ask, so that they cost next to nothing else. `is_asked`: whether they should
    for another reason."""

    def __init__(self, marker: str, is_asked: Callable[[], bool] = lambda: False) -> None:
        self._marker = marker
        self._is_asked = is_asked
        self._waiting: list[DoorMessage] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __contains__(self, message: object) -> bool:
        return message in self._waiting

    def add(self, message: DoorMessage) -> None:
        self._waiting.append(message)
        self.mark()

    def put_back(self, messages: list[DoorMessage]) -> None:
        """Before all others."""
        self._waiting[:0] = messages
        self.mark()

    def take(self, room: int, size: Callable[[DoorMessage], int] = size_of) -> list[DoorMessage]:
        """The first ones, as far as there is room: none overtakes another."""
        count = 0
        for message in self._waiting:
            room -= size(message)
            if room < 0:
                break
            count += 1
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        self.mark()
        return taken

    def take_all(self) -> list[DoorMessage]:
        taken, self._waiting = self._waiting, []
        self.mark()
        return taken

    def mark(self) -> None:
        if self._waiting or self._is_asked():
            replace_private(self._marker, b"")
        else:
            self.close()

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._marker)
