"""Lines in a file that grows by whole lines, each with its number and its time near the beginning."""

from __future__ import annotations

import os
import re
from typing import NamedTuple

import msgspec
from msgspec import Struct, field

from agent_relay.events.record import read_record
from agent_relay.protocol.ulid import number_of

_HEAD = re.compile(rb'\{"type":"[a-z_.]{1,64}","_seq":(\d{1,16}),"_ts":(\d{1,16}),')
_HEADS = re.compile(b"^" + _HEAD.pattern, re.MULTILINE)
HEAD_BYTES = 160  # more than any head takes
_STEP_BYTES = 65_536
_EXCHANGED = b'{"type":"message.exchanged","_seq":'  # a text that says so has its quotes escaped
_LOOK_BACK_BYTES = 1024 * 1024
_SHORT_STEP_BYTES = 2_048  # most lines are shorter, so most searches for the next one end here


class _Message(Struct):
    message_id: str = field(name="messageId")


_read_message = msgspec.json.Decoder(_Message).decode


class Head(NamedTuple):
    seq: int
    ts: int


def read_head(start_of_line: bytes) -> Head | None:
    found = _HEAD.match(start_of_line)
    return None if found is None else Head(int(found[1]), int(found[2]))


def count_heads(lines: bytes) -> int:
    """The number of them that begin as an event does."""
    return sum(1 for _ in _HEADS.finditer(lines))


def first_head(descriptor: int, size: int) -> Head | None:
    """Of the first line that has one."""
    offset = 0
    while offset < size:
        head = read_head(os.pread(descriptor, HEAD_BYTES, offset))
        if head is not None:
            return head
        following = next_line(descriptor, offset, size)
        if following is None:
            return None
        offset = following
    return None


def next_line(descriptor: int, offset: int, end: int) -> int | None:
    """The offset of the first line that begins after `offset` and before `end`."""
    step = _SHORT_STEP_BYTES
    while offset < end:
        chunk = os.pread(descriptor, min(step, end - offset), offset)
        step = _STEP_BYTES
        if not chunk:
            return None
        place = chunk.find(b"\n")
        if place >= 0:
            found = offset + place + 1
            return found if found < end else None
        offset += len(chunk)
    return None


def last_whole_line(descriptor: int, size: int) -> tuple[Head, int] | None:
    """The last line that is an event, and where it ends. Looks as far back as it must, which is rarely far."""
    look_back = _STEP_BYTES
    while True:
        begin = max(0, size - look_back)
        found = _last_in(os.pread(descriptor, size - begin, begin), is_whole=begin == 0)
        if found is not None or begin == 0:
            return None if found is None else (found[0], begin + found[1])
        look_back *= 4


def last_head_in(lines: bytes) -> Head | None:
    """Of the last of these whole lines that is an event."""
    found = _last_in(lines, is_whole=True)
    return None if found is None else found[0]


def _last_in(chunk: bytes, *, is_whole: bool) -> tuple[Head, int] | None:
    """`is_whole`: the chunk begins where a line does."""
    end = chunk.rfind(b"\n")
    while end >= 0:
        start = chunk.rfind(b"\n", 0, end) + 1
        if start == 0 and not is_whole:
            return None
        line = chunk[start:end]
        head = read_head(line)
        if head is not None and read_record(line) is not None:
            return head, end + 1
        end = start - 1
    return None


def last_message(descriptor: int, size: int) -> int | None:
    """The number of the message in the last `message.exchanged`; messages get their events in the order of their numbers."""
    line = _last_line_with(descriptor, size, _EXCHANGED)
    try:
        return None if line is None else number_of(_read_message(line).message_id.removeprefix("msg_"))
    except ValueError:  # msgspec's error is one, and so is that of an id which is none of ours
        return None


def _last_line_with(descriptor: int, size: int, beginning: bytes) -> bytes | None:
    """The last line that begins so."""
    end = size
    while end > 0:
        begin = max(0, end - _LOOK_BACK_BYTES)
        reach = min(size, end + len(beginning))  # one that begins before `end` may go on behind it
        place = os.pread(descriptor, reach - begin, begin).rfind(beginning)
        if place >= 0:
            following = next_line(descriptor, begin + place, size)
            return os.pread(descriptor, (size if following is None else following) - begin - place, begin + place)
        end = begin
    return None
