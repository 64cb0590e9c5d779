"""Waiting for what must come to its end: work that a cancellation may not break off, work side by side, sessions of agents."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from types import TracebackType
from typing import Any, TypeVar

from agent_relay.events.types import SessionEnded
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Waits until the work is done, however often it is cancelled meanwhile; the cancellation follows then."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled from task.exception()
    return task.result()


@contextlib.asynccontextmanager
async def side_by_side(works: Sequence[Coroutine[Any, Any, T]]) -> AsyncIterator[list[asyncio.Task[T]]]:
    """The works as tasks. When the block is left, those that still run are cancelled, and have ended."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        yield tasks
    finally:
        await to_the_end(call_off(tasks))


async def call_off(tasks: Sequence[asyncio.Task[Any]]) -> None:
    """Cancels them and waits for that; what came of them is of no interest any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class SessionEnds:
    """The sessions that have ended since the block began: an agent may be gone before its start was answered."""

    def __init__(self, relay: RelayClient) -> None:
        self._feed = relay.events(["session.ended"])
        self._ends: dict[str, asyncio.Future[str]] = {}
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> SessionEnds:
        await self._feed.__aenter__()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._feed.aclose()
        if self._watching is not None:
            await to_the_end(call_off([self._watching]))

    async def reason(self, session_id: str) -> str:
        """The end of a session, as soon as it has come. Raises when that cannot be known any more."""
        assert self._watching is not None
        end = self._end_of(session_id)
        waited_for: set[asyncio.Future[Any]] = {end, self._watching}
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        if not end.done():
            self._watching.result()
            raise ConnectionLost("The client was closed.", reason="closed")
        return end.result()

    async def _watch(self) -> None:
        async for event in self._feed:
            if isinstance(event, SessionEnded) and not self._end_of(event.session_id).done():
                self._end_of(event.session_id).set_result(event.reason)

    def _end_of(self, session_id: str) -> asyncio.Future[str]:
        if session_id not in self._ends:
            self._ends[session_id] = asyncio.get_running_loop().create_future()
        return self._ends[session_id]
