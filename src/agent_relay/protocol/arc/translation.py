"""ARC messages into messages of the relay, and back.

A payload that is text becomes the body. Any other becomes `data`, with its compact JSON as the body, so that clients that only
look at bodies have something to show. What ARC has and the relay has no place for (`type`, `ref`, fields nobody knows, how `to`
was written) travels in the payload under `arc`, and is put back for recipients over ARC.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec
from msgspec import Raw, Struct

from agent_relay.protocol.arc.client_frames import PlainSaid, Said
from agent_relay.protocol.arc.ids import is_agent_id
from agent_relay.protocol.names import BROADCAST
from agent_relay.protocol.payloads import NOTHING
from agent_relay.protocol.ulid import decode_bits

_PLACED = frozenset({"id", "from", "ts", "to", "payload", "type", "stored"})  # set by us, or at a place of their own

_encode = msgspec.json.Encoder().encode
_decode_parts = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_any = msgspec.json.Decoder().decode

BODY = b'{"body":'  # what every payload begins with that was made here


class FromArc(Struct, gc=False):
    """The result of `encode_payload`."""

    body: Raw
    data: Raw = NOTHING
    arc: Raw = NOTHING

    @property
    def content(self) -> Raw:
        """The payload as the sender wrote it."""
        return self.data if len(self.data) else self.body


class _ArcTail(Struct, gc=False):
    payload: FromArc


class _Tail(Struct, gc=False):
    payload: Raw


_decode_from_arc = msgspec.json.Decoder(FromArc).decode
_decode_arc_tail = msgspec.json.Decoder(_ArcTail).decode
_decode_tail = msgspec.json.Decoder(_Tail).decode


# --- from ARC --------------------------------------------------------------------------------------------------------------


def make_send(said: Said, client_id: str) -> tuple[str, str | list[str], bytes, str]:
    """A message for the relay, as `ports.ReadSend` has it."""
    to = said.to
    payload, body = make_payload(said)
    return client_id, BROADCAST if BROADCAST in to else to[0] if len(to) == 1 else to, payload, body


def make_payload(said: Said) -> tuple[bytes, str]:
    """A payload of the relay's, and the body that is in it."""
    raw = said.payload
    along = _encode_along(said)
    content = _decode_any(raw)
    if isinstance(content, str):
        return b"".join((BODY, raw, along, b"}")), content
    body = msgspec.json.format(bytes(raw), indent=-1).decode()
    return b"".join((BODY, _encode(body), b',"data":', raw, along, b"}")), body


def _encode_along(said: Said) -> bytes:
    is_plain = len(said.to) == 1 and is_plain_name(said.to[0])  # it can be told from what the relay says of the message
    if is_plain and isinstance(said, PlainSaid):
        return b""
    along: dict[str, object] = dict(said.extras)
    if not is_plain:
        along["to"] = said.to
    if said.type is not None:
        along["type"] = said.type
    if len(said.ref):
        along["ref"] = said.ref
    return b',"arc":' + _encode(along)


def is_plain_name(name: str) -> bool:
    return name == BROADCAST or is_agent_id(name)


# --- to ARC ----------------------------------------------------------------------------------------------------------------


def encode_tail(message_id: str, sender: str, to: str, topic: str, tail: bytes, *, from_arc: bool, stored: bool) -> bytes:
    """The same from a message's tail, as the relay keeps it: most messages have nothing but a payload."""
    json = b"{" + tail
    if from_arc and not topic:
        parts = _decode_arc_tail(json).payload
        if not len(parts.arc):
            return encode_plain(message_id, sender, to, parts.content, stored=stored)
    payload = _decode_tail(json).payload
    return encode_envelope(message_id, sender, to, topic, payload, from_arc=from_arc, stored=stored)


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
        *_fields(along, ("type",)), b',"payload":', content,
        encode_moment(message_id[4:14]), *_fields(along, [name for name in along if name not in _PLACED]),
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
    """A message with nothing but a payload."""
    end = b',"stored":true}' if stored else b"}"
    return b"".join((b'{"id":"', message_id.encode(), encode_route(sender, to), content, encode_moment(message_id[4:14]), end))


def encode_route(sender: str, to: str) -> bytes:
    """The part between the id and the payload. Names are ASCII without quotes by their own rules, so they are spliced."""
    names = to.replace(",", '","')
    return f'","from":"{sender}","to":["{names}"],"payload":'.encode()


def _fields(along: dict[str, Raw], names: tuple[str, ...] | list[str]) -> list[bytes | Raw]:
    found: list[bytes | Raw] = []
    for name in names:
        if name in along:
            found += (b"," + _encode(name) + b":", along[name])
    return found


@lru_cache(1_024)
def encode_moment(moment: str) -> bytes:
    """`ts`, behind another field; `moment` is what stands for it in an id."""
    return b',"ts":%d' % decode_bits(moment)
