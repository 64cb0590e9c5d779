"""A stream's cursor: what is settled, in whatever order it was settled."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.core.streams import Stream, restore_stream
from agent_relay.ports.store import StreamRow


@given(st.lists(st.integers(1, 40), max_size=80))
def test_the_cursor_is_the_set_of_settled_numbers(seqs: list[int]) -> None:
    stream, settled = Stream("", "Alice", "Bob"), set()
    for seq in seqs:
        stream.settle(seq)
        settled.add(seq)
        assert {number for number in range(1, 45) if stream.is_done(number)} == settled
        assert all(number > stream.done_seq + 1 for number in stream.done_above)


def test_a_lost_connection_leaves_certain_only_what_was_answered() -> None:
    stream = Stream("", "Alice", "Bob")
    stream.heard_seq, stream.base_seq = 3, 7
    stream.connection_lost()
    assert stream.base_seq == 3


@given(st.lists(st.integers(1, 20), max_size=20))
def test_a_row_restores_the_stream(seqs: list[int]) -> None:
    stream = Stream("news", "Alice", "Bob")
    stream.last_seq, stream.wire_seq, stream.heard_seq = 30, 25, 20
    for seq in seqs:
        stream.settle(seq)
    restored = restore_stream(stream.row())
    assert restored.row() == stream.row()
    assert restored.base_seq == stream.heard_seq
    assert [restored.is_done(seq) for seq in range(1, 31)] == [stream.is_done(seq) for seq in range(1, 31)]


def rows(stream: Stream) -> list[tuple[str, int, int]]:
    return [(row.event, row.first_seq, row.last_seq) for row in stream.trail_rows(99)]


def test_the_trail_tells_how_far_it_has_come_since_the_last_time() -> None:
    stream = Stream("news", "Alice", "Bob")
    stream.wire_seq, stream.done_seq = 9, 4
    assert rows(stream) == [("sent", 1, 9), ("acknowledged", 1, 4)]
    stream.wire_seq, stream.done_seq = 9, 9
    assert rows(stream) == [("acknowledged", 5, 9)]
    assert rows(stream) == []


def test_the_trail_leaves_out_what_is_noted_by_itself() -> None:
    stream = Stream("", "Alice", "Bob")
    stream.wire_seq = stream.done_seq = 6
    stream.unsent, stream.otherwise = {2}, {2, 6}
    assert rows(stream) == [("sent", 1, 1), ("sent", 3, 6), ("acknowledged", 1, 1), ("acknowledged", 3, 5)]


def test_numbers_the_store_has_lost_are_passed_over_in_one_step() -> None:
    """1 and 2 are done, 3 and 4 are owed, 5 is done; 6 to 50 were of messages that are lost, and the next will be 51."""
    stream = restore_stream(StreamRow("", "Alice", "Bob", 50, 5, 5, 2, (5, 6, -50)))
    assert restore_stream(stream.row()).row() == stream.row()
    stream.settle(51)
    stream.settle(3)
    assert (stream.done_seq, stream.done_above) == (3, {5, 6, 51})
    stream.settle(4)
    assert (stream.done_seq, stream.done_above, stream.gaps) == (51, set(), {})


def test_a_stream_may_begin_later() -> None:
    stream = Stream("", "Alice", "Bob", 100)
    assert (stream.last_seq, stream.done_seq, stream.base_seq) == (100, 100, 0)
    stream.settle(101)
    stream.wire_seq = 101
    assert rows(stream) == [("sent", 101, 101), ("acknowledged", 101, 101)]
