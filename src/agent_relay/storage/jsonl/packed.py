"""A file of events that is full, compressed: blocks of whole lines, each a member of a gzip file, so that `zcat` reads it.

What a block begins with, how long it is and its checksum stand in an extra field of its header. So a number or a moment is found
without unpacking what comes before it, and damage to one block takes none of the others along.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from agent_relay.storage.jsonl.lines import Head, read_head

RAW_BYTES = 256 * 1024  # of lines in a block: what is unpacked to read one of them
_LEVEL = 1  # five to ten times smaller at 200 MB/s; the best level gains another seventh and takes three times as long
_LARGEST_BYTES = 1024 * 1024 * 1024  # unpacked; a header that says more is damaged
_SEARCH_BYTES = 64 * 1024

# RFC 1952: magic and deflate and "there is an extra field", no time, no flags, system unknown, the field's length, its name.
_START = struct.pack("<4sIBBH2sH", b"\x1f\x8b\x08\x04", 0, 0, 255, 44, b"AR", 40)
_FIELDS = struct.Struct("<IIQQQII")  # block bytes, raw bytes, first number, its time, last number, checksums of data and header
_CHECKED = _FIELDS.size - 4
_HEADER_BYTES = len(_START) + _FIELDS.size
_TRAILER = struct.Struct("<II")  # checksum and length of what was packed


class Block(NamedTuple):
    offset: int
    size: int
    raw_bytes: int
    first: Head  # zeros where none of its lines is an event
    last_seq: int
    checksum: int


def pack_block(lines: bytes, last_seq: int = 0) -> bytes:
    """Whole lines, the last with its newline. `last_seq`: the number it ends with, where that line is gone."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    data = packer.compress(lines) + packer.flush()
    first, last = _find_ends(lines)
    size = _HEADER_BYTES + len(data) + _TRAILER.size
    fields = _FIELDS.pack(size, len(lines), first.seq, first.ts, max(last.seq, last_seq), zlib.crc32(data), 0)[:_CHECKED]
    checked = fields + struct.pack("<I", zlib.crc32(fields))
    return b"".join((_START, checked, data, _TRAILER.pack(zlib.crc32(lines), len(lines) & 0xFFFFFFFF)))


def _find_ends(lines: bytes) -> tuple[Head, Head]:
    """Of the first and of the last line that has a head."""
    first = last = None
    begin = 0
    while first is None and begin < len(lines):
        first = read_head(lines[begin : begin + 200])
        begin = (lines.find(b"\n", begin) + 1) or len(lines)
    end = len(lines)
    while last is None and end > 0:
        begin = lines.rfind(b"\n", 0, end - 1) + 1
        last = read_head(lines[begin : begin + 200])
        end = begin
    return first or Head(0, 0), last or Head(0, 0)


def list_blocks(descriptor: int, size: int) -> list[Block | None]:
    """By looking at their headers alone. None stands for a stretch that is no block."""
    return list(find_blocks(descriptor, size))


def find_blocks(descriptor: int, size: int) -> Iterator[Block | None]:
    """The same, one after the other."""
    offset = 0
    while offset < size:
        block = _read_header(os.pread(descriptor, _HEADER_BYTES, offset), offset)
        if block is not None and offset + block.size <= size:
            yield block
            offset += block.size
            continue
        yield None
        offset = _find_start(descriptor, offset + 1, size)


def unpack_block(descriptor: int, block: Block) -> bytes | None:
    """Its lines; None: it is damaged. Raises OSError."""
    data = _read_data(descriptor, block)
    if data is None:
        return None
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        lines = unpacker.decompress(data, block.raw_bytes)
    except zlib.error:
        return None
    return lines if len(lines) == block.raw_bytes else None


def is_whole(descriptor: int, block: Block) -> bool:
    """Without unpacking it. Raises OSError."""
    return _read_data(descriptor, block) is not None


def unpack_all(descriptor: int, size: int) -> Iterator[bytes | None]:
    """The lines of each block; None for what cannot be read."""
    for block in find_blocks(descriptor, size):
        yield None if block is None else unpack_block(descriptor, block)


def pack_all(data: bytes, last_seq: int) -> bytes:
    """All lines of a file, and the number it ends with."""
    portions = list(_cut(data)) or [b""]
    return b"".join([*map(pack_block, portions[:-1]), pack_block(portions[-1], last_seq)])


def last_seq_of(blocks: list[Block | None]) -> int:
    return max((block.last_seq for block in blocks if block is not None), default=0)


def _cut(data: bytes) -> Iterator[bytes]:
    """Into portions of a block each; a line that is longer is one of its own."""
    begin = 0
    while begin < len(data):
        end = data.rfind(b"\n", begin, begin + RAW_BYTES) + 1
        if end <= begin:
            end = (data.find(b"\n", begin) + 1) or len(data)
        yield data[begin:end]
        begin = end


def _read_data(descriptor: int, block: Block) -> bytes | None:
    data = os.pread(descriptor, block.size - _HEADER_BYTES - _TRAILER.size, block.offset + _HEADER_BYTES)
    return data if zlib.crc32(data) == block.checksum else None


def _read_header(header: bytes, offset: int) -> Block | None:
    if len(header) < _HEADER_BYTES or not header.startswith(_START):
        return None
    size, raw_bytes, first_seq, first_ts, last_seq, checksum, own = _FIELDS.unpack_from(header, len(_START))
    if zlib.crc32(header[len(_START) : len(_START) + _CHECKED]) != own or raw_bytes > _LARGEST_BYTES:
        return None
    return Block(offset, size, raw_bytes, Head(first_seq, first_ts), last_seq, checksum)


def _find_start(descriptor: int, offset: int, size: int) -> int:
    """The offset where the next block may begin; `size` where there is none."""
    while offset < size:
        place = os.pread(descriptor, _SEARCH_BYTES + len(_START), offset).find(_START)
        if place >= 0:
            return offset + place
        offset += _SEARCH_BYTES
    return size
