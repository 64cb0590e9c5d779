"""Events on their way to the store: everything but the number, which they get when they are written.

`Note` holds any event. Messages are many, so theirs are the very objects that are written, put together from what the relay
has anyway, and a whole batch of them becomes lines of JSON in one call.
"""

from __future__ import annotations

from typing import final

import msgspec
from msgspec import Raw, Struct, field

from agent_relay.events.codec import encode_body, splice_envelope
from agent_relay.events.types import Event, GapReason, StreamGap, type_of

_SMALL_BYTES = 512  # about what an event takes in memory beside a message's text


class Note(Struct, frozen=True):
    event: Event
    agent: str
    session_id: str
    at_ms: int


@final
class Exchange(Struct, gc=False, omit_defaults=True, tag_field="type", tag="message.exchanged"):
    """`message.exchanged`."""

    seq: int = field(name="_seq")
    at_ms: int = field(name="_ts")
    by_session: str = field(name="_sessionId")
    by_agent: str = field(name="_agentName")
    session_id: str = field(name="sessionId")
    message_id: str = field(name="messageId")
    sender: str = field(name="from")
    to: str
    kind: str
    body: str
    thread: str | None = None
    channel: str | None = None


@final
class Handover(Struct, gc=False, omit_defaults=True, tag_field="type", tag="message.delivered"):
    """`message.delivered`."""

    seq: int = field(name="_seq")
    at_ms: int = field(name="_ts")
    by_session: str = field(name="_sessionId")
    by_agent: str = field(name="_agentName")
    message_id: str = field(name="messageId")
    to: str
    attempt: int
    latency_ms: int = field(name="latencyMs")
    door: str | None = None
    evidence: str | None = None


class Lost(Struct, frozen=True):
    """`stream.gap` in the place of events that are not there. `count` None: nobody knows how many."""

    at_ms: int
    count: int | None = None
    reason: GapReason = "unwritten"


Draft = Note | Exchange | Handover | Lost


_encode_lines = msgspec.json.Encoder().encode_lines


def weigh(drafts: list[Draft]) -> int:
    """About how many bytes of memory they hold. Messages are many, so what is looked at of each is little."""
    return sum(
        [
            len(draft.body) if type(draft) is Exchange else _SMALL_BYTES if type(draft) is Handover else _weigh(draft)
            for draft in drafts
        ]
    )


def _weigh(draft: Note | Lost) -> int:
    try:
        return _SMALL_BYTES + len(encode_body(draft.event)) if isinstance(draft, Note) else _SMALL_BYTES
    except (TypeError, ValueError, RecursionError):  # whoever writes it finds out
        return _SMALL_BYTES


def encode_drafts(drafts: list[Draft], first_seq: int, ts: int) -> tuple[bytes, int]:
    """A line for each, numbered from `first_seq`, and the moment of the last one. `ts` is that of the one before: a clock that
    was set back does not take the events with it, so that they are found by time as well."""
    ready: list[Draft | Raw] = [*drafts]
    for seq, draft in enumerate(drafts, first_seq):
        # To ask for the type is quick, and `isinstance` with a Struct is slow to say no. Most moments are the very one before.
        if type(draft) is Exchange or type(draft) is Handover:
            draft.seq = seq
            if draft.at_ms is not ts:
                ts = draft.at_ms = max(ts, draft.at_ms)
        else:
            ts = max(ts, draft.at_ms)
            ready[seq - first_seq] = _encode_other(draft, seq, ts)
    return _encode_lines(ready), ts


def _encode_other(draft: Note | Lost, seq: int, ts: int) -> Raw:
    note = draft if isinstance(draft, Note) else Note(_make_gap(draft, seq), "", "", ts)
    event = note.event
    return Raw(splice_envelope(encode_body(event), type_of(event), seq, ts, note.session_id, note.agent))


def _make_gap(draft: Lost, seq: int) -> StreamGap:
    return StreamGap(oldest=seq + 1, lost=draft.count, reason=draft.reason)
