"""What waits to be written: given in pieces, dropped between frames."""

from __future__ import annotations

from typing import Any

from agent_relay.transports.arc.outbox import PIECE_BYTES, Outbox


class Sink:
    """A transport whose system takes as many bytes as the test lets it."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken = b""
        self.held = b""

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0

    def write(self, data: bytes) -> None:
        self.held += data
        self.let(0)

    def let(self, more: int) -> None:
        self.room += more
        now, self.held = self.held[: self.room], self.held[self.room :]
        self.room -= len(now)
        self.taken += now

    def get_write_buffer_size(self) -> int:
        return len(self.held)


def make(room: int) -> tuple[Outbox, Any]:
    sink: Any = Sink(room)
    return Outbox(sink), sink


def test_everything_goes_in_one_write_where_there_is_room() -> None:
    out, sink = make(1_000)
    for frame in (b"one ", b"two ", b"three"):
        out.put(frame)
    assert out.unsent_bytes == 13
    out.flush(0)
    assert (sink.taken, out.unsent_bytes, out.is_stalled) == (b"one two three", 0, False)


def test_what_the_transport_has_is_bounded_and_the_rest_can_be_dropped() -> None:
    out, sink = make(100)
    frames = [bytes([65 + number]) * 100_000 for number in range(10)]
    for frame in frames:
        out.put(frame)
    out.flush(7)
    assert out.is_stalled
    assert len(sink.taken) == 100
    assert len(sink.held) <= PIECE_BYTES + 100_000
    assert out.unsent_bytes == 999_900
    assert (out.stalled_ms(10_007), out.stalled_ms(7)) == (10_000, 0)
    out.drop()
    out.put(b"last words")
    out.flush(8)
    assert b"last words" not in sink.held  # nothing is given before the rest is taken
    sink.let(10**9)
    out.is_stalled = False
    out.flush(9)
    assert sink.taken == b"".join(frames[:3]) + b"last words"
    assert out.unsent_bytes == 0
