"""The past of sessions that an earlier daemon began: recalled from the recorded events, in the background, once."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.codec import BadEvent, decode_event
from agent_relay.events.filter import make_filter
from agent_relay.events.summaries import COUNTED
from agent_relay.events.types import Event


class Counts(Protocol):
    @property
    def partial(self) -> Collection[str]: ...

    def recall(self, session_id: str, event: Event) -> None: ...

    def complete(self) -> None: ...


class SessionHistory:
    """Made before anybody connects: what is recorded by then is the past. If the store cannot be read, or the reading is cut, it
    is begun again with the next tick."""

    def __init__(self, counts: Counts, bus: EventBus, last_seq: int) -> None:
        self._counts = counts
        self._bus = bus
        self._until = last_seq
        self._subscription: Subscription | None = None
        self._is_done = not counts.partial

    def start(self) -> None:
        if not self._is_done:
            self._listen(0)

    def clock_says(self) -> None:
        if self._is_done or self._subscription is None:
            return
        if self._subscription.is_over:
            self._listen(self._subscription.cursor)
        else:
            self._hear()

    def _listen(self, after_seq: int) -> None:
        self._subscription = self._bus.subscribe(make_filter(COUNTED), after_seq=after_seq, on_news=self._hear)
        self._hear()

    def _hear(self) -> None:
        subscription = self._subscription
        if subscription is None or self._is_done:
            return
        while records := subscription.take():
            for record in records:
                if record.seq <= self._until:
                    self._recall(record.line)
        if subscription.cursor >= self._until:
            self._is_done = True
            subscription.close()
            self._counts.complete()

    def _recall(self, line: bytes) -> None:
        try:
            event = decode_event(line)
        except BadEvent:
            return
        self._counts.recall(event.by_session, event)
