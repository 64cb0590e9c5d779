"""What is written for messages is the same JSON that the events' own structs give."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.events.codec import decode_event, encode_event
from agent_relay.events.drafts import Exchange, Handover, Lost, Note, encode_drafts, weigh
from agent_relay.events.record import split_lines
from agent_relay.events.types import Event, MessageDelivered, MessageExchanged, StreamGap
from tests.support.event_driver import make_note

texts = st.text(st.characters(exclude_categories=["Cs"]))


def encode_one(draft: Note | Exchange | Handover | Lost, seq: int = 5, ts: int = 0) -> Event:
    data, _ = encode_drafts([draft], seq, ts)
    (line,) = split_lines(data)
    return decode_event(line)


def exchange(to: str, body: str, thread: str | None = None, channel: str | None = None) -> Exchange:
    return Exchange(0, 7, "ses_1", "Alice", "ses_1", "msg_1", "Alice", to, "message", body, thread, channel)


@given(body=texts, thread=st.none() | texts, topic=st.just("") | texts)
def test_a_message_is_told_as_it_was_sent(body: str, thread: str | None, topic: str) -> None:
    told = encode_one(exchange("Bob,Carol", body, thread, topic or None))
    assert told == MessageExchanged(
        seq=5, ts=7, by_session="ses_1", by_agent="Alice", session_id="ses_1", message_id="msg_1", from_="Alice",
        to="Bob,Carol", body=body, kind="message", thread=thread, channel=topic or None,
    )  # fmt: skip


def test_a_channel_is_told_as_such() -> None:
    told = encode_one(exchange("#dev", "x", None, "#dev"))
    assert isinstance(told, MessageExchanged)
    assert (told.to, told.channel) == ("#dev", "#dev")


@given(door=st.none() | texts, evidence=st.none() | texts)
def test_a_delivery_is_told_with_its_evidence(door: str | None, evidence: str | None) -> None:
    told = encode_one(Handover(0, 7, "ses_2", "Bob", "msg_1", "Bob", 2, 40, door, evidence))
    assert told == MessageDelivered(
        seq=5, ts=7, by_session="ses_2", by_agent="Bob", message_id="msg_1", to="Bob", attempt=2, latency_ms=40, door=door,
        evidence=evidence,
    )  # fmt: skip


def test_any_event_is_told_as_it_is() -> None:
    event = MessageDelivered(message_id="m", to="Bob", attempt=1, latency_ms=0)
    data, _ = encode_drafts([Note(event, "Bob", "ses_2", 7)], 5, 0)
    (line,) = split_lines(data)
    assert decode_event(line) == MessageDelivered(
        seq=5, ts=7, by_session="ses_2", by_agent="Bob", message_id="m", to="Bob", attempt=1, latency_ms=0
    )
    assert encode_event(decode_event(line)) == line


def test_what_is_lost_leaves_a_gap_before_the_next() -> None:
    assert encode_one(Lost(7, 12)) == StreamGap(seq=5, ts=7, oldest=6, lost=12, reason="unwritten")
    assert encode_one(Lost(7, reason="killed")) == StreamGap(seq=5, ts=7, oldest=6, reason="killed")


def test_what_could_not_be_written_is_told_the_same_the_next_time() -> None:
    drafts = [
        exchange("Bob", "x"),
        Lost(9),
        Handover(0, 9, "s", "Bob", "m", "Bob", 1, 2),
    ]
    first, again = encode_drafts(list(drafts), 5, 0), encode_drafts(list(drafts), 5, 0)
    assert first == again
    assert encode_drafts(list(drafts), 8, 0) != first


def test_numbers_count_up_and_times_never_go_back() -> None:
    data, last = encode_drafts([Lost(50), Lost(40), Lost(60)], 10, 45)
    assert [(event.seq, event.ts) for event in map(decode_event, split_lines(data))] == [(10, 50), (11, 50), (12, 60)]
    assert last == 60


def test_a_message_of_a_clock_that_was_set_back_is_told_at_the_moment_before() -> None:
    early, late = exchange("Bob", "x"), Handover(0, 1_000, "s", "Bob", "m", "Bob", 1, 2)
    data, last = encode_drafts([late, early, Lost(20), exchange("Bob", "y")], 10, 900)
    events = [decode_event(line) for line in split_lines(data)]
    assert [(event.seq, event.ts) for event in events] == [(10, 1_000), (11, 1_000), (12, 1_000), (13, 1_000)]
    assert [type(event) for event in events] == [MessageDelivered, MessageExchanged, StreamGap, MessageExchanged]
    assert last == 1_000


def test_a_long_report_weighs_what_it_holds() -> None:
    assert weigh([make_note(1, text="x" * 100_000)]) > 100_000
    assert weigh([make_note(1)]) < 1_000


def test_a_long_message_weighs_what_it_holds() -> None:
    assert weigh([exchange("Bob", "x" * 1_000_000), Lost(0)]) >= 1_000_000
