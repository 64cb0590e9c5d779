"""Turns: everything that arrives in one iteration of the loop is handled together, and each peer is written to once.

A turn begins with the first thing that happens (bytes, a finished write of the store, a tick), and ends when the loop
comes round: the relay hands over what it accepted, and what it has to say goes out.

Where the relay gathers messages, nobody is served for a moment, and the system collects them for us: in a steady stream most
of what a message costs is waking up for it, and a chunk with five messages is read in the time of one with a single message.
Then the store's thread has the interpreter to itself for a moment.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol

from agent_relay.ports.clock import Clock
from agent_relay.ports.relay import RelayCore

_GATHERED_S = 0.0005  # with the write, a millisecond: at 5,000 messages a second, five at a time
_WRITTEN_S = 0.0002  # about as long as a write takes: without that, the two threads wait for each other all the time


class Flushable(Protocol):
    def flush(self) -> None: ...


class Pump:
    def __init__(
        self, loop: asyncio.AbstractEventLoop, relay: RelayCore, clock: Clock, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.relay = relay
        self._loop = loop
        self._clock = clock
        self._sleep = sleep
        self._in_turn = False
        self._has_gathered = False  # and what it has is being written
        self._unflushed: list[Flushable] = []
        self.steady_ms = clock.steady_ms()  # the moment of this turn, as the relay was told it

    def begin_turn(self) -> None:
        if not self._in_turn:
            self._in_turn = True
            self.steady_ms = self._clock.steady_ms()
            self.relay.clock_says(self.steady_ms, self._clock.wall_ms())
            self._loop.call_soon(self.end_turn)

    def run(self, callback: Callable[[], None]) -> None:
        """Something that happens outside of any connection: a store's answer, a tick."""
        self.begin_turn()
        callback()

    def run_later(self, callback: Callable[[], None]) -> None:
        """In a turn of its own."""
        self._loop.call_soon(self.run, callback)

    def promise(self) -> asyncio.Future[Any]:
        """For whoever inside the process waits for something."""
        return self._loop.create_future()

    def will_flush(self, connection: Flushable) -> None:
        self._unflushed.append(connection)
        self.begin_turn()

    def end_turn(self) -> None:
        if not self._in_turn:
            return
        try:
            self.relay.turn_ended()
        finally:
            self._in_turn = False
            unflushed, self._unflushed = self._unflushed, []
            for connection in unflushed:
                connection.flush()
        if self.relay.is_gathering:
            self._sleep(_GATHERED_S)
            self._has_gathered = True
            self.run(self.relay.gathered)  # with what has come meanwhile
        elif self._has_gathered:
            self._has_gathered = False
            self._sleep(_WRITTEN_S)
