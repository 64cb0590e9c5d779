"""ARC messages into messages of the relay, and back.

A payload that is text becomes the body. Any other becomes `data`, with its compact JSON as the body, so that clients that only
look at bodies have something to show. What ARC has and the relay has no place for (`type`, `ref`, fields nobody knows, how `to`
was written) travels in the payload under `arc`, and is put back for recipients over ARC.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
from msgspec import Raw, Struct

from agent_relay.protocol.arc.ids import is_agent_id
from agent_relay.protocol.arc.reading import Said
from agent_relay.protocol.names import BROADCAST
from agent_relay.protocol.payloads import NOTHING
from agent_relay.protocol.ulid import decode_bits

_TEXT = ord('"')
_PLACED = frozenset({"id", "from", "ts", "to", "payload", "type", "stored"})  # set by us, or at a place of their own

_encode = msgspec.json.Encoder().encode
_decode_parts = msgspec.json.Decoder(dict[str, Raw]).decode


class FromArc(Struct, gc=False):
    """What `encode_payload` made."""

    body: Raw
    data: Raw = NOTHING
    arc: Raw = NOTHING

    @property
    def content(self) -> Raw:
        """What the sender wrote as its payload."""
        return self.data if len(self.data) else self.body


_decode_from_arc = msgspec.json.Decoder(FromArc).decode


# --- from ARC --------------------------------------------------------------------------------------------------------------


def encode_send(said: Said, client_id: str, ts: int) -> bytes:
    """A SEND for the relay, without its length. `client_id` is ours and plain ASCII."""
    to = b'"*"' if BROADCAST in said.to else _encode(said.to[0] if len(said.to) == 1 else said.to)
    head = f'{{"v":2,"type":"SEND","id":"{client_id}","ts":{ts},"to":'.encode()
    return b"".join((head, to, b',"payload":', encode_payload(said), b"}"))


def encode_payload(said: Said) -> bytes:
    raw = said.payload
    along = _encode_along(said)
    if memoryview(raw)[0] == _TEXT:
        return b"".join((b'{"body":', raw, along, b"}"))
    compact = msgspec.json.format(bytes(raw), indent=-1)
    return b"".join((b'{"body":', _encode(compact.decode()), b',"data":', raw, along, b"}"))


def _encode_along(said: Said) -> bytes:
    if said.type is None and not said.extras and not len(said.ref) and _is_plain(said.to):
        return b""
    along: dict[str, object] = dict(said.extras)
    if not _is_plain(said.to):
        along["to"] = said.to
    if said.type is not None:
        along["type"] = said.type
    if len(said.ref):
        along["ref"] = said.ref
    return b',"arc":' + _encode(along)


def _is_plain(to: list[str]) -> bool:
    """It can be told from what the relay says of the message."""
    return len(to) == 1 and _is_plain_name(to[0])


@lru_cache(4_096)
def _is_plain_name(name: str) -> bool:
    return name == BROADCAST or is_agent_id(name)


# --- to ARC ----------------------------------------------------------------------------------------------------------------


def encode_envelope(
    message_id: str, sender: str, to: str, topic: str | None, payload: bytes | Raw, *, from_arc: bool, stored: bool = False
) -> bytes:
    """A message as a recipient over ARC gets it; `to` is whom the relay names, or several names with commas."""
    along: dict[str, Raw] = {}
    content: bytes | Raw
    if from_arc:
        parts = _decode_from_arc(payload)
        content = parts.content
        if not len(parts.arc) and not topic:
            return encode_plain(message_id, sender, to, content, stored=stored)
        along = _decode_parts(parts.arc) if len(parts.arc) else {}
    else:
        every = _decode_parts(payload)
        content = every["body"] if len(every) == 1 else payload  # every message of the relay has a body
    names = along.get("to")
    written = _encode([to] if to == BROADCAST else to.split(",")) if names is None else names
    found = [
        b'{"id":"', message_id.encode(), b'","from":', _encode(sender), b',"to":', written,
        *_fields(along, ("type",)), b',"payload":', content, b',"ts":',
        _time_text(message_id), *_fields(along, [name for name in along if name not in _PLACED]),
    ]  # fmt: skip
    if stored:
        found.append(b',"stored":true')
    else:
        found += _fields(along, ("stored",))
    if topic and "topic" not in along:
        found += (b',"topic":', _encode(topic))
    found.append(b"}")
    return b"".join(found)


def encode_plain(message_id: str, sender: str, to: str, content: Raw, *, stored: bool) -> bytes:
    """A message with nothing but a payload. Names and ids are ASCII without quotes by their own rules, so they are spliced."""
    names = to.replace(",", '","')
    head = f'{{"id":"{message_id}","from":"{sender}","to":["{names}"],"payload":'.encode()
    return b"".join((head, content, b',"ts":', _time_text(message_id), b',"stored":true}' if stored else b"}"))


def _fields(along: dict[str, Raw], names: tuple[str, ...] | list[str]) -> list[bytes | Raw]:
    found: list[bytes | Raw] = []
    for name in names:
        if name in along:
            found += (b"," + _encode(name) + b":", along[name])
    return found


def time_of(message_id: str) -> int:
    """When it was accepted: an id begins with its moment, so that all recipients are told the same."""
    return decode_bits(message_id[4:14])


def _time_text(message_id: str) -> bytes:
    return _text_of_moment(message_id[4:14])


@lru_cache(1_024)
def _text_of_moment(moment: str) -> bytes:
    return str(decode_bits(moment)).encode()
