"""Messages that have arrived and wait to be handled: first come, first served, and what is put back keeps its place."""

from __future__ import annotations

import asyncio
from collections import deque

from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import fold_name
from agent_relay.sdk.messages import Message


class Exhausted(Exception):  # noqa: N818 - named by the condition
    """The client was closed on purpose, and nothing will arrive any more."""


class MessageQueue:
    def __init__(self) -> None:
        self._messages: deque[Message] = deque()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False
        self._error: RelayError | None = None

    def __len__(self) -> int:
        return len(self._messages)

    def put(self, message: Message) -> None:
        self._messages.append(message)
        self._wake_one()

    def put_back(self, message: Message) -> None:
        """Puts it where it was before: ahead of everything that arrived later."""
        message.is_back = True
        place = 0
        while place < len(self._messages) and self._messages[place].order < message.order:
            place += 1
        self._messages.insert(place, message)
        self._wake_one()

    async def get(self) -> Message:
        """After the end it raises what the client failed with, or Exhausted. What still lies here then is not handed out:
        it could not be acknowledged any more, and comes again in the next session."""
        while self._closed or not self._messages:
            if self._closed:
                raise self._error or Exhausted
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
                if waiter.done() and not waiter.cancelled() and self._messages:
                    self._wake_one()  # this one was called and cannot come; somebody else can
                raise
        message = self._messages.popleft()
        message.handed += 1
        message.is_back = False
        return message

    def discard(self, message: Message) -> None:
        """Taken out again, where it was put back and then dealt with all the same."""
        if message in self._messages:
            self._messages.remove(message)

    def take_reply(self, message_id: str) -> Message | None:
        """The first waiting message that replies to this id, taken out."""
        for message in self._messages:
            if message.reply_to == message_id:
                self._messages.remove(message)
                return message
        return None

    def take_from(self, sender: str) -> list[Message]:
        """Those of this sender, taken out."""
        taken = [message for message in self._messages if fold_name(message.from_) == fold_name(sender)]
        for message in taken:
            self._messages.remove(message)
        return taken

    def take_all(self) -> list[Message]:
        messages = list(self._messages)
        self._messages.clear()
        return messages

    def close(self, error: RelayError | None) -> None:
        self._closed = True
        self._error = error
        while self._waiters:
            self._wake_one()

    def _wake_one(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
