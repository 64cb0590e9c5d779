"""Receipts and refusals over ARC: a message's fate for a sender who asked with `"receipt": true`, and the relay's NACK.

Whoever is not known is passed over in silence, as the protocol says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_relay.ports.relay import Told
from agent_relay.ports.store import MessageRow
from agent_relay.protocol.arc.client_frames import Said, read_ref
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import BROADCAST, fold_name
from agent_relay.protocol.payloads import NackPayload

if TYPE_CHECKING:
    from agent_relay.transports.arc.connection import ArcConnection
    from agent_relay.transports.arc.hub import Hub

RECEIPT = "receipt"
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


def make_receipt(hub: Hub, connection: ArcConnection, said: Said) -> Told:
    """The callback for the relay once it knows."""
    wanted, ref = [] if BROADCAST in said.to else said.to, read_ref(said)

    def told(outcome: MessageRow | RelayError) -> None:
        if isinstance(outcome, MessageRow):
            stored = [name for name, _ in outcome.addressed]
            found = {"id": outcome.id, "stored": stored, "unknown": _without(wanted, [*stored, *outcome.skipped])}
            if outcome.skipped:
                found["full"] = list(outcome.skipped)
            hub.answer(connection, RECEIPT, found, ref)
        elif is_silent(outcome.code):  # nobody is left whom it could be stored for
            hub.answer(connection, RECEIPT, {"id": None, "stored": [], "unknown": _without(wanted, [])}, ref)
        elif connection.is_open:
            connection.refuse(translate_refusal(outcome.code, outcome.message, ref))

    return told


def _without(names: list[str], known: list[str]) -> list[str]:
    """Each once, as it was written."""
    keys = {fold_name(name) for name in known}
    return [name for name in dict.fromkeys(names) if fold_name(name) not in keys]


def is_silent(code: str) -> bool:
    return code in _SILENT


def explain_refusal(said: NackPayload, ref: Any) -> ArcProblem | None:
    """None: nothing is said."""
    return None if is_silent(said.code) else translate_refusal(said.code, said.message, ref)


def translate_refusal(code: str, message: str | None, ref: Any) -> ArcProblem:
    found = ArcCode.RATE_LIMIT if code in _LATER else _CODES.get(code, ArcCode.INVALID_MESSAGE)
    return ArcProblem(found, message or "The message was refused.", ref)
