"""Parts of every way in through a CLI's hooks: the spool of messages that wait for one, and the session that they tell of.

Such a way reaches only an agent that works. Messages wait here until a hook asks for them, at the end of a tool or of a turn,
and several go at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from agent_relay.terminal.doors.door import Decision, DoorMessage
from agent_relay.terminal.doors.hooks import HookServer
from agent_relay.terminal.doors.requests import HookRequests
from agent_relay.terminal.files.private_files import replace_private

LOOK_S = 1.0
BUSY_LOOK_S = 0.1  # while something is on its way
MAX_BYTES = 9_000  # of more than about 10,000 Claude Code and Codex show the agent a part, and put the whole into a file
_log = logging.getLogger("agent_relay.terminal")


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


R = TypeVar("R", bound=HookRequests[Any])


class HookedSession(ABC, Generic[R]):
    """A running session, as its hooks and its session file tell of it. It is looked at when a hook came, and every second.

    `title`: that of the CLI. `socket`: where its hooks are heard, empty for one that has none.
    """

    def __init__(self, title: str, socket: str, requests: R) -> None:
        self._title = title
        self._hooks = HookServer(socket, self._take_hook) if socket else None
        self._looking = asyncio.Lock()
        self._due = asyncio.Event()  # there is something to look for
        self._tasks: list[asyncio.Task[None]] = []
        self.requests = requests
        self.is_over = False

    async def listen(self) -> None:
        """Raises OSError where the hooks cannot be listened to."""
        if self._hooks is not None:
            await self._hooks.open()

    def watch(self) -> None:
        self._tasks.append(asyncio.create_task(self._run()))

    async def close(self) -> None:
        self.is_over = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.requests.close()
        if self._hooks is not None:
            await self._hooks.close()

    @property
    def is_open(self) -> bool:
        return bool(self._tasks) and not self.is_over

    async def answer(self, request_id: str, decision: Decision) -> None:
        if self.is_open:
            await self.look()  # a person may have answered a moment ago
        self.requests.answer(request_id, decision)

    def hurry(self) -> None:
        """Something is to be looked for from now on."""
        self._due.set()

    async def look(self) -> None:
        """Reads what is new, and tells it."""
        async with self._looking:
            await self._look()

    async def _run(self) -> None:
        while not self.is_over:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(BUSY_LOOK_S if self._is_busy else LOOK_S):
                    await self._due.wait()
            self._due.clear()
            try:
                await self.look()
                self._tend()
            except Exception:  # noqa: BLE001 - a fault must not end as silence
                _log.exception("the session of %s cannot be watched", self._title)
                self._fail(f"The session of {self._title} can no longer be watched.")

    @property
    def _is_busy(self) -> bool:
        """Something is on its way, and looked for more often."""
        return self.requests.is_open

    @abstractmethod
    async def _take_hook(self, event: str, given: dict[str, Any]) -> str | None:
        """The answer to a hook, as it prints it."""

    @abstractmethod
    async def _look(self) -> None: ...

    def _tend(self) -> None:
        """After every look that was not asked for."""

    def _fail(self, reason: str) -> None:
        """A look went wrong. The next one may not."""
