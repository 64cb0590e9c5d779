"""`async for message in …`: the loop that acknowledges what its body has dealt with.

A message is acknowledged when the loop asks for the next one, or is left by `break` or `return`. If the body raises, or
its task is cancelled, the message is not acknowledged: it is put back, first in line, and if the process dies the
daemon delivers it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Coroutine
from dis import opmap
from types import CodeType
from typing import Any

from agent_relay.sdk.errors import ConnectionLost, TimedOut
from agent_relay.sdk.inbox import Inbox
from agent_relay.sdk.messages import Message
from agent_relay.sdk.queue import Exhausted, MessageQueue

_LETS_GO = {opmap[name] for name in ("POP_TOP", "POP_ITER") if name in opmap}


def code_of_loop() -> CodeType:
    """The code whose loop called the function that asks."""
    # No frame is kept in a variable here: one that holds itself would keep the iterator alive after its loop.
    return sys._getframe(2).f_code  # noqa: SLF001


def left_deliberately(loop: CodeType | None) -> bool:
    """Asked by the finalizer of an iterator: does the loop let it go by `break` or `return`, and not by an exception?

    An iterator is not told how its loop was left. CPython drops it either at the instruction that pops it, or, unwinding,
    while it still stands at the instruction that raised. In doubt the answer is no: a message twice is better than none.
    """
    try:
        caller = sys._getframe(2)  # noqa: SLF001
    except ValueError:  # nobody: the interpreter itself is cleaning up
        return False
    return caller.f_code is loop and caller.f_lasti >= 0 and loop.co_code[caller.f_lasti] in _LETS_GO


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
        self._body: CodeType | None = None

    def __aiter__(self) -> MessageLoop:
        return self

    def __anext__(self) -> Coroutine[Any, Any, Message]:
        self._body = code_of_loop()
        return self._next()

    async def _next(self) -> Message:
        self.finish()
        try:
            self._current = await self._queue.get() if self._timeout is None else await self._get_in_time()
        except (TimeoutError, Exhausted):
            raise StopAsyncIteration from None
        return self._current

    async def _get_in_time(self) -> Message:
        async with asyncio.timeout(self._timeout):
            return await self._queue.get()

    def finish(self) -> None:
        message, self._current = self._current, None
        if message is not None:
            self._inbox.ack(message)

    def __del__(self) -> None:
        if self._current is None or self._loop.is_closed():
            return
        settle = self._inbox.ack if left_deliberately(self._body) else self._inbox.release
        if _running_loop() is self._loop:
            settle(self._current)
        else:
            with contextlib.suppress(RuntimeError):  # the loop was closed in this very moment
                self._loop.call_soon_threadsafe(settle, self._current)


class MessageStream:
    """What `messages()` and `subscribe()` give: loop over it, as often as wanted, also from several tasks at once.

    With `timeout`, a loop ends when that many seconds pass without a message.
    """

    def __init__(self, inbox: Inbox, queue: MessageQueue, timeout: float | None = None) -> None:
        self._inbox = inbox
        self._queue = queue
        self._timeout = timeout

    def __aiter__(self) -> MessageLoop:
        return MessageLoop(self._inbox, self._queue, self._timeout)

    async def receive(self, timeout: float | None = None) -> Message:  # noqa: ASYNC109 - what it ends with is ours to say
        """One message, outside of a loop: whoever takes it answers it, with `ack()`, `nack()` or `reply()`."""
        try:
            async with asyncio.timeout(timeout):
                return await self._queue.get()
        except Exhausted:
            raise ConnectionLost("The client was closed.", reason="closed") from None
        except TimeoutError:
            raise TimedOut(f"No message came within {timeout:g} seconds.") from None

    def acknowledge(self, message: Message) -> None:
        self._inbox.ack(message)

    def put_back(self, message: Message) -> None:
        self._inbox.release(message)
