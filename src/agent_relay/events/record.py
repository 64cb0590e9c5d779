"""A recorded event as it is stored and passed on: its line of JSON, encoded once, and what filters look at."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct, field

from agent_relay.events.codec import encode_event
from agent_relay.events.types import GapReason, StreamGap


class Record(Struct, frozen=True, gc=False):
    seq: int
    ts: int
    type: str
    agent: str
    session_id: str
    sender: str  # `from` and `to` where the event has them
    to: str
    line: bytes  # the whole JSON object, without a newline


class _Head(Struct, gc=False):
    type: str
    seq: int = field(name="_seq")
    ts: int = field(name="_ts")
    agent: str = field(name="_agentName", default="")
    session_id: str = field(name="_sessionId", default="")
    sender: str = field(name="from", default="")
    to: str = ""


_read_head = msgspec.json.Decoder(_Head).decode


def read_record(line: bytes) -> Record | None:
    """None: it is none of ours, such as half a line that a crash left behind."""
    try:
        head = _read_head(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return Record(head.seq, head.ts, head.type, head.agent, head.session_id, head.sender, head.to, line)


def read_records(lines: Iterable[bytes]) -> list[Record]:
    return [record for line in lines if (record := read_record(line)) is not None]


def split_lines(data: bytes) -> list[bytes]:
    """Of lines that all end with a newline."""
    lines = data.split(b"\n")
    lines.pop()
    return lines


def gap_record(oldest: int, ts: int, reason: GapReason | None = None) -> Record:
    """Said to a reader who asks for what is no longer kept, or cannot be read. Its number is the last that is missing, so that
    who resumes after it misses nothing."""
    line = encode_event(StreamGap(seq=oldest - 1, ts=ts, oldest=oldest, reason=reason))
    return Record(seq=oldest - 1, ts=ts, type="stream.gap", agent="", session_id="", sender="", to="", line=line)
