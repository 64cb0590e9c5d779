"""Structs into frames, and the frames of the hot path spliced together from parts made once.

A DELIVER is its recipient's own head (id, time, numbers) and the message's tail (sender, topic, payload as it came).
The tail is built once per message: it is what the store keeps, and every recipient's frame ends with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Raw

from agent_relay.protocol.framing import encode_length

_encode = msgspec.json.Encoder().encode
encode_json = _encode
_decode_any = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(dict[str, Raw]).decode
_SENDER_BEGINS = len('"from":"')
_SHADOWS = b',"shadows":'


def encode_envelope(kind: str, id_: str, ts: int, payload: Any, version: int = 2, **fields: Any) -> bytes:
    """One frame, length included; `fields` are further fields of the envelope (`to`, `topic`, `from_`)."""
    envelope: dict[str, Any] = {"v": version, "type": kind, "id": id_, "ts": ts}
    for name, value in fields.items():
        if value is not None:
            envelope[name.rstrip("_")] = value
    envelope["payload"] = payload
    body = _encode(envelope)
    return encode_length(len(body)) + body


def encode_tail_head(sender: str) -> bytes:
    """The part before the payload in the tail of a plain message; behind it there is the closing brace."""
    return f'"from":"{sender}","payload":'.encode()


def encode_tail(sender: str, topic: str, payload: Raw | bytes, meta: Raw | bytes, shadows: Sequence[str] = ()) -> bytes:
    """The part of a DELIVER that all its recipients share, up to and with the closing brace. `shadows`: who gets a copy."""
    topic_part = b',"topic":' + _encode(topic) if topic else b""
    if shadows:
        topic_part = _SHADOWS + _encode(shadows) + topic_part
    if len(meta):
        end = (b',"payload_meta":', meta, b"}")
        return b"".join((b'"from":"', sender.encode(), b'"', topic_part, b',"payload":', payload, *end))
    return b"".join((b'"from":"', sender.encode(), b'"', topic_part, b',"payload":', payload, b"}"))


def read_shadows(tail: bytes) -> tuple[str, ...]:
    """The names of those who get a copy of a stored message: right behind its sender, so nothing else in it passes for them."""
    at = tail.find(b'"', _SENDER_BEGINS) + 1
    if not tail.startswith(_SHADOWS, at):
        return ()
    begins = at + len(_SHADOWS)
    return tuple(_decode_any(tail[begins : tail.index(b"]", begins) + 1]))


def keep_shadows(tail: bytes, names: Sequence[str]) -> bytes:
    """The same message, of which only those get a copy; none: it says nothing of copies any more."""
    at = tail.find(b'"', _SENDER_BEGINS) + 1
    if not tail.startswith(_SHADOWS, at):
        return tail
    return b"".join((tail[:at], _SHADOWS + _encode(names) if names else b"", tail[tail.index(b"]", at) + 1 :]))


def encode_deliver(
    version: int, delivery_id: str, ts: int | str, to: str, session_id: str, message_id: str,
    seq: int, attempt: int, queued_ms: int, prev_seq: int | None, tail: bytes, marks: str = "",
) -> bytes:  # fmt: skip
    """Names and ids are ASCII without quotes or escapes by their own rules, so they are spliced as they are. `marks`: more fields
    of `delivery`, each behind a comma."""
    gap = marks if prev_seq is None else f',"prev_seq":{prev_seq}{marks}'
    head = (
        f'{{"v":{version},"type":"DELIVER","id":"{delivery_id}","ts":{ts},"to":"{to}","delivery":{{"seq":{seq},'
        f'"session_id":"{session_id}","message_id":"{message_id}","attempt":{attempt},"queued_ms":{queued_ms}{gap}}},'
    ).encode()
    return b"".join((encode_length(len(head) + len(tail)), head, tail))


def encode_stored(
    version: int,
    ts: int | str,
    client_id: str,
    message_id: str,
    recipients: int,
    queued: int,
    skipped: Sequence[str],
    again: str = "",
) -> bytes:
    """The ACK that says what became of a SEND. The client's own id may hold anything, so it alone is really encoded.

    `again` is the frame's id where the same is said once more, about a duplicate.
    """
    more = ',"skipped":' + _encode(skipped).decode() if skipped else ""
    if again:
        more += ',"duplicate":true'
    frame_id, ack_id = again or "a_" + message_id[4:], _encode(client_id).decode()
    body = (
        f'{{"v":{version},"type":"ACK","id":"{frame_id}","ts":{ts},"payload":{{"ack_id":{ack_id},'
        f'"stage":"stored","message_id":"{message_id}","recipients":{recipients},"queued":{queued}{more}}}}}'
    ).encode()
    return encode_length(len(body)) + body


def encode_event_frame(version: int, id_: str, ts: int | str, kind: str, subscription: str, event: bytes) -> bytes:
    """An AGENT_EVENT for a subscriber, around the event as it is recorded."""
    head = (
        f'{{"v":{version},"type":"AGENT_EVENT","id":"{id_}","ts":{ts},"payload":{{"type":"{kind}",'
        f'"subscription":{_encode(subscription).decode()},"event":'
    ).encode()
    return b"".join((encode_length(len(head) + len(event) + 2), head, event, b"}}"))


def read_tail(tail: bytes) -> dict[str, Any]:
    """`from`, `topic`, `payload`, `payload_meta` of a stored message."""
    json = b"{" + tail
    try:
        found: dict[str, Any] = _decode_any(json)
    except msgspec.DecodeError:
        found = _read_what_can_be_read(json)
    return found


def _read_what_can_be_read(json: bytes | Raw) -> dict[str, Any]:
    # A field we do not know was forwarded unread, and may hold a number that is well-formed but out of range.
    found: dict[str, Any] = {}
    for name, raw in _decode_parts(json).items():
        try:
            found[name] = _decode_any(raw)
        except msgspec.DecodeError:
            if bytes(raw).startswith(b"{"):
                found[name] = _read_what_can_be_read(raw)
    return found
