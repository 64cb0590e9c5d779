"""The files that were full and put aside: their names, what they hold, and reading one of them, packed or not.

`events-NUMBER.jsonl` has the lines as they were written, `events-NUMBER.jsonl.gz` the same packed. For a moment there may be
both: then the packed one is whole, and counts.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from typing import NamedTuple

from agent_relay.storage.jsonl.lines import Head, first_head, last_head_in, last_whole_line
from agent_relay.storage.jsonl.packed import Block, find_blocks, list_blocks, unpack_all, unpack_block

_NAME = re.compile(r"events-(\d{16})\.jsonl(\.gz)?")
_LEFT_OVER = re.compile(r"events[-.\w]*\.tmp")
FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
_CHUNK_BYTES = 256 * 1024


class Segment(NamedTuple):
    seq: int  # of its first event, and in its name
    ts: int
    is_packed: bool = False
    size_bytes: int = 0
    edition: int = 0  # another one after the file was rewritten

    @property
    def name(self) -> str:
        return f"events-{self.seq:016d}.jsonl" + (".gz" if self.is_packed else "")


def find_segments(folder: str) -> list[Segment]:
    """Oldest first; mends what a crash left half done. Raises OSError."""
    found: dict[int, Segment] = {}
    for name in sorted(os.listdir(folder)):  # a packed one comes after the same unpacked
        path = os.path.join(folder, name)
        if _LEFT_OVER.fullmatch(name):
            os.unlink(path)
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        seq, is_packed = int(match[1]), match[2] is not None
        if seq in found:
            os.unlink(os.path.join(folder, found[seq].name))
        found[seq] = _look_at(path, seq, is_packed)
    return list(found.values())


def _look_at(path: str, seq: int, is_packed: bool) -> Segment:
    descriptor = os.open(path, os.O_RDONLY | FLAGS)
    try:
        size = os.fstat(descriptor).st_size
        head: Head | None
        if is_packed:
            head = next((block.first for block in find_blocks(descriptor, size) if block is not None and block.first.seq), None)
        else:
            head = first_head(descriptor, size)
    finally:
        os.close(descriptor)
    return Segment(seq, head.ts if head is not None else 0, is_packed, size)


def find_last(folder: str, segment: Segment) -> Head:
    """Of its last event; where that cannot be read, at least what is known of it. Raises OSError."""
    descriptor = os.open(os.path.join(folder, segment.name), os.O_RDONLY | FLAGS)
    try:
        if not segment.is_packed:
            found = last_whole_line(descriptor, segment.size_bytes)
            return found[0] if found is not None else Head(segment.seq, segment.ts)
        blocks = [block for block in list_blocks(descriptor, segment.size_bytes) if block is not None and block.last_seq]
        if not blocks:
            return Head(segment.seq, segment.ts)
        lines = unpack_block(descriptor, blocks[-1])
        return (last_head_in(lines) if lines is not None else None) or Head(blocks[-1].last_seq, blocks[-1].first.ts)
    finally:
        os.close(descriptor)


def read_chunks(descriptor: int, offset: int, size: int) -> Iterator[bytes]:
    """Of a file that is not packed. Raises OSError."""
    while offset < size and (chunk := os.pread(descriptor, min(_CHUNK_BYTES, size - offset), offset)):
        offset += len(chunk)
        yield chunk


def read_blocks(descriptor: int, blocks: list[Block | None]) -> Iterator[bytes | None]:
    """Of one that is packed; None for what cannot be read. Raises OSError."""
    for block in blocks:
        yield None if block is None else unpack_block(descriptor, block)


def open_all(folder: str) -> Iterator[tuple[int, int, bool]]:
    """Every file that was put aside, oldest first, for somebody who only looks: its first number, its descriptor, which is then
    theirs, and whether it is packed. One that is packed or removed meanwhile is read once, or not at all. Raises OSError."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    for seq in sorted({int(match[1]) for name in names if (match := _NAME.fullmatch(name)) is not None}):
        for segment in (Segment(seq, 0), Segment(seq, 0, is_packed=True)):
            with contextlib.suppress(FileNotFoundError):
                descriptor = os.open(os.path.join(folder, segment.name), os.O_RDONLY | FLAGS)
                yield seq, descriptor, segment.is_packed
                break


def read_whole(descriptor: int, *, is_packed: bool) -> Iterator[bytes | None]:
    size = os.fstat(descriptor).st_size
    return unpack_all(descriptor, size) if is_packed else read_chunks(descriptor, 0, size)
