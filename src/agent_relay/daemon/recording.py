"""The daemon's events, wired: into the store in a moment, out of it to whoever follows, and away when they are old."""

from __future__ import annotations

import asyncio
import contextlib

from agent_relay.events.bus import EventBus
from agent_relay.events.recorder import Recorder
from agent_relay.ports.clock import Clock
from agent_relay.ports.events import EventStore

_GATHERED_S = 0.01  # nobody notices, and it spares the store's thread most of its wakings
_PRUNED_EVERY_MS = 60_000


class Recording:
    """Opens the store. `bus` and `recorder` are for everybody who follows and tells events."""

    def __init__(self, store: EventStore, loop: asyncio.AbstractEventLoop, clock: Clock, retention_ms: int) -> None:
        self.store = store
        self._clock = clock
        self._retention_ms = retention_ms
        self._pruned_at: int | None = None
        self._published = asyncio.Event()
        store.open(self._appended)
        self.bus = EventBus(store)
        self.recorder = Recorder(store.append, lambda flush: loop.call_later(_GATHERED_S, flush))
        self.recorder.hold()  # until what the last daemon could not write any more has been told

    def _appended(self, first_seq: int, count: int, data: bytes) -> None:
        self.bus.published(first_seq, count, data)
        self._published.set()

    async def until_published(self, seconds: float) -> None:
        """Returns when whoever asks for what happens from now on gets nothing of what was told so far; or after that time, where
        it cannot be written."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.store.stats().waiting or self.bus.last_seq < self.store.last_seq:
                    self._published.clear()
                    await self._published.wait()

    def prune_if_due(self) -> None:
        now = self._clock.steady_ms()
        if self._pruned_at is None or now - self._pruned_at >= _PRUNED_EVERY_MS:
            self._pruned_at = now
            self.store.prune(self._clock.wall_ms() - self._retention_ms)

    def close(self) -> None:
        """Blocks until everything told so far is written."""
        self.recorder.release([])
        self.store.close()
