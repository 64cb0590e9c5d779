"""The daemon's events, wired: into the store in a moment, out of it to whoever follows, and away when they are old."""

from __future__ import annotations

import asyncio

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
        store.open(self._appended)
        self.bus = EventBus(store)
        self.recorder = Recorder(store.append, lambda flush: loop.call_later(_GATHERED_S, flush))

    def _appended(self, first_seq: int, count: int, data: bytes) -> None:
        self.bus.published(first_seq, count, data)

    def prune_if_due(self) -> None:
        now = self._clock.steady_ms()
        if self._pruned_at is None or now - self._pruned_at >= _PRUNED_EVERY_MS:
            self._pruned_at = now
            self.store.prune(self._clock.wall_ms() - self._retention_ms)

    def close(self) -> None:
        """Blocks until everything told so far is written."""
        self.recorder.flush()
        self.store.close()
