from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.cluster.event_queue import MAX_WAITING, EventQueue
from agent_relay.events.drafts import Draft, Exchange, Note
from agent_relay.events.types import LoopDetected
from agent_relay.protocol.ulid import encode_bits, encode_time, number_of
from tests.support.harness import RecordingLog

PLENTY = (1_000, 1_000_000, 2_000_000)  # events, bytes as a rule, bytes of one


def note(text: Any) -> Draft:
    return Note(LoopDetected(agents=["Bob"], hops=1, stage="warned", text=text), "Bob", "", 7)


def exchange(counter: int) -> tuple[Draft, int]:
    ulid = encode_time(1_800_000_000_000) + encode_bits(0, 12) + encode_bits(counter, 4)
    return Exchange(0, 7, "", "A", "", f"msg_{ulid}", "A", "B", "message", "hello"), number_of(ulid)


def texts(data: bytes) -> list[Any]:
    events = [json.loads(line) for line in data.splitlines()]
    return [event.get("text", event.get("lost")) for event in events]


@pytest.fixture
def queue() -> EventQueue:
    return EventQueue(RecordingLog())


def test_events_are_taken_in_order_with_their_numbers(queue: EventQueue) -> None:
    queue.add([note("one"), note("two"), note("three")])
    taken = queue.take(41, 5, 2, *PLENTY[1:])
    assert [json.loads(line)["_seq"] for line in taken.data.splitlines()] == [41, 42]
    assert (texts(taken.data), taken.ts, queue.waiting, queue.is_empty) == (["one", "two"], 7, 3, False)
    queue.settle()
    assert queue.waiting == 1


def test_what_was_refused_comes_again_before_the_rest(queue: EventQueue) -> None:
    first, number = exchange(5)
    queue.add([first, note("two")])
    assert queue.take(1, 0, 1, *PLENTY[1:]).message == number
    queue.put_back()
    queue.add_first(note("a gap, say"))
    taken = queue.take(90, 0, *PLENTY)
    assert (taken.count, taken.message, texts(taken.data)) == (3, number, ["a gap, say", None, "two"])


def test_a_message_is_covered_when_all_before_it_is_written(queue: EventQueue) -> None:
    queue.add([note("one"), note("two")])
    queue.cover(9)
    assert queue.take(1, 0, 1, *PLENTY[1:]).message == 0
    queue.settle()
    assert queue.take(2, 0, *PLENTY).message == 9
    queue.put_back()
    assert queue.take(2, 0, *PLENTY).message == 9
    queue.settle()
    assert queue.take(3, 0, *PLENTY).message == 0


def test_what_is_too_much_is_counted_and_a_gap_stands_for_it(queue: EventQueue) -> None:
    queue.add([note("x")] * MAX_WAITING)
    queue.add([note("lost")] * 3)
    queue.add([note("lost")])
    assert (queue.waiting, queue.lost) == (MAX_WAITING, 4)
    told = []
    while taken := queue.take(1, 0, *PLENTY).data:
        told += texts(taken)
    assert told == [*["x"] * MAX_WAITING, 4]


def test_what_cannot_be_encoded_or_is_too_large_is_lost_alone(queue: EventQueue) -> None:
    queue.add([note("one"), note(object()), note("x" * 3_000), note("two"), note("y" * 900)])
    told = []
    while taken := queue.take(1, 0, 1_000, 400, 2_000).data:
        assert len(taken) <= 400 or taken.count(b"\n") == 1
        told += texts(taken)
    assert told == ["one", 1, 1, "two", "y" * 900]
    assert queue.lost == 2
