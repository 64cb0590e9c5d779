"""Finding lines in a file without reading all of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.events.drafts import encode_drafts
from agent_relay.events.record import split_lines
from agent_relay.storage.jsonl.lines import Head, first_head, last_whole_line, next_line, read_head
from tests.support.event_driver import START_MS, make_note


def make_lines(count: int, text: str = "", first: int = 1) -> list[bytes]:
    return split_lines(encode_drafts([make_note(place, text=text) for place in range(first, first + count)], first, 0)[0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lines"


def last_of(path: Path, data: bytes) -> tuple[Head, int] | None:
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return last_whole_line(descriptor, len(data))
    finally:
        os.close(descriptor)


def test_a_head_is_read_off_the_beginning() -> None:
    (line,) = make_lines(1, first=42)
    assert read_head(line) == Head(42, START_MS + 42_000)
    assert read_head(line[:120]) == Head(42, START_MS + 42_000)
    assert read_head(line[1:]) is None
    assert read_head(b"") is None


@pytest.mark.parametrize(
    "torn", [b"", b"{", b'{"type":"item.delta","_seq":4,"_ts":', b"\0" * 5_000, b"\n\n\n", b"garbage\n", b"\xff\n{"]
)
def test_the_last_whole_line_is_found_before_whatever_a_crash_left(path: Path, torn: bytes) -> None:
    whole = b"".join(line + b"\n" for line in make_lines(3))
    assert last_of(path, whole + torn) == (Head(3, START_MS + 3_000), len(whole))


def test_every_place_a_crash_can_cut_at(path: Path) -> None:
    lines = make_lines(2)
    whole = b"".join(line + b"\n" for line in lines)
    for cut in range(len(whole) + 1):
        found = last_of(path, whole[:cut])
        kept = 2 if cut == len(whole) else 1 if cut > len(lines[0]) else 0
        assert (0 if found is None else found[0].seq) == kept, cut


def test_a_line_longer_than_is_looked_back_at_once(path: Path) -> None:
    lines = make_lines(2, text="x" * 300_000)
    assert last_of(path, b"\n".join(lines) + b"\nhalf") is not None


def test_nothing_is_found_in_nothing(path: Path) -> None:
    assert last_of(path, b"") is None
    assert last_of(path, b"no events\n" * 10_000) is None


def test_the_first_head_and_the_next_line(path: Path) -> None:
    lines = make_lines(2)
    path.write_bytes(b"damaged\n" + b"\n".join(lines) + b"\n")
    size = path.stat().st_size
    descriptor = os.open(path, os.O_RDONLY)
    assert first_head(descriptor, size) == Head(1, START_MS + 1_000)
    assert next_line(descriptor, 0, size) == 8
    assert next_line(descriptor, 8, size) == 8 + len(lines[0]) + 1
    assert next_line(descriptor, 8 + len(lines[0]) + 1, size) is None
    assert first_head(descriptor, 8) is None
    os.close(descriptor)
