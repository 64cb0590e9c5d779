"""The relay's NACK in the words of ARC. Whoever is not known is passed over in silence, as the protocol says."""

from __future__ import annotations

from typing import Any

from agent_relay.protocol.arc.codes import ArcCode, ArcProblem
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.payloads import NackPayload

_SILENT = frozenset(
    {
        ErrorCode.AGENT_NOT_FOUND, ErrorCode.INVALID_TARGET, ErrorCode.AGENT_OFFLINE,
        ErrorCode.DELIVERY_TIMEOUT,  # of a message that was stored, and whose time is over
    }
)  # fmt: skip
_LATER = frozenset({ErrorCode.QUEUE_FULL, ErrorCode.RATE_LIMITED, ErrorCode.SERVICE_UNAVAILABLE, ErrorCode.AGENT_BUSY})
_CODES: dict[str, ArcCode] = {
    ErrorCode.MESSAGE_TOO_LARGE: ArcCode.MESSAGE_TOO_LARGE,
    ErrorCode.PERMISSION_DENIED: ArcCode.FORBIDDEN,
}


def is_silent(code: str) -> bool:
    return code in _SILENT


def explain_refusal(said: NackPayload, ref: Any) -> ArcProblem | None:
    """None: nothing is said."""
    return None if is_silent(said.code) else translate_refusal(said.code, said.message, ref)


def translate_refusal(code: str, message: str | None, ref: Any) -> ArcProblem:
    found = ArcCode.RATE_LIMIT if code in _LATER else _CODES.get(code, ArcCode.INVALID_MESSAGE)
    return ArcProblem(found, message or "The message was refused.", ref)
