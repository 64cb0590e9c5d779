"""The window: how much may be unanswered at once. Whoever comes first goes first."""

from __future__ import annotations

import asyncio
from collections import deque

from agent_relay.protocol.errors import RelayError


class Window:
    """Room for `max_count` frames of `max_bytes` together; one frame larger than that may pass alone."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._count = 0
        self._bytes = 0
        self._waiters: deque[tuple[asyncio.Future[None], int]] = deque()

    async def enter(self, size: int) -> None:
        """Returns when there is room, and has taken it."""
        if not self._waiters and self._fits(size):
            self._take(size)
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((waiter, size))
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.leave(size)  # the room was given to this one in the same moment
            elif (waiter, size) in self._waiters:
                self._waiters.remove((waiter, size))
                self._admit()
            raise

    def leave(self, size: int) -> None:
        self._count -= 1
        self._bytes -= size
        self._admit()

    def refuse(self, error: RelayError) -> None:
        """Everybody who waits for room is told that there will be none."""
        while self._waiters:
            waiter, _ = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(error)

    def _fits(self, size: int) -> bool:
        return self._count < self._max_count and (self._bytes + size <= self._max_bytes or not self._count)

    def _take(self, size: int) -> None:
        self._count += 1
        self._bytes += size

    def _admit(self) -> None:
        while self._waiters and self._fits(self._waiters[0][1]):
            waiter, size = self._waiters.popleft()
            if not waiter.done():
                self._take(size)
                waiter.set_result(None)
