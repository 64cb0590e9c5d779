"""Messages that came, in order and each once.

After a lost connection the relay is asked for what was missed. Until it has answered, what arrives live is held back, so that
the missed comes first; what comes both ways is handed out once, by its id.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterable
from typing import TypeVar

from agent_relay.arc.errors import ArcError
from agent_relay.arc.frames import ArcMessage

T = TypeVar("T")

REMEMBERED = 10_000  # ids; a relay that repeats one later than that repeats it on purpose
_LAG = 64  # messages of several senders may come a little out of the order of their ids: so many are asked for again


class Inbox:
    def __init__(self, since: str | None, room: int) -> None:
        self.taken: OrderedDict[str, str] = OrderedDict()  # keys of our own messages that the relay has, with their ids
        self._queue: deque[ArcMessage] = deque()
        self._held: list[ArcMessage] | None = None
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._recent: deque[str] = deque([since] if since else [], maxlen=_LAG)
        self._room = room
        self._changed = asyncio.Event()
        self._drained = asyncio.Event()
        self._end: ArcError | None = None
        self.ended = False

    @property
    def resume_from(self) -> str | None:
        """Everything after this id was not seen, and a little before it."""
        return self._recent[0] if self._recent else None

    @property
    def full(self) -> bool:
        return len(self._queue) >= self._room

    def hold(self) -> None:
        self._held = []

    def release(self, missed: Iterable[ArcMessage]) -> None:
        """Ends `hold`: what was missed first, then what came meanwhile."""
        held, self._held = self._held or [], None
        live = {message.id: message for message in held if message.id}
        for message in missed:
            self.put(live.get(message.id, message))  # the live one says whether it was stored
        for message in held:
            self.put(message)

    def put(self, message: ArcMessage) -> None:
        if self._held is not None:
            self._held.append(message)
        elif self.notice(message):
            self._queue.append(message)
            self._changed.set()

    def notice(self, message: ArcMessage) -> bool:
        """Remembers its id; False if it was here before."""
        if not message.id:
            return True
        if message.id in self._seen:
            return False
        _remember(self._seen, message.id, None)
        self._recent.append(message.id)
        return True

    def note_taken(self, key: str, id_: str) -> None:
        _remember(self.taken, key, id_)

    async def get(self) -> ArcMessage | None:
        """The next; None when the client was closed. Raises what ended it otherwise."""
        while not self._queue:
            if self.ended:
                if self._end is not None:
                    raise self._end
                return None
            self._changed.clear()
            await self._changed.wait()
        self._drained.set()
        return self._queue.popleft()

    async def wait_for_room(self) -> None:
        """Returns as soon as there is room, or `nudge` is called."""
        self._drained.clear()
        await self._drained.wait()

    def nudge(self) -> None:
        self._drained.set()

    def end(self, error: ArcError | None) -> None:
        self.ended, self._end = True, error
        self._changed.set()
        self._drained.set()


def _remember(memory: OrderedDict[str, T], key: str, value: T) -> None:
    memory[key] = value
    if len(memory) > REMEMBERED:
        memory.popitem(last=False)
