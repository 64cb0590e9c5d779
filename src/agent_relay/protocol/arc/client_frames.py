"""Frames of a client, read and checked: a frame's text into a message for others or a command for the relay.

Most messages have nothing but `to` and `payload`, and are read by one call of a compiled decoder. Only what that refuses is
looked at a second time, slowly, to find the further fields or the one that is wrong.
"""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import msgspec
from msgspec import Raw, Struct

from agent_relay.protocol.arc.codes import ArcCode, ArcProblem
from agent_relay.protocol.arc.ids import RELAY
from agent_relay.protocol.nesting import is_too_deep
from agent_relay.protocol.payloads import NOTHING

_IGNORED = frozenset({"id", "from", "ts"})  # the relay sets them
_KNOWN = _IGNORED | {"to", "payload", "type", "ref"}
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class PlainSaid(Struct, forbid_unknown_fields=True, gc=False):
    """Nothing but a message."""

    to: list[str]
    payload: Raw
    type: ClassVar[str | None] = None
    ref: ClassVar[Raw] = NOTHING
    receipt: ClassVar[bool] = False
    extras: ClassVar[dict[str, Raw]] = {}


class FullSaid(Struct, frozen=True, gc=False):
    to: list[str]
    payload: Raw = NOTHING
    type: str | None = None
    ref: Raw = NOTHING
    receipt: bool = False  # its sender wants to know what became of it
    extras: dict[str, Raw] = {}  # fields that ARC does not know: they go along unchanged


Said = PlainSaid | FullSaid

_TEXT = ord('"')

_decode_plain = msgspec.json.Decoder(PlainSaid).decode
_decode_parts = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_any = msgspec.json.Decoder().decode


def read_said(text: bytes) -> Said:
    """`text` is UTF-8. Raises ArcProblem."""
    try:
        plain = _decode_plain(text)
    except UNREADABLE:
        return _read_slowly(text)
    if not plain.to:
        return _read_slowly(text)
    if memoryview(plain.payload)[0] != _TEXT:  # a text that was found whole can be read, and nests nothing
        if is_too_deep(text):
            return _read_slowly(text)
        _check_readable("payload", plain.payload, None)
    return plain


def is_command(said: Said) -> bool:
    return RELAY in said.to


def _read_slowly(text: bytes) -> Said:
    try:
        parts = _decode_parts(text)
    except msgspec.ValidationError:
        _refuse("The frame must be a JSON object.")
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        _refuse(f"The frame is not JSON: {error}.")
    except RecursionError:
        _refuse("The frame is nested too deeply.")
    if is_too_deep(text):
        _refuse("The frame is nested too deeply.")
    ref = _read_ref(parts)
    receipt = bytes(parts.get("receipt", NOTHING)) == b"true"  # anything else is a field like those nobody knows
    if receipt:
        del parts["receipt"]
    said = FullSaid(
        to=_read_names(parts, ref), payload=parts.get("payload", NOTHING), type=_read_type(parts, ref),
        ref=parts.get("ref", NOTHING), receipt=receipt, extras={name: raw for name, raw in parts.items() if name not in _KNOWN},
    )  # fmt: skip
    if is_command(said):
        return said
    if not len(said.payload):
        _refuse("`payload` is missing.", ref)
    _check_readable("payload", said.payload, ref)
    for name, raw in said.extras.items():
        _check_readable(name[:80], raw, ref)
    return said


def _read_ref(parts: dict[str, Raw]) -> Any:
    raw = parts.get("ref")
    if raw is None:
        return None
    _check_readable("ref", raw, None)
    return _decode_any(raw)


def _read_names(parts: dict[str, Raw], ref: Any) -> list[str]:
    raw = parts.get("to")
    if raw is None:
        _refuse("`to` is missing.", ref)
    try:
        names = _decode_names(raw)
    except UNREADABLE:
        _refuse("`to` must be an array of strings.", ref)
    if not names:
        _refuse("`to` must name at least one recipient.", ref)
    return names


def _read_type(parts: dict[str, Raw], ref: Any) -> str | None:
    raw = parts.get("type")
    if raw is None or bytes(raw) == b"null":
        return None
    try:
        return _decode_text(raw)
    except UNREADABLE:
        _refuse("`type` must be a string.", ref)


def read_payload(said: Said) -> dict[str, Any]:
    """The payload of a command, as an object; a command needs none."""
    if not len(said.payload):
        return {}
    ref = _decode_any(said.ref) if len(said.ref) else None
    _check_readable("payload", said.payload, ref)
    found = _decode_any(said.payload)
    if found is None:
        return {}
    if not isinstance(found, dict):
        _refuse("`payload` of a command must be an object.", ref)
    return found


def read_ref(said: Said) -> Any:
    return _decode_any(said.ref) if len(said.ref) else None


def _check_readable(name: str, raw: Raw, ref: Any) -> None:
    """Checks that what is forwarded unread is readable to whoever gets it."""
    try:
        _decode_any(raw)
    except UNREADABLE as error:
        _refuse(f"`{name}` cannot be read: {error}.", ref)


def _refuse(message: str, ref: Any = None) -> NoReturn:
    raise ArcProblem(ArcCode.INVALID_MESSAGE, message, ref)
