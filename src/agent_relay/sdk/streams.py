"""`async for message in …`: messages one by one, each acknowledged when the loop comes back for the next.

Where a loop is left, by `break`, `return`, an exception or the end of its task, the message it was at is put back, first in
line, unless its body has answered it. If the process dies, the daemon delivers it again.
"""

from __future__ import annotations

import asyncio
import contextlib

from agent_relay.sdk.errors import ConnectionLost, TimedOut
from agent_relay.sdk.inbox import Inbox
from agent_relay.sdk.messages import Message
from agent_relay.sdk.queue import Exhausted, MessageQueue


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class MessageLoop:
    """One `async for` over a stream, and the message its body is busy with."""

    def __init__(self, inbox: Inbox, queue: MessageQueue, timeout: float | None) -> None:
        self._inbox = inbox
        self._queue = queue
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._current: Message | None = None
        self._handed = 0  # its `handed` when it came to us

    def __repr__(self) -> str:
        return f"MessageLoop(at={self._current!r})"

    def __aiter__(self) -> MessageLoop:
        return self

    async def __anext__(self) -> Message:
        self._finish()
        try:
            message = await self._queue.get() if self._timeout is None else await self._get_in_time()
        except (TimeoutError, Exhausted):
            raise StopAsyncIteration from None
        self._current, self._handed = message, message.handed
        return message

    async def _get_in_time(self) -> Message:
        async with asyncio.timeout(self._timeout):
            return await self._queue.get()

    def _finish(self) -> None:
        message, self._current = self._current, None
        if message is not None and not message.is_back and message.handed == self._handed:  # else somebody put it back
            self._inbox.ack(message)

    def __del__(self) -> None:
        if self._current is None or self._current.handed != self._handed or self._loop.is_closed():
            return
        if _running_loop() is self._loop:
            self._inbox.release(self._current)
        else:
            with contextlib.suppress(RuntimeError):  # the loop was closed in this very moment
                self._loop.call_soon_threadsafe(self._inbox.release, self._current)


class MessageStream:
    """The result of `messages()` and `subscribe()`: loop over it as often as you like, even from several tasks at once.

    With `timeout`, a loop ends when that many seconds pass without a message.
    """

    def __init__(self, inbox: Inbox, queue: MessageQueue, timeout: float | None = None) -> None:
        self._inbox = inbox
        self._queue = queue
        self._timeout = timeout

    def __repr__(self) -> str:
        return f"MessageStream(waiting={len(self._queue)}, timeout={self._timeout})"

    def __aiter__(self) -> MessageLoop:
        return MessageLoop(self._inbox, self._queue, self._timeout)

    async def receive(self, timeout: float | None = None) -> Message:  # noqa: ASYNC109 - what it ends with is ours to say
        """One message, outside of a loop: whoever takes it answers it, with `async with message`, `ack()`, `nack()` or
        `reply()`."""
        try:
            async with asyncio.timeout(timeout):
                return await self._queue.get()
        except Exhausted:
            raise ConnectionLost("The client was closed.", reason="closed") from None
        except TimeoutError:
            raise TimedOut(f"No message came within {timeout:g} seconds.") from None

    def acknowledge(self, message: Message, handed: int) -> None:
        """For a loop in another thread that comes back for the next; `handed`: the message's number when it got it."""
        if not message.is_back and message.handed == handed:
            self._inbox.ack(message)

    def put_back(self, message: Message, handed: int) -> None:
        if message.handed == handed:
            self._inbox.release(message)
