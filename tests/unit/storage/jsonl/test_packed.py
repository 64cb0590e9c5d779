"""The packed file: read by anybody's gunzip, found in without unpacking all of it, and damaged no further than it has to be."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_relay.storage.jsonl import packed
from agent_relay.storage.jsonl.index import BlockIndex
from agent_relay.storage.jsonl.lines import Head
from agent_relay.storage.jsonl.packed import is_whole, last_seq_of, list_blocks, pack_all, pack_block, unpack_all, unpack_block
from tests.support.event_driver import START_MS
from tests.unit.storage.jsonl.test_lines import make_lines

LINES = [line + b"\n" for line in make_lines(400)]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "RAW_BYTES", 2_000)


@contextmanager
def opened(folder: Path, data: bytes) -> Iterator[tuple[int, int]]:
    path = folder / "packed.gz"
    path.write_bytes(data)
    descriptor = os.open(path, os.O_RDONLY)
    yield descriptor, len(data)
    os.close(descriptor)


def test_what_was_packed_is_unpacked_here_and_by_others(tmp_path: Path) -> None:
    raw = b"".join(LINES)
    data = pack_all(raw, 0)
    assert gzip.decompress(data) == raw
    with opened(tmp_path, data) as (descriptor, size):
        assert b"".join(part or b"" for part in unpack_all(descriptor, size)) == raw
        assert len(list_blocks(descriptor, size)) > 20
        found = subprocess.run(["gzip", "-dc", str(tmp_path / "packed.gz")], capture_output=True, check=True)
    assert (found.stdout, found.stderr) == (raw, b"")


@pytest.mark.parametrize("content", [b"", b"\n", b"x" * 10_000 + b"\n", b"#\n" * 3, "ü\n".encode() * 5_000])
def test_anything_that_ends_with_a_newline_can_be_packed(tmp_path: Path, content: bytes) -> None:
    with opened(tmp_path, pack_all(content, 7)) as (descriptor, size):
        assert b"".join(part or b"" for part in unpack_all(descriptor, size)) == content
        assert last_seq_of(list_blocks(descriptor, size)) == 7


def test_a_block_says_what_it_holds(tmp_path: Path) -> None:
    data = pack_block(b"#damaged\n" + b"".join(LINES[10:20]) + b"\0\n")
    with opened(tmp_path, data) as (descriptor, size):
        (block,) = list_blocks(descriptor, size)
        assert block is not None
        assert (block.first, block.last_seq, block.size) == (Head(11, START_MS + 11_000), 20, size)
        assert is_whole(descriptor, block)


@pytest.mark.parametrize("seq", [0, 1, 2, 57, 200, 399, 400, 999])
def test_a_place_is_found_in_the_headers(tmp_path: Path, seq: int) -> None:
    with opened(tmp_path, pack_all(b"".join(LINES), 0)) as (descriptor, size):
        index = BlockIndex(descriptor, size)
        for place in (index.place_after(seq), index.place_since(START_MS + (seq + 1) * 1_000)):
            block = index.blocks[place]
            assert block is not None
            lines = unpack_block(descriptor, block)
            assert lines is not None
            rest = lines + b"".join(unpack_block(descriptor, each) or b"" for each in index.blocks[place + 1 :] if each)
            assert all(line in rest for line in LINES[seq:])
            assert block.first.seq <= max(seq, 1)
            assert min(seq, 400) - block.first.seq < 30


def test_a_flipped_byte_costs_the_block_it_is_in_and_no_other(tmp_path: Path) -> None:
    data = pack_all(b"".join(LINES), 0)
    with opened(tmp_path, data) as (descriptor, size):
        parts = list(unpack_all(descriptor, size))
    chance = random.Random(7)
    for place in [*range(120), *chance.sample(range(len(data)), 300), len(data) - 1]:
        harmed = bytearray(data)
        harmed[place] ^= chance.randint(1, 255)
        with opened(tmp_path, bytes(harmed)) as (descriptor, size):
            found = list(unpack_all(descriptor, size))
            told = [
                None if block is None or not is_whole(descriptor, block) else block for block in list_blocks(descriptor, size)
            ]
        assert [None if part is None else True for part in found] == [None if block is None else True for block in told]
        whole = [part for part in found if part is not None]
        assert len(whole) >= len(parts) - 1, place
        left = iter(parts)
        assert all(part in left for part in whole), "in order, and nothing that was not there"
        assert len(whole) == len(parts) or None in found, place


def test_what_is_cut_off_is_missing_and_nothing_else(tmp_path: Path) -> None:
    data = pack_all(b"".join(LINES), 0)
    with opened(tmp_path, data) as (descriptor, size):
        blocks = list_blocks(descriptor, size)
    for end in random.Random(3).sample(range(1, len(data)), 100):
        with opened(tmp_path, data[:end]) as (descriptor, size):
            left = list_blocks(descriptor, size)
        whole = [block for block in blocks if block is not None and block.offset + block.size <= end]
        is_even = whole[-1:] and whole[-1].offset + whole[-1].size == end
        assert left == whole + ([] if is_even else [None])
