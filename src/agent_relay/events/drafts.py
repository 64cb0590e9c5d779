"""Events on their way to the store: everything but the number, which they get when they are written.

`Note` holds any event. Messages are many, so theirs are kept as the parts the relay has anyway, and become JSON only where
they are written, spliced together around the body as it came.
"""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from agent_relay.events.codec import encode_body, splice_envelope
from agent_relay.events.types import Event, StreamGap, type_of

_SMALL_BYTES = 512  # about what an event takes in memory beside a message's text


class Note(Struct, frozen=True):
    event: Event
    agent: str
    session_id: str
    at_ms: int


class Exchange(Struct, gc=False):
    """`message.exchanged`. Names, ids and kinds are plain words by their own rules; the rest is quoted."""

    at_ms: int
    session_id: str
    message_id: str
    sender: str
    target: str
    topic: str
    kind: str
    thread: str | None
    tail: bytes  # as the message store keeps it: "{" + tail is an object with `payload`


class Handover(Struct, gc=False):
    """`message.delivered`."""

    at_ms: int
    session_id: str
    message_id: str
    to: str
    door: str | None
    evidence: str | None
    attempt: int
    latency_ms: int


class Lost(Struct, frozen=True):
    """`stream.gap` in the place of events that are not there. `count` None: nobody knows how many."""

    at_ms: int
    count: int | None = None


Draft = Note | Exchange | Handover | Lost


class _Payload(Struct, gc=False):
    body: Raw


class _Tail(Struct, gc=False):
    payload: _Payload


_quote = msgspec.json.Encoder().encode
_read_tail = msgspec.json.Decoder(_Tail).decode


def weigh(drafts: list[Draft]) -> int:
    """About how many bytes of memory they hold."""
    return sum([len(draft.tail) if isinstance(draft, Exchange) else _SMALL_BYTES for draft in drafts])


def encode_drafts(drafts: list[Draft], first_seq: int, ts: int) -> tuple[list[bytes], int]:
    """Their lines, numbered from `first_seq`, and the moment of the last one. `ts` is that of the one before: a clock that was
    set back does not take the events with it, so that they are found by time as well."""
    lines: list[bytes] = []
    for seq, draft in enumerate(drafts, first_seq):
        if draft.at_ms > ts:
            ts = draft.at_ms
        if isinstance(draft, Exchange):
            lines.append(_encode_exchange(draft, seq, ts))
        elif isinstance(draft, Handover):
            lines.append(_encode_handover(draft, seq, ts))
        elif isinstance(draft, Note):
            lines.append(_encode_note(draft, seq, ts))
        else:
            gap = StreamGap(oldest=seq + 1, lost=draft.count)
            lines.append(_encode_note(Note(gap, "", "", ts), seq, ts))
    return lines, ts


def _encode_note(note: Note, seq: int, ts: int) -> bytes:
    event = note.event
    return splice_envelope(encode_body(event), type_of(event), seq, ts, note.session_id, note.agent)


def _encode_exchange(draft: Exchange, seq: int, ts: int) -> bytes:
    session_id, sender = draft.session_id, draft.sender
    head = (
        f'{{"type":"message.exchanged","_seq":{seq},"_ts":{ts},"_sessionId":"{session_id}","_agentName":"{sender}",'
        f'"sessionId":"{session_id}","messageId":"{draft.message_id}","from":"{sender}","to":"{draft.target}",'
        f'"kind":"{draft.kind}","body":'
    )
    body = _read_tail(b"{" + draft.tail).payload.body
    channel = draft.topic or (draft.target if draft.target[:1] == "#" else "")
    if draft.thread is None and not channel:
        return b"".join((head.encode(), body, b"}"))
    thread = b"" if draft.thread is None else b',"thread":' + _quote(draft.thread)
    return b"".join((head.encode(), body, thread, b',"channel":' + _quote(channel) if channel else b"", b"}"))


def _encode_handover(draft: Handover, seq: int, ts: int) -> bytes:
    seen = ""
    if draft.door is not None:
        seen = f',"door":{_quote(draft.door).decode()}'
        if draft.evidence is not None:
            seen += f',"evidence":{_quote(draft.evidence).decode()}'
    return (
        f'{{"type":"message.delivered","_seq":{seq},"_ts":{ts},"_sessionId":"{draft.session_id}","_agentName":"{draft.to}",'
        f'"messageId":"{draft.message_id}","to":"{draft.to}","attempt":{draft.attempt},"latencyMs":{draft.latency_ms}{seen}}}'
    ).encode()
