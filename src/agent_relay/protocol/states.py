"""The life of a connection, as tables. Whatever a table does not list cannot happen, and is refused.

`DAEMON` is the daemon's view of one client, `CLIENT` the client's view of itself. The diagrams in
`docs/protocol.md` are written from these tables by a test.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar


class DaemonState(StrEnum):
    HANDSHAKING = "handshaking"  # accepted; nothing but HELLO or RESUME is heard
    OPENING = "opening"  # HELLO or RESUME is good; waiting until the session is durable
    ACTIVE = "active"
    CLOSED = "closed"


class DaemonEvent(StrEnum):
    GREETED = "greeted"  # a valid HELLO or RESUME
    REFUSED = "refused"  # a HELLO or RESUME that may be tried again on this connection
    OPENED = "opened"  # WELCOME or SYNC was sent
    CLOSED = "closed"  # either side ended it


class ClientState(StrEnum):
    DISCONNECTED = "disconnected"
    CONNECTING = "connecting"
    HANDSHAKING = "handshaking"
    READY = "ready"
    BACKOFF = "backoff"
    CLOSED = "closed"


class ClientEvent(StrEnum):
    START = "start"
    CONNECTED = "connected"
    WELCOMED = "welcomed"
    LOST = "lost"  # the connection ended, or could not be made
    WAITED = "waited"  # the backoff is over
    GAVE_UP = "gave_up"  # out of attempts, or refused in a way that trying again cannot mend
    STOP = "stop"


_S = TypeVar("_S", bound=StrEnum)
_E = TypeVar("_E", bound=StrEnum)

DAEMON: dict[DaemonState, dict[DaemonEvent, DaemonState]] = {
    DaemonState.HANDSHAKING: {
        DaemonEvent.GREETED: DaemonState.OPENING,
        DaemonEvent.REFUSED: DaemonState.HANDSHAKING,
        DaemonEvent.CLOSED: DaemonState.CLOSED,
    },
    DaemonState.OPENING: {
        DaemonEvent.OPENED: DaemonState.ACTIVE,
        DaemonEvent.REFUSED: DaemonState.HANDSHAKING,
        DaemonEvent.CLOSED: DaemonState.CLOSED,
    },
    DaemonState.ACTIVE: {DaemonEvent.CLOSED: DaemonState.CLOSED},
    DaemonState.CLOSED: {},
}

CLIENT: dict[ClientState, dict[ClientEvent, ClientState]] = {
    ClientState.DISCONNECTED: {ClientEvent.START: ClientState.CONNECTING, ClientEvent.STOP: ClientState.CLOSED},
    ClientState.CONNECTING: {
        ClientEvent.CONNECTED: ClientState.HANDSHAKING,
        ClientEvent.LOST: ClientState.BACKOFF,
        ClientEvent.STOP: ClientState.CLOSED,
    },
    ClientState.HANDSHAKING: {
        ClientEvent.WELCOMED: ClientState.READY,
        ClientEvent.LOST: ClientState.BACKOFF,
        ClientEvent.GAVE_UP: ClientState.CLOSED,
        ClientEvent.STOP: ClientState.CLOSED,
    },
    ClientState.READY: {
        ClientEvent.LOST: ClientState.BACKOFF,
        ClientEvent.GAVE_UP: ClientState.CLOSED,
        ClientEvent.STOP: ClientState.CLOSED,
    },
    ClientState.BACKOFF: {
        ClientEvent.WAITED: ClientState.CONNECTING,
        ClientEvent.GAVE_UP: ClientState.CLOSED,
        ClientEvent.STOP: ClientState.CLOSED,
    },
    ClientState.CLOSED: {},
}


class IllegalTransition(Exception):  # noqa: N818 - named by the condition
    """A program error: the table has no such cell."""


def advance(table: dict[_S, dict[_E, _S]], state: _S, event: _E) -> _S:
    try:
        return table[state][event]
    except KeyError:
        raise IllegalTransition(f"{state} has no transition for {event}") from None


class CloseReason(StrEnum):
    """Why a connection ended: logged, counted, and said in BYE where there is still somebody to say it to."""

    CLIENT_BYE = "client_bye"
    CLIENT_GONE = "client_gone"
    SUPERSEDED = "superseded"
    REVOKED = "revoked"
    SHUTDOWN = "shutdown"
    HANDSHAKE_TIMEOUT = "handshake_timeout"
    HANDSHAKE_REFUSED = "handshake_refused"
    HEARTBEAT_TIMEOUT = "heartbeat_timeout"
    SLOW_CONSUMER = "slow_consumer"
    FRAME_TOO_LARGE = "frame_too_large"
    TOO_MANY_BAD_FRAMES = "too_many_bad_frames"
    UID_REFUSED = "uid_refused"
    INTERNAL_ERROR = "internal_error"
