"""Frames into structs, and, when one is wrong, into an answer that names the field.

The good case is one call of a compiled decoder. Only a frame it refuses is looked at a second time, slowly, to say
what is wrong with it. What is forwarded unread (payloads, responses) is checked here to be readable at the other end:
UTF-8, not nested too deeply, no number too large.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from agent_relay.protocol import payloads
from agent_relay.protocol.envelope import Ack, ClientFrame, DaemonFrame, Send
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.protocol.nesting import MAX_NESTING, SHALLOW_BYTES, is_too_deep
from agent_relay.protocol.payloads import NOTHING
from agent_relay.protocol.validation import split_validation_error

T = TypeVar("T")

_decode_client: Callable[[bytes], ClientFrame] = msgspec.json.Decoder(ClientFrame).decode
_decode_daemon: Callable[[bytes], DaemonFrame] = msgspec.json.Decoder(DaemonFrame).decode
_decode_send = msgspec.json.Decoder(payloads.SendPayload).decode
_decode_meta = msgspec.json.Decoder(payloads.SendMeta).decode
_decode_any = msgspec.json.Decoder().decode
_decode_parts = msgspec.json.Decoder(dict[str, Raw]).decode

DEFAULT_META = payloads.SendMeta()
_KIND = re.compile(r"[a-z][a-z0-9_.-]{0,63}", re.ASCII)
_ENVELOPE_FIELDS = ("v", "type", "id", "ts", "payload")
_OBJECT = ord("{")
_TOO_DEEP = f"is nested deeper than {MAX_NESTING} levels"


class BadFrame(RelayError):  # noqa: N818 - named by the condition
    """A frame that cannot be taken. `request_id` is its id and `type` its type, where it had good ones."""

    request_id: str | None = None
    type: str | None = None
    malformed = False  # True: not even a JSON object; too many of those in a row end the connection


def decode_client_frame(frame: bytes) -> ClientFrame:
    """Reads a frame of a client; raises BadFrame."""
    try:
        if not frame.isascii():
            frame.decode()  # the raw parts are forwarded unseen, so the whole frame is checked to be UTF-8
        found = _decode_client(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explain(frame, error) from None
    if type(found) is Send:
        return found  # of a SEND only the payload is forwarded, and `decode_send` looks at it
    if len(frame) > SHALLOW_BYTES and is_too_deep(frame):
        raise _malformed(f"The frame {_TOO_DEEP}.")
    if type(found) is Ack:
        payload = found.payload
        if payload.response is not NOTHING or payload.responseData is not NOTHING:
            _check_response(found)
    return found


def decode_daemon_frame(frame: bytes) -> DaemonFrame:
    """Reads a frame of the daemon; raises BadFrame."""
    try:
        if not frame.isascii():
            frame.decode()
        return _decode_daemon(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _explain(frame, error) from None


def decode_send(payload: Raw) -> payloads.SendPayload:
    """`payload` is a value of a decoded frame: well-formed, and without space around it."""
    try:
        send = _decode_send(payload)
    except msgspec.ValidationError as error:
        raise _mistyped("payload", error) from None
    except RecursionError:  # the stack is deeper here than where the frame was read
        raise _wrong("payload", _TOO_DEEP) from None
    if send.kind not in payloads.KNOWN_KINDS and _KIND.fullmatch(send.kind) is None:
        raise _wrong("payload.kind", "must be a lowercase word of at most 64 characters")
    # A body is text and nests nothing, so a plain message, however long, is never measured.
    if len(payload) - len(send.body) > SHALLOW_BYTES:
        check_depth(payload)
    if len(send.data):
        if not is_object(send.data):
            raise _wrong("payload.data", "must be an object")
        if (problem := _find_problem(send.data)) is not None:
            raise _wrong("payload.data", problem)
    return send


def check_depth(payload: Raw | bytes) -> None:
    """Raises RelayError. `payload` is well-formed."""
    if is_too_deep(payload):
        raise _wrong("payload", _TOO_DEEP)


def decode_meta(meta: Raw) -> payloads.SendMeta:
    if not len(meta):
        return DEFAULT_META
    try:
        found = _decode_meta(meta)
    except msgspec.ValidationError as error:
        raise _mistyped("payload_meta", error) from None
    except RecursionError:
        raise _wrong("payload_meta", _TOO_DEEP) from None
    if len(meta) > SHALLOW_BYTES and is_too_deep(meta):
        raise _wrong("payload_meta", _TOO_DEEP)
    return found


def convert_fields(fields: dict[str, Any], kind: type[T], prefix: str) -> T:
    """Fields whose meaning depends on another field, as the struct they should be."""
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise _mistyped(prefix, error) from None


def _check_response(ack: Ack) -> None:
    for name, raw in (("response", ack.payload.response), ("responseData", ack.payload.responseData)):
        if len(raw) and (problem := _find_problem(raw)) is not None:
            bad = BadFrame(ErrorCode.INVALID_FORMAT, f"`payload.{name}` {problem}.", field=f"payload.{name}")
            bad.request_id, bad.type = ack.id, "ACK"
            raise bad


def _find_problem(raw: Raw) -> str | None:
    """The problem that would keep a recipient from reading this value; a number that no float can hold is well-formed JSON."""
    try:
        _decode_any(raw)
    except msgspec.DecodeError:
        return "has a number that is out of range"
    except RecursionError:
        return _TOO_DEEP
    return None


def is_object(raw: Raw) -> bool:
    return len(raw) > 0 and memoryview(raw)[0] == _OBJECT


def _wrong(field: str, problem: str) -> RelayError:
    return RelayError(ErrorCode.INVALID_FORMAT, f"`{field}` {problem}.", field=field)


def _mistyped(prefix: str, error: msgspec.ValidationError) -> RelayError:
    text, path = _read_validation_error(error)
    field = f"{prefix}.{path}" if path else prefix
    return RelayError(ErrorCode.INVALID_FORMAT, f"`{field}`: {text}.", field=field)


def _read_validation_error(error: msgspec.ValidationError) -> tuple[str, str]:
    text, path = split_validation_error(error)
    return text.replace("`", ""), path


def _explain(frame: bytes, error: Exception) -> BadFrame:
    if isinstance(error, RecursionError):
        return _malformed("The frame is nested too deeply.")
    if isinstance(error, UnicodeDecodeError):
        return _malformed(f"The frame is not UTF-8: byte {error.start} is wrong.")
    try:
        found = _decode_parts(frame)
    except msgspec.ValidationError:
        return _malformed("The frame must be a JSON object.")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:
        return _malformed(f"The frame is not JSON: {broken}." if frame else "The frame is empty.")
    return _explain_object(found, error)


def _malformed(message: str) -> BadFrame:
    bad = BadFrame(ErrorCode.INVALID_FORMAT, message)
    bad.malformed = True
    return bad


def _explain_object(found: dict[str, Raw], error: Exception) -> BadFrame:
    values = {name: _read_value(found[name]) for name in _ENVELOPE_FIELDS if name in found}
    for name in _ENVELOPE_FIELDS:
        if name not in values:
            bad = BadFrame(ErrorCode.INVALID_FORMAT, f"`{name}` is missing.", field=name)
            break
        if not _is_good(name, values[name]):
            shown = show(bytes(memoryview(found[name])[:80]).decode(errors="replace"))
            bad = BadFrame(ErrorCode.INVALID_FORMAT, f"`{name}` cannot be {shown}.", field=name)
            break
    else:
        bad = _explain_type(values["type"], error)
    bad.request_id = values["id"] if _is_good("id", values.get("id")) else None
    bad.type = values["type"] if _is_good("type", values.get("type")) else None
    return bad


def _read_value(raw: Raw) -> Any:
    """A field of the envelope, as far as it is worth reading: of an object it is enough to know that it is one."""
    if is_object(raw):
        return {}
    try:
        return _decode_any(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _explain_type(kind: str, error: Exception) -> BadFrame:
    text, path = _read_validation_error(error) if isinstance(error, msgspec.ValidationError) else (str(error), "")
    if path == "type":
        bad = BadFrame(ErrorCode.FEATURE_UNSUPPORTED, f"Unknown frame type {show(kind, 80)}.")
        bad.details = {"type": kind[:128]}
        return bad
    return BadFrame(ErrorCode.INVALID_FORMAT, f"`{path}`: {text}.", field=path)


def _is_good(name: str, value: object) -> bool:
    match name:
        case "v":
            return type(value) is int and value in (1, 2)
        case "type":
            return isinstance(value, str)
        case "id":
            return isinstance(value, str) and 1 <= len(value) <= 128
        case "ts":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, dict)
