"""Why the relay ends a session, as ARC's close codes and in words."""

from __future__ import annotations

from agent_relay.protocol.arc.codes import CloseCode
from agent_relay.protocol.states import CloseReason

CLOSES = {
    CloseReason.SUPERSEDED: CloseCode.SUPERSEDED,
    CloseReason.REVOKED: CloseCode.TOKEN,
    CloseReason.SHUTDOWN: CloseCode.SHUTDOWN,
    CloseReason.SLOW_CONSUMER: CloseCode.SLOW_CONSUMER,
    CloseReason.FRAME_TOO_LARGE: CloseCode.TOO_LARGE,
}  # any other is a failure of ours
REASONS = {
    CloseReason.SUPERSEDED: "This agent has connected again.",
    CloseReason.REVOKED: "The token was revoked.",
    CloseReason.SHUTDOWN: "The relay is stopping.",
}
