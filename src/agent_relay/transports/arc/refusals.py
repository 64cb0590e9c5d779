"""The relay's NACK in the words of ARC. Whoever is not known is passed over in silence, as the protocol says."""

from __future__ import annotations

from typing import Any

from agent_relay.protocol.arc.codes import ArcCode, ArcProblem
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.payloads import Nack

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


def explain_refusal(said: Nack, ref: Any) -> ArcProblem | None:
    """None: nothing is said."""
    if said.code in _SILENT:
        return None
    code = ArcCode.RATE_LIMIT if said.code in _LATER else _CODES.get(said.code, ArcCode.INVALID_MESSAGE)
    return ArcProblem(code, said.message or "The message was refused.", ref)
