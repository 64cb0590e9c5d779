"""Which conversation is the agent's: the one the person at the terminal is in.

The server that is asked runs for one terminal, and holds the conversations that were opened there, those that Codex has with
itself (titles, helpers) among them. The person is in the one that was begun last, or in which something was done last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agent_relay.terminal.doors.codex.record import ServedThread, load_known, read_thread, remember
from agent_relay.terminal.doors.codex.rpc import Refused, Rpc
from agent_relay.terminal.doors.door import DoorState
from agent_relay.terminal.output.transcripts.records import as_text

MAX_THREADS = 200
_REMEMBERED = 500


class Threads:
    """`changed` is told the id of each conversation that becomes the agent's."""

    def __init__(self, folder: str, changed: Callable[[str], None]) -> None:
        self._folder = folder
        self._changed = changed
        self._current: ServedThread | None = None
        self._candidates: list[str] = []
        self._others: dict[str, None] = {}  # those that are known not to be the agent's
        self.is_loaded = False
        self.is_subscribed = False

    @property
    def id(self) -> str:
        return self._current.thread.id if self._current is not None else ""

    @property
    def state(self) -> DoorState | None:
        return self._current.state if self._current is not None else None

    @property
    def waiting_for(self) -> str:
        return self._current.waiting_for if self._current is not None else ""

    async def find(self, rpc: Rpc) -> bool:
        """For a server that we have just met; False while there is no conversation. Only one that the person's terminal has
        opened will do: opened by us, it would run with other permissions than the person asked for."""
        loaded = (await rpc.call("thread/loaded/list", {})).get("data")
        ids = [as_text(id_) for id_ in loaded][-MAX_THREADS:] if isinstance(loaded, list) else []
        found = [served for id_ in ids if (served := await self._ask(rpc, id_)) is not None and served.is_agents]
        if not found:
            return False
        known = [thread.id for thread in load_known(self._folder)]
        best = max(found, key=lambda served: (_place(known, served.thread.id), served.used_at))
        self._use(best)
        return True

    async def judge(self, rpc: Rpc) -> bool:
        """True: the person has gone on to another conversation."""
        has_changed = False
        while self._candidates:
            served = await self._ask(rpc, self._candidates.pop(0))
            if served is not None and served.is_agents and served.thread.id != self.id:
                self._use(served)
                has_changed = True
        return has_changed

    async def subscribe(self, rpc: Rpc) -> bool:
        """From then on its events come. Before its first turn there is nothing to subscribe to."""
        try:
            answer = await rpc.call("thread/resume", {"threadId": self.id, "excludeTurns": True})
        except Refused:
            return False
        served = read_thread(answer.get("thread"))
        if served is None or served.thread.id != self.id:
            return False
        self._current = served
        remember(self._folder, served.thread)
        self.is_subscribed = True
        return True

    def note_unloaded(self) -> None:
        self.is_loaded = self.is_subscribed = False

    def note_started(self, value: object) -> None:
        served = read_thread(value)
        if served is not None and served.is_agents:
            self._candidates.append(served.thread.id)
        elif served is not None:
            self._leave(served.thread.id)

    def note_active(self, thread_id: str, status: dict[str, Any]) -> bool:
        """Something is done in another conversation; True when it may be one of the person's."""
        if not thread_id or status.get("type") != "active" or thread_id in self._others:
            return False
        self._candidates.append(thread_id)
        return True

    async def _ask(self, rpc: Rpc, thread_id: str) -> ServedThread | None:
        try:
            served = read_thread((await rpc.call("thread/read", {"threadId": thread_id})).get("thread"))
        except Refused:
            return None
        if served is not None and not served.is_agents:
            self._leave(thread_id)
        return served

    def _leave(self, thread_id: str) -> None:
        self._others[thread_id] = None
        if len(self._others) > _REMEMBERED:
            del self._others[next(iter(self._others))]

    def _use(self, served: ServedThread) -> None:
        self._current = served
        self.is_loaded, self.is_subscribed = True, False
        remember(self._folder, served.thread)
        self._changed(served.thread.id)


def _place(known: list[str], id_: str) -> int:
    return known.index(id_) if id_ in known else -1
