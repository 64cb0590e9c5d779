"""Waiting for what must come to its end: work that a cancellation may not break off, and work side by side."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any, TypeVar

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
