"""Pages of recorded events: always oldest first, a page at a time, each of a bounded effort."""

from __future__ import annotations

from msgspec import Struct

from agent_relay.events.filter import EventFilter
from agent_relay.events.record import Record

EVERYTHING = EventFilter()


class EventQuery(Struct, frozen=True):
    filter: EventFilter = EVERYTHING
    after_seq: int = 0
    since_ms: int | None = None  # inclusive
    until_ms: int | None = None  # exclusive
    limit: int = 100


class EventPage(Struct):
    """The next page is after `last_seq`, which is how far was looked: there may be no record in a page and more to come."""

    records: list[Record]
    last_seq: int
    oldest_seq: int  # the first that is kept; one more than the last where nothing is
    is_end: bool  # there was nothing more
