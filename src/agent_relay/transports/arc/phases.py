"""The life of a connection over ARC as a table, and the relay's reasons to end one as ARC's close codes and in words."""

from __future__ import annotations

from enum import StrEnum

from agent_relay.protocol.arc.codes import CloseCode
from agent_relay.protocol.states import CloseReason


class Phase(StrEnum):
    OPENING = "opening"  # upgraded; the relay has not opened the session yet, and what comes meanwhile is kept
    OPEN = "open"
    CLOSING = "closing"  # the close is said, or was heard: nothing is passed on any more, and its end is waited for
    GONE = "gone"  # the socket is closed


class PhaseEvent(StrEnum):
    WELCOMED = "welcomed"  # the relay has opened the session
    ENDED = "ended"  # either side has said that it is over
    LOST = "lost"  # the socket was closed


PHASES: dict[Phase, dict[PhaseEvent, Phase]] = {
    Phase.OPENING: {PhaseEvent.WELCOMED: Phase.OPEN, PhaseEvent.ENDED: Phase.CLOSING, PhaseEvent.LOST: Phase.GONE},
    Phase.OPEN: {PhaseEvent.ENDED: Phase.CLOSING, PhaseEvent.LOST: Phase.GONE},
    Phase.CLOSING: {PhaseEvent.LOST: Phase.GONE},
    Phase.GONE: {},
}

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
