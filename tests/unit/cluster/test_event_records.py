from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agent_relay.cluster.event_records import EventClaim, EventRecord, decode_event_record, encode_event_record
from agent_relay.cluster.records import BadRecord
from agent_relay.events.drafts import Note, encode_drafts
from agent_relay.events.types import LoopDetected


def make_record(first_seq: int = 7, count: int = 3) -> EventRecord:
    event = LoopDetected(agents=["Bob"], hops=1, stage="warned", text="a\nb")
    data, ts = encode_drafts([Note(event, "Bob", "", 5)] * count, first_seq, 0)
    return EventRecord("n", 2, first_seq, count, ts, 99, is_last=False, data=data)


@pytest.mark.parametrize("record", [make_record(), make_record(count=0), EventClaim("n", 2, "a", "a-1", 6)])
def test_a_record_comes_back_as_it_was(record: EventRecord | EventClaim) -> None:
    assert decode_event_record(encode_event_record(record)) == record


@pytest.mark.parametrize(
    "wrong",
    [
        replace(make_record(), count=2),
        replace(make_record(), first_seq=8),
        replace(make_record(), data=make_record().data[:-1]),
        replace(make_record(), data=b"one\ntwo\nthree\n"),
        replace(make_record(count=0), first_seq=0),
    ],
)
def test_lines_that_are_not_as_the_record_says_are_refused(wrong: EventRecord) -> None:
    with pytest.raises(BadRecord, match="does not have"):
        decode_event_record(encode_event_record(wrong))


def test_a_record_of_another_kind_is_refused() -> None:
    with pytest.raises(BadRecord, match="unknown kind"):
        decode_event_record(b"X")


@given(st.binary(max_size=100))
def test_whatever_is_read_is_a_record_or_a_clear_refusal(data: bytes) -> None:
    for record in (data, b"E" + data, b"C" + data):
        with contextlib.suppress(BadRecord):
            decode_event_record(record)
