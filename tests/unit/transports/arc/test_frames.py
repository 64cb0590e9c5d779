"""WebSocket frames, against another implementation of the same: however the bytes are cut, the same is understood."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode

from agent_relay.protocol.arc.codes import CloseCode
from agent_relay.transports.arc.frames import (
    FrameReader,
    Kind,
    accept_key,
    encode_close,
    encode_frame,
    encode_text,
    is_key,
    read_close,
)

MOST, HARD = 1_000, 3_000

MESSAGES = st.lists(
    st.tuples(st.sampled_from([Opcode.TEXT, Opcode.BINARY]), st.lists(st.binary(max_size=400), min_size=1, max_size=4))
    | st.tuples(st.sampled_from([Opcode.PING, Opcode.PONG]), st.lists(st.binary(max_size=125), min_size=1, max_size=1)),
    max_size=6,
)


def encode(opcode: Opcode, pieces: list[bytes]) -> bytes:
    found = b""
    for place, piece in enumerate(pieces):
        kind = opcode if place == 0 else Opcode.CONT
        found += Frame(kind, piece, fin=place == len(pieces) - 1).serialize(mask=True)
    return found


@given(messages=MESSAGES, cuts=st.lists(st.integers(1, 50), min_size=1))
def test_any_cut_of_the_stream_gives_the_same(messages: list[tuple[Opcode, list[bytes]]], cuts: list[int]) -> None:
    stream = b"".join(encode(opcode, pieces) for opcode, pieces in messages)
    wanted = []
    for opcode, pieces in messages:
        content = b"".join(pieces)
        is_kept = len(content) <= MOST
        wanted.append((int(opcode), content) if is_kept else (int(Kind.OVERSIZE), str(len(content)).encode()))
    reader, found, at, turn = FrameReader(MOST, HARD), [], 0, 0
    while at < len(stream):
        step = cuts[turn % len(cuts)]
        found += reader.feed(stream[at : at + step])
        at, turn = at + step, turn + 1
    assert [(int(kind), content) for kind, content in found] == wanted
    assert reader.broken is None


@given(data=st.binary(max_size=200))
def test_no_bytes_at_all_raise(data: bytes) -> None:
    reader = FrameReader(MOST, HARD)
    reader.feed(data)
    assert reader.broken is None or reader.broken[0] in {CloseCode.PROTOCOL_ERROR, CloseCode.TOO_LARGE}


@pytest.mark.parametrize("size", [MOST + 1, HARD])
def test_what_is_too_large_is_read_past_and_not_kept(size: int) -> None:
    reader = FrameReader(MOST, HARD)
    assert reader.feed(encode(Opcode.TEXT, [b"x" * size])[:-1]) == []
    assert len(reader._kept) < 20
    after = encode(Opcode.TEXT, [b"after"])
    assert reader.feed(b"x" + after) == [(Kind.OVERSIZE, str(size).encode()), (Kind.TEXT, b"after")]


@pytest.mark.parametrize("size", [0, 1, 2, 125, 126, MOST])
def test_a_size_may_be_written_in_more_bytes_than_it_needs(size: int) -> None:
    content = b"x" * size
    heads = [b"\x81\xfe" + size.to_bytes(2), b"\x81\xff" + size.to_bytes(8)]
    heads += [b"\x81" + bytes([0x80 | size])] if size < 126 else []
    for head in heads:
        frame = head + b"\0\0\0\0" + content
        assert FrameReader(MOST, HARD).feed(frame) == [(Kind.TEXT, content)]
        reader = FrameReader(MOST, HARD)
        assert reader.feed(frame * 2 + frame[:-1]) == [(Kind.TEXT, content)] * 2
        assert reader.feed(frame[-1:]) == [(Kind.TEXT, content)]


@pytest.mark.parametrize("cut", [1, 7, 8, 500, 10_000])
def test_what_is_read_past_is_not_looked_at(cut: int) -> None:
    short = encode(Opcode.TEXT, [b"short"])
    stream = short + encode(Opcode.TEXT, [short * 99]) + short + encode(Opcode.TEXT, [short * 50, short * 99, short]) + short
    reader, found = FrameReader(MOST, HARD), []
    for at in range(0, len(stream), cut):
        found += reader.feed(stream[at : at + cut])
    sizes = [len(short) * 99, len(short) * 150]
    assert found == [
        (Kind.TEXT, b"short"), (Kind.OVERSIZE, str(sizes[0]).encode()), (Kind.TEXT, b"short"),
        (Kind.OVERSIZE, str(sizes[1]).encode()), (Kind.TEXT, b"short"),
    ]  # fmt: skip


def test_far_too_large_is_told_from_the_header() -> None:
    reader = FrameReader(MOST, HARD)
    head = encode(Opcode.TEXT, [b"x" * (HARD + 1)])[:8]
    assert reader.feed(encode(Opcode.TEXT, [b"before"]) + head) == [(Kind.TEXT, b"before")]
    assert reader.broken is not None
    assert reader.broken[0] is CloseCode.TOO_LARGE
    assert reader.feed(b"more") == []


def test_many_fragments_are_far_too_large_together() -> None:
    reader = FrameReader(MOST, HARD)
    pieces = [b"x" * 100] * 31
    reader.feed(encode(Opcode.TEXT, pieces))
    assert reader.broken is not None
    assert reader.broken[0] is CloseCode.TOO_LARGE


@given(content=st.binary(max_size=70_000))
def test_what_is_written_is_read_by_others(content: bytes) -> None:
    assert encode_frame(Kind.TEXT, content) == encode_text(content) == Frame(Opcode.TEXT, content).serialize(mask=False)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", 1000),
        (b"\x03", 1002),
        ((1000).to_bytes(2), 1000),
        ((4000).to_bytes(2) + b"why", 4000),
        ((1005).to_bytes(2), 1002),
        ((5000).to_bytes(2), 1002),
        (b"\x03\xe8goodbye", 1000),
        (b"\x03\xe8\xff", 1007),
    ],
)
def test_a_close_is_answered_with_a_code_that_may_be_sent(content: bytes, code: int) -> None:
    assert read_close(content) == code


def test_a_reason_is_cut_between_characters() -> None:
    frame = encode_close(4000, "ä" * 200)
    assert frame[1] <= 125
    assert frame[4:].decode() == "ä" * 61


def test_the_key_of_the_standard() -> None:
    key = b"dGhlIHNhbXBsZSBub25jZQ=="
    assert accept_key(key) == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert is_key(key)
    assert not is_key(b"short")
    assert not is_key(b"")


@pytest.mark.parametrize(
    "data",
    [
        b"\x81\x02{}",
        b"\xc1\x82maskxx",
        b"\x83\x80mask",
        b"\x89\xfe\x00\x7emask",
        b"\x09\x80mask",
        b"\x80\x80mask",
        b"\x01\x81maskx\x81\x80mask",
        b"\x01\x81maskx\x81\x82maskxx",
    ],
    ids=[
        "not masked",
        "an extension",
        "no such kind",
        "a long ping",
        "half a ping",
        "a continuation of nothing",
        "two at once",
        "two and more",
    ],
)
def test_what_breaks_the_rules_ends_the_stream(data: bytes) -> None:
    reader = FrameReader(MOST, HARD)
    assert reader.feed(data) == []
    assert reader.broken is not None
    assert reader.broken[0] is CloseCode.PROTOCOL_ERROR
