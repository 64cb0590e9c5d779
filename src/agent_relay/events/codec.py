"""Events as JSON and back. Unknown fields are a later version's and are ignored; a known one that is wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agent_relay.events.types import EVENT_TYPES, AnyEvent, Event, type_of
from agent_relay.protocol.decode import convert_fields
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show

_encode = msgspec.json.Encoder().encode
_decode: Callable[[bytes], AnyEvent] = msgspec.json.Decoder(AnyEvent).decode


class BadEvent(ValueError):  # noqa: N818 - named by the condition
    """It is no event; the text says what is wrong with it."""


def encode_event(event: Event) -> bytes:
    return splice_envelope(encode_body(event), type_of(event), event.seq, event.ts, event.by_session, event.by_agent)


def decode_event(line: bytes) -> AnyEvent:
    """Raises BadEvent."""
    try:
        return _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadEvent(str(error) or "It is nested too deeply.") from None


def build_event(kind: str, fields: dict[str, Any], prefix: str) -> Event:
    """An event of somebody's words; raises RelayError that names the type, or the field under `prefix`. What they say of the
    envelope does not count."""
    struct = EVENT_TYPES.get(kind)
    if struct is None:
        error = RelayError(ErrorCode.FEATURE_UNSUPPORTED, f"Unknown event {show(kind, 80)}.")
        error.details = {"type": kind[:128]}
        raise error
    said = {name: value for name, value in fields.items() if name[:1] != "_" and name != "type"}
    return convert_fields(said, struct, prefix)


# --- in two parts, so that an event can be encoded before its number is known ---------------------------------------------


def encode_body(event: Event) -> bytes:
    """The event's own fields, from the comma before them to the closing brace."""
    bare = msgspec.structs.replace(event, seq=0, ts=0, by_session="", by_agent="")
    return _encode(bare)[_tag_length(type_of(event)) :]


def splice_envelope(body: bytes, kind: str, seq: int, ts: int, session_id: str, agent: str) -> bytes:
    head = f'{{"type":"{kind}","_seq":{seq},"_ts":{ts},"_sessionId":{_quote(session_id)},"_agentName":{_quote(agent)}'
    return head.encode() + body


def _tag_length(kind: str) -> int:
    return len(kind) + len('{"type":""')


def _quote(text: str) -> str:
    return _encode(text).decode()
