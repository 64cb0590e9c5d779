from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.cluster.records import BadRecord, Claim, Part, decode_record, divide_batch, encode_batch, encode_claim
from agent_relay.ports.store import (
    AgentRow,
    BacklogRow,
    Batch,
    DeadLetterRow,
    MemberRow,
    MessageRow,
    SpentToken,
    StreamRow,
    SubscriptionRow,
    TrailRow,
)

numbers = st.integers(0, 2**53)
words = st.text(max_size=8)
seqs = st.lists(st.integers(-9, 9), max_size=3).map(tuple)
messages = st.builds(
    MessageRow, numbers, words, words, words, words, words, words, st.none() | words, numbers, numbers, numbers, numbers,
    st.tuples(words), st.lists(st.tuples(words, numbers), max_size=3).map(tuple), st.binary(max_size=50),
)  # fmt: skip
batches = st.builds(
    Batch,
    messages=st.lists(messages, max_size=4),
    agents=st.lists(
        st.builds(
            AgentRow, words, st.none() | words, st.integers(-3, 9), words, words, st.none() | words, numbers, numbers,
            st.booleans(), st.binary(max_size=9),
        ),
        max_size=2,
    ),
    forgotten=st.lists(words, max_size=2),
    spent_tokens=st.lists(st.builds(SpentToken, words, words, numbers), max_size=2),
    subscriptions=st.lists(st.builds(SubscriptionRow, words, words, st.booleans()), max_size=2),
    members=st.lists(st.builds(MemberRow, words, words, st.booleans()), max_size=2),
    streams=st.lists(
        st.builds(
            StreamRow, words, words, words, numbers, numbers, numbers, numbers, seqs
        ),
        max_size=2,
    ),
    trail=st.lists(st.builds(TrailRow, words, words, words, numbers, numbers, numbers, words, words), max_size=2),
    dead_letters=st.lists(st.builds(DeadLetterRow, numbers, words, numbers, words, st.booleans()), max_size=2),
    backlog_removed=st.lists(st.tuples(words, numbers), max_size=2),
    backlog_added=st.lists(st.builds(BacklogRow, words, numbers, numbers, numbers, numbers), max_size=2),
    documents=st.dictionaries(words, st.binary(max_size=50), max_size=3),
    checkpoint=st.none() | numbers,
)  # fmt: skip


@given(batches)
def test_a_batch_comes_back_as_it_was(batch: Batch) -> None:
    assert decode_record(encode_batch(batch)) == batch


def test_a_claim_comes_back_as_it_was() -> None:
    assert decode_record(encode_claim(Claim(7, "a", "a-1"))) == Claim(7, "a", "a-1")


def join(parts: list[Part]) -> Batch:
    """What a store holds that has written them one after the other."""
    whole = Batch()
    for part in parts:
        for name in Batch.__struct_fields__:
            rows = getattr(part.batch, name)
            if isinstance(rows, list):
                getattr(whole, name).extend(rows)
        whole.documents |= part.batch.documents
        whole.checkpoint = part.batch.checkpoint
    return whole


@given(batches, st.integers(1, 2_000))
def test_the_parts_of_a_batch_are_the_batch(batch: Batch, most: int) -> None:
    parts = divide_batch(batch, most)
    assert join(parts) == batch
    assert [decode_record(part.record) for part in parts] == [part.batch for part in parts]
    assert all(part.batch.checkpoint is None for part in parts[:-1])  # it speaks for all of them


@given(batches)
def test_no_part_is_too_large_unless_it_is_a_single_row(batch: Batch) -> None:
    for part in divide_batch(batch, 400):
        rows = sum(len(rows) for name in Batch.__struct_fields__ if isinstance(rows := getattr(part.batch, name), (list, dict)))
        assert rows <= 1 or len(part.record) <= 400


def test_a_batch_that_fits_stays_whole() -> None:
    row = MessageRow(1, "m", "A", "c", "B", "", "message", None, 1, 2, 5, 0, (), (("B", 1),), b"x" * 900)
    assert len(divide_batch(Batch(messages=[row] * 3), 10_000)) == 1
    assert [len(part.batch.messages) for part in divide_batch(Batch(messages=[row] * 3), 2_200)] == [2, 1]
    assert [len(part.batch.messages) for part in divide_batch(Batch(messages=[row] * 3), 10)] == [1, 1, 1]


def test_what_a_batch_holds_beside_messages_is_divided_in_the_order_it_is_written() -> None:
    """All agents acknowledge at once after a pause: their cursors alone are more than a record may have."""
    streams = [StreamRow("", "Alice", f"Agent-{place}", 3, 3, 3, 3, ()) for place in range(200)]
    batch = Batch(streams=streams, backlog_removed=[(row.recipient, 7) for row in streams], checkpoint=9)
    parts = divide_batch(batch, 2_000)
    assert join(parts) == batch
    assert all(len(part.record) <= 2_000 for part in parts)
    first_removal = next(place for place, part in enumerate(parts) if part.batch.backlog_removed)
    assert not any(part.batch.streams for part in parts[first_removal + 1 :])  # first it is done, and then off the list


def test_documents_are_divided_like_messages() -> None:
    batch = Batch(documents={name: name.encode() * 900 for name in "abc"}, checkpoint=5)
    assert [part.batch for part in divide_batch(batch, 10_000)] == [batch]
    first, second = (part.batch for part in divide_batch(batch, 2_200))
    assert (list(first.documents), first.checkpoint) == (["a", "b"], None)
    assert (list(second.documents), second.checkpoint) == (["c"], 5)


def test_a_batch_without_documents_is_as_it_was_before_there_were_any() -> None:
    assert encode_batch(Batch(forgotten=["Bob"])) == b"B" + msgspec.msgpack.encode({"forgotten": ["Bob"]})
    assert decode_record(b"B" + msgspec.msgpack.encode({"checkpoint": 5})) == Batch(checkpoint=5)


@given(st.binary(max_size=100))
def test_whatever_is_read_is_a_record_or_a_clear_refusal(data: bytes) -> None:
    for record in (data, b"B" + data, b"C" + data):
        with contextlib.suppress(BadRecord):
            decode_record(record)


def test_a_record_of_a_later_version_is_refused() -> None:
    with pytest.raises(BadRecord, match="unknown field"):
        decode_record(b"B" + msgspec.msgpack.encode({"wonders": [1]}))
    with pytest.raises(BadRecord, match="update"):
        decode_record(b"X")
