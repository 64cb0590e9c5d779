"""Filters of events: by type, and by the agent or the session they are about."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from agent_relay.events.record import Record
from agent_relay.events.types import EVENT_TYPES
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, show

_GAP = "stream.gap"  # concerns every reader


class EventFilter(Struct, frozen=True):
    types: frozenset[str] = frozenset()  # empty: every type
    agent: str | None = None  # whose event it is, or who it is from or to
    session_id: str | None = None

    def matches(self, record: Record) -> bool:
        if record.type == _GAP:
            return True
        if self.types and record.type not in self.types:
            return False
        if self.session_id is not None and record.session_id != self.session_id:
            return False
        return self.agent is None or self._is_about(fold_name(self.agent), record)

    def _is_about(self, key: str, record: Record) -> bool:
        if key in (fold_name(record.agent), fold_name(record.sender)):
            return True
        return any(fold_name(name) == key for name in record.to.split(","))

    @property
    def marks(self) -> list[bytes]:
        """Every line that `matches` by its type holds one of these."""
        return [f'{{"type":"{name}"'.encode() for name in (*self.types, _GAP)]


def make_filter(
    types: Iterable[str] = (), agent: str | None = None, session_id: str | None = None, field: str = "types"
) -> EventFilter:
    """`item.*` stands for every type that begins so. Raises RelayError for a type there is none of."""
    wanted: set[str] = set()
    for name in types:
        found = {kind for kind in EVENT_TYPES if kind == name or (name.endswith(".*") and kind.startswith(name[:-1]))}
        if name == "*":
            found = set(EVENT_TYPES)
        if not found:
            raise RelayError(ErrorCode.INVALID_FORMAT, f"Unknown event type {show(name, 80)}.", field=field)
        wanted |= found
    return EventFilter(frozenset(wanted), agent, session_id)
