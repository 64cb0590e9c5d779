"""The past of a session is recalled once, up to where the present begins."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.daemon.session_history import SessionHistory
from agent_relay.events.bus import EventBus
from agent_relay.events.drafts import Draft, Note, encode_drafts
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.types import AgentState, Event, ItemStarted


class Nothing:
    """A store that has no more than the feed keeps in memory."""

    last_seq = 0

    def read(self, query: EventQuery, done: Callable[[EventPage | Exception], None]) -> None:
        raise AssertionError("everything is in memory")


class Counts:
    def __init__(self, *partial: str) -> None:
        self.partial = set(partial)
        self.recalled: list[tuple[str, str]] = []

    def recall(self, session_id: str, event: Event) -> None:
        assert isinstance(event, ItemStarted)
        self.recalled.append((session_id, event.item_id))

    def complete(self) -> None:
        self.partial.clear()


def publish(bus: EventBus, *items: str) -> None:
    made = [ItemStarted(session_id="ses_1", item_id=item, item_type="plan", started_at=1) for item in items]
    drafts: list[Draft] = [Note(item, "Bob", "ses_1", 5) for item in made] + [Note(AgentState(state="idle"), "Bob", "ses_1", 5)]
    source = bus.source
    assert isinstance(source, Nothing)
    lines, _ = encode_drafts(drafts, source.last_seq + 1, 0)
    first, source.last_seq = source.last_seq + 1, source.last_seq + len(drafts)
    bus.published(first, len(drafts), lines)


def test_the_past_is_recalled_and_the_present_is_not() -> None:
    bus, counts = EventBus(Nothing()), Counts("ses_1")
    publish(bus, "a", "b")
    history = SessionHistory(counts, bus, bus.last_seq)
    publish(bus, "c")
    history.start()
    history.clock_says()
    publish(bus, "d")
    assert counts.recalled == [("ses_1", "a"), ("ses_1", "b")]
    assert not counts.partial
    assert bus.subscribers == 0


def test_nobody_reads_where_there_is_nothing_to_recall() -> None:
    bus, counts = EventBus(Nothing()), Counts()
    publish(bus, "a")
    history = SessionHistory(counts, bus, bus.last_seq)
    history.start()
    history.clock_says()
    assert (counts.recalled, bus.subscribers) == ([], 0)
