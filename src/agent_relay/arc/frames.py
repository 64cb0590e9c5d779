"""The envelope as a client sees it: what to send, and what came."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_relay.arc.errors import ArcError
from agent_relay.protocol.arc.ids import RELAY

EVERYONE = "*"
KEY = "key"  # a field of ours: what the sender calls the message, so that its own copy can be told from others
_OWN_FIELDS = frozenset({"id", "from", "ts"})  # the relay's to set


@dataclass(frozen=True, slots=True)
class ArcMessage:
    id: str
    from_: str
    to: tuple[str, ...]
    payload: Any
    ts: int
    type: str | None = None
    ref: str | None = None
    stored: bool = False  # it waited at the relay until we came
    fields: Mapping[str, Any] = field(default_factory=dict, repr=False)  # the whole envelope, also what has no name here

    @property
    def is_broadcast(self) -> bool:
        return EVERYONE in self.to

    @property
    def key(self) -> str | None:
        return _text(self.fields.get(KEY))


def read_message(envelope: Any) -> ArcMessage:
    """Raises ValueError for what is no envelope. The relay is not trusted to send what it should."""
    if not isinstance(envelope, dict):
        raise ValueError("not an object")
    to = envelope.get("to")
    names = tuple(name for name in to if isinstance(name, str)) if isinstance(to, list) else ()
    ts = envelope.get("ts")
    return ArcMessage(
        _text(envelope.get("id")) or "", _text(envelope.get("from")) or "", names, envelope.get("payload"),
        ts if isinstance(ts, int) else 0, _text(envelope.get("type")), _text(envelope.get("ref")),
        envelope.get("stored") is True, envelope,
    )  # fmt: skip


def decode_frame(frame: str | bytes) -> ArcMessage:
    return read_message(json.loads(frame))


def encode_message(to: Iterable[str], payload: Any, fields: Mapping[str, Any]) -> str:
    """Raises ArcError for what the relay would refuse or ignore."""
    targets = list(to)
    if not targets or not all(targets):
        raise ArcError("A message needs at least one recipient.", code="invalid_message")
    if taken := _OWN_FIELDS & fields.keys():
        raise ArcError(f"The relay sets {', '.join(sorted(taken))}; senders cannot.", code="invalid_message")
    try:
        return json.dumps({"to": targets, "payload": payload, **fields}, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArcError(f"The message cannot be encoded as JSON: {error}.", code="invalid_message") from None


def encode_command(type_: str, ref: str, payload: Any = None) -> str:
    frame: dict[str, Any] = {"to": [RELAY], "type": type_, "ref": ref}
    return json.dumps(frame if payload is None else frame | {"payload": payload}, ensure_ascii=False)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
