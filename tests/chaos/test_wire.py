"""Frames come out whole, in whatever pieces they come in."""

from __future__ import annotations

import pytest

from tests.chaos.wire import Decoder, encode_frame, make_frame

FRAMES = [make_frame("SEND", {"body": "ä" * size}, f"m{size}", to="Bob") for size in (0, 1, 300, 70_000)]


def test_the_length_counts_bytes() -> None:
    frame = encode_frame({"v": 2, "body": "ä"})
    assert frame[:4] == bytes([0, 0, 0, len(frame) - 4])


@pytest.mark.parametrize("size", [1, 3, 4, 5, 1_000, 1_000_000])
def test_any_pieces_give_the_same_frames(size: int) -> None:
    content = b"".join(encode_frame(frame) for frame in FRAMES)
    decoder, found = Decoder(), []
    for start in range(0, len(content), size):
        found += decoder.feed(content[start : start + size])
    assert found == FRAMES
