"""Counts of the sessions that run, for the summary of each when it ends.

They follow what wrappers report. What an earlier daemon was told is in the recorded events, and whoever has those recalls it;
until that is done, the counts of such a session are not known.
"""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.events.prices import Prices
from agent_relay.events.summaries import SessionCount
from agent_relay.events.types import Event, SessionSummary
from agent_relay.ports.agents import SessionRow


class SessionCounts:
    def __init__(self) -> None:
        self.read_prices: Callable[[], Prices] = Prices
        self._counts: dict[str, SessionCount] = {}
        self._partial: set[str] = set()  # those that another daemon began

    @property
    def partial(self) -> frozenset[str]:
        return frozenset(self._partial)

    def begin(self, session_id: str, *, is_whole: bool = True) -> None:
        self._counts[session_id] = SessionCount(self.read_prices())
        if not is_whole:
            self._partial.add(session_id)

    def note(self, session_id: str, event: Event) -> None:
        """Something an agent did; of a session that the daemon did not begin, nothing is counted."""
        count = self._counts.get(session_id)
        if count is not None:
            count.add(event)

    def recall(self, session_id: str, event: Event) -> None:
        """The same, out of the recorded events."""
        if session_id in self._partial:
            self.note(session_id, event)

    def complete(self) -> None:
        """Everything recorded was recalled."""
        self._partial.clear()

    def drop(self, session_id: str) -> None:
        self._counts.pop(session_id, None)
        self._partial.discard(session_id)

    def finish(self, session: SessionRow) -> SessionSummary:
        """Of one that has ended; counted no more."""
        count, is_partial = self._counts.get(session.id), session.id in self._partial
        self.drop(session.id)
        duration_ms = (session.ended_at or session.started_at) - session.started_at
        return SessionSummary(duration=max(0, duration_ms)) if count is None or is_partial else count.finish(duration_ms)
