"""The relay's own words to a client over ARC.

The protocol's text shows flat objects, and clients in use read the envelope: the welcome and errors are both at once.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_relay.protocol.arc.codes import ArcCode
from agent_relay.protocol.arc.ids import RELAY

ARC_VERSION = "1.0"

_encode = msgspec.json.Encoder().encode


def encode_answer(id_: str, ts: int, to: str, kind: str, payload: Any, ref: Any = None, **flat: Any) -> bytes:
    found: dict[str, Any] = {"id": id_, "from": RELAY, "to": [to], "type": kind, "payload": payload, "ts": ts}
    if ref is not None:
        found["ref"] = ref
    return _encode(found | flat)


def encode_welcome(
    id_: str, ts: int, to: str, relay: str, capabilities: list[str], extensions: list[str], limits: dict[str, Any]
) -> bytes:
    said = {
        "relay": relay, "version": ARC_VERSION, "capabilities": capabilities, "extensions": extensions, "limits": limits,
    }  # fmt: skip
    return encode_answer(id_, ts, to, "welcome", said | {"agent_id": to}, **said)


def encode_error(id_: str, ts: int, to: str, code: ArcCode, message: str, ref: Any = None) -> bytes:
    payload = {"code": code.value, "error": code.value, "message": message}
    return encode_answer(id_, ts, to, "error", payload, ref, error=code.value, message=message)
