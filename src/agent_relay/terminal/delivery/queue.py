"""The queue of what an agent is to be given: messages in order, and words of the relay or of a person."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct

from agent_relay.sdk.messages import Message

DEFAULT_TTL_MS = 86_400_000


class Notice(Struct, frozen=True):
    """A word of the relay itself."""

    text: str


class Introduction(Struct, frozen=True):
    pass


class TypedText(Struct, frozen=True):
    """A text that the person gave us to type."""

    text: str


Item: TypeAlias = Message | Notice | Introduction | TypedText


class DeliveryQueue:
    """It outlives a program that ended at once: the next one gets what is left."""

    def __init__(self) -> None:
        self._items: deque[Item] = deque()
        self._deadlines: dict[str, float] = {}  # by delivery id
        self._woken = asyncio.Event()
        self._callbacks: list[Callable[[], None]] = []

    def call_when_changed(self, callback: Callable[[], None]) -> None:
        """Whenever another number of messages may wait."""
        self._callbacks.append(callback)

    @property
    def messages_waiting(self) -> int:
        return sum(isinstance(item, Message) for item in self._items)

    def __bool__(self) -> bool:
        return bool(self._items)

    @property
    def first(self) -> Item:
        return self._items[0]

    @property
    def rests(self) -> bool:
        """Nothing in it is worth waking the agent for: it waits for something that is, and stays in front of it."""
        return bool(self._items) and all(isinstance(item, Message) and item.at_leisure for item in self._items)

    def introduce(self) -> None:
        self._put(Introduction())

    def notify(self, text: str) -> None:
        """Never silence: what an agent asked for and did not get, it hears of."""
        self._put(Notice(text))

    def type_in(self, text: str) -> None:
        """As the person would type it."""
        self._put(TypedText(text))

    def put(self, message: Message) -> None:
        left_ms = (message.meta.ttl_ms or DEFAULT_TTL_MS) - message.queued_ms
        self._deadlines[message.delivery_id] = asyncio.get_running_loop().time() + left_ms / 1000
        self._put(message)

    def put_back(self, messages: Iterable[Message]) -> None:
        """In front of the others, in the order they came."""
        waiting = [item for item in self._items if isinstance(item, Message)]
        rest = [item for item in self._items if not isinstance(item, Message)]
        ordered = sorted({*messages, *waiting}, key=lambda message: message.order)
        self._items = deque([*rest, *ordered])
        self._tell_changed()
        self.wake()

    def remove(self, item: Item) -> bool:
        """False: it is not there any more."""
        if item not in self._items:
            return False
        self._items.remove(item)
        self._tell_changed()
        return True

    def drop_introductions(self) -> None:
        """Each run of the program has its own."""
        self._items = deque(item for item in self._items if not isinstance(item, Introduction))

    def deadline_of(self, message: Message) -> float | None:
        """The moment when the message's time is over, by the clock of the loop."""
        return self._deadlines.get(message.delivery_id)

    def forget_deadline(self, message: Message) -> None:
        self._deadlines.pop(message.delivery_id, None)

    def _put(self, item: Item) -> None:
        self._items.append(item)
        self._tell_changed()
        self.wake()

    def _tell_changed(self) -> None:
        for callback in self._callbacks:
            callback()

    # --- its reader ----------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Something has changed: the reader looks again."""
        self._woken.set()

    def note_look(self) -> None:
        """The reader looks at it now, and waits only for what happens later."""
        self._woken.clear()

    async def wait(self, timeout_s: float | None) -> None:
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return
