from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.framing import DEFAULT_MAX_FRAME_BYTES, HEADER_BYTES, FrameDecoder, encode_frame, encode_length

bodies = st.lists(st.binary(max_size=60), max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:stop] for start, stop in pairwise(edges)]


def expected_remainder(frames: list[bytes], fed: int) -> int:
    """How many of the bytes fed so far belong to a frame that is not whole yet."""
    for frame in frames:
        if fed < HEADER_BYTES + len(frame):
            return fed
        fed -= HEADER_BYTES + len(frame)
    return fed


def test_the_length_is_four_bytes_big_endian() -> None:
    assert encode_frame(b"{}") == b"\x00\x00\x00\x02{}"
    assert encode_length(0x01020304) == b"\x01\x02\x03\x04"


def test_the_limit_of_the_contract() -> None:
    assert DEFAULT_MAX_FRAME_BYTES == 1_048_576
    assert FrameDecoder().max_frame_bytes == 1_048_576


@given(bodies, st.lists(st.integers(min_value=0)))
def test_any_chunking_gives_the_same_frames(frames: list[bytes], places: list[int]) -> None:
    decoder = FrameDecoder()
    found: list[bytes] = []
    fed = 0
    for chunk in cut(b"".join(map(encode_frame, frames)), places):
        found += decoder.feed(chunk)
        fed += len(chunk)
        assert decoder.buffered_bytes == expected_remainder(frames, fed)
    assert found == frames
    assert all(type(frame) is bytes for frame in found)
    assert decoder.buffered_bytes == 0
    assert decoder.oversize_bytes is None


@given(bodies)
def test_byte_by_byte(frames: list[bytes]) -> None:
    decoder = FrameDecoder()
    data = b"".join(map(encode_frame, frames))
    assert [frame for place in range(len(data)) for frame in decoder.feed(data[place : place + 1])] == frames


@given(bodies, st.binary(max_size=30))
def test_a_frame_that_stops_halfway_waits(frames: list[bytes], half: bytes) -> None:
    decoder = FrameDecoder()
    rest = encode_length(len(half) + 1) + half
    assert decoder.feed(b"".join(map(encode_frame, frames)) + rest) == frames
    assert decoder.buffered_bytes == len(rest)
    assert decoder.feed(b"!") == [half + b"!"]
    assert decoder.buffered_bytes == 0


@given(bodies, st.integers(61, 2**32 - 1), st.binary(max_size=80), st.lists(st.integers(min_value=0)))
def test_oversize_is_refused_from_the_header_alone(frames: list[bytes], size: int, after: bytes, places: list[int]) -> None:
    decoder = FrameDecoder(max_frame_bytes=60)
    before = b"".join(map(encode_frame, frames))
    found = [frame for chunk in cut(before + encode_length(size) + after, places) for frame in decoder.feed(chunk)]
    assert found == frames  # what came before it still comes out
    assert decoder.oversize_bytes == size
    assert decoder.buffered_bytes == 0


def test_nothing_after_an_oversize_header_is_read_as_a_frame() -> None:
    decoder = FrameDecoder(max_frame_bytes=8)
    assert decoder.feed(encode_frame(b"first") + encode_length(9) + encode_frame(b"hidden")) == [b"first"]
    assert decoder.feed(encode_frame(b"later")) == []
    assert decoder.oversize_bytes == 9


def test_no_byte_of_an_oversize_body_is_kept() -> None:
    decoder = FrameDecoder()
    for byte in encode_length(2**32 - 1):
        assert decoder.feed(bytes([byte])) == []
    assert decoder.oversize_bytes == 2**32 - 1
    for _ in range(50):
        assert decoder.feed(b"x" * 100_000) == []
        assert decoder.buffered_bytes == 0


@pytest.mark.parametrize(("size", "taken"), [(0, True), (1, True), (7, True), (8, True), (9, False)])
def test_the_limit_itself_is_allowed(size: int, taken: bool) -> None:
    decoder = FrameDecoder(max_frame_bytes=8)
    assert decoder.feed(encode_frame(b"x" * size)) == ([b"x" * size] if taken else [])
    assert decoder.oversize_bytes == (None if taken else size)


def test_feeding_nothing_changes_nothing() -> None:
    decoder = FrameDecoder()
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\x00\x00") == []
    assert decoder.feed(b"") == []
    assert decoder.buffered_bytes == 2
    assert decoder.feed(b"\x00\x01x") == [b"x"]
