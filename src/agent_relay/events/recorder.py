"""The way in: events are gathered for a moment and then given to the store together.

A moment is too short for anybody who watches, and long enough that a thousand messages a second wake the store's thread a
few times and not a thousand times.
"""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.events.drafts import Draft, Note
from agent_relay.events.types import Event


class Recorder:
    """`later` runs a callback in a moment, on the same thread; `append` takes a list that is its own from then on."""

    def __init__(self, append: Callable[[list[Draft]], None], later: Callable[[Callable[[], None]], object]) -> None:
        self._append = append
        self._later = later
        self._drafts: list[Draft] = []
        self._is_held = False

    def publish(self, event: Event, *, agent: str = "", session_id: str = "", at_ms: int) -> None:
        self.record([Note(event, agent, session_id, at_ms)])

    def record(self, drafts: list[Draft]) -> None:
        if not self._drafts and not self._is_held:
            self._later(self.flush)
        self._drafts += drafts

    def hold(self) -> None:
        """Nothing is given on before `release`: something else is to come first."""
        self._is_held = True

    def release(self, first: list[Draft]) -> None:
        self._is_held = False
        self._drafts[:0] = first
        self.flush()

    def flush(self) -> None:
        if self._drafts and not self._is_held:
            drafts, self._drafts = self._drafts, []
            self._append(drafts)
