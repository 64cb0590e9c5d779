"""Records of the events' stream: events that the seat has numbered, or a claim to go on numbering.

A record is a letter and its content, msgpack in both cases: `E` for events, `C` for a claim. Fields may follow in later versions,
and a kind that is not known is passed over: then its events are missing, and a `stream.gap` says so.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agent_relay.cluster.records import BadRecord
from agent_relay.events.record import read_record

_EVENTS, _CLAIM = b"E", b"C"


class EventClaim(Struct, frozen=True, array_like=True):
    """From here on nobody numbers events but this life of this host."""

    numbering: str  # that goes on; numbers of another one mean other events
    term: int
    host: str
    mark: str
    last_seq: int  # the last that was given out


class EventRecord(Struct, frozen=True, array_like=True):
    numbering: str
    term: int
    first_seq: int
    count: int  # 0: there are none, and the rest counts
    ts: int  # of the last one
    message: int  # all messages up to this number have their events, or a gap stands for them; 0: as before
    is_last: bool  # whoever wrote it had nothing more to tell
    data: bytes  # a line for each


_encode = msgspec.msgpack.Encoder().encode
_decode_events = msgspec.msgpack.Decoder(EventRecord).decode
_decode_claim = msgspec.msgpack.Decoder(EventClaim).decode


def encode_event_record(record: EventRecord | EventClaim) -> bytes:
    return (_EVENTS if isinstance(record, EventRecord) else _CLAIM) + _encode(record)


def decode_event_record(data: bytes) -> EventRecord | EventClaim:
    kind, content = data[:1], data[1:]
    try:
        if kind == _CLAIM:
            return _decode_claim(content)
        if kind == _EVENTS:
            return _check(_decode_events(content))
    except (msgspec.MsgspecError, ValueError) as error:
        raise BadRecord(f"A record of the cluster's events cannot be read: {error}.") from None
    raise BadRecord(f"A record of the cluster's events is of the unknown kind {kind!r}.")


def _check(record: EventRecord) -> EventRecord:
    """As many lines as it says, whose numbers are as it says at both ends."""
    lines = record.data.split(b"\n")
    if lines.pop() or len(lines) != record.count or record.first_seq < 1:
        raise BadRecord("A record of the cluster's events does not have the lines it says.")
    ends = (lines[0], lines[-1]) if lines else ()
    found = [None if (event := read_record(line)) is None else event.seq for line in ends]
    if lines and found != [record.first_seq, record.first_seq + record.count - 1]:
        raise BadRecord("A record of the cluster's events does not have the numbers it says.")
    return record
