"""A result that any number of tasks can wait for, and that nobody has to look at.

A future complains when its exception is never retrieved; a refused message that its sender did not wait for is no
error of the program, so waiting makes the future here, not failing.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

from agent_relay.protocol.errors import RelayError

T = TypeVar("T")


class Outcome(Generic[T]):
    __slots__ = ("_done", "_error", "_value", "_waiters")

    def __init__(self) -> None:
        self._done = False
        self._value: T | None = None
        self._error: RelayError | None = None
        self._waiters: list[asyncio.Future[None]] = []

    @property
    def done(self) -> bool:
        return self._done

    @property
    def error(self) -> RelayError | None:
        return self._error

    @property
    def awaited(self) -> bool:
        return bool(self._waiters)

    def resolve(self, value: T) -> None:
        """The first outcome counts; a later one is ignored."""
        if not self._done:
            self._value = value
            self._finish()

    def fail(self, error: RelayError) -> None:
        if not self._done:
            self._error = error
            self._finish()

    def _finish(self) -> None:
        self._done = True
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters = []

    async def wait(self) -> T:
        if not self._done:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            finally:
                if waiter in self._waiters:
                    self._waiters.remove(waiter)
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # `_done` without an error means that it was set
