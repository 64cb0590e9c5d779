"""Errors that the SDK raises beyond the codes a daemon sends.

RelayError
├── DaemonNotRunning   nobody listens at the socket
├── ConnectionLost     the connection is gone and will not come back by itself
│   └── StrangerAtSocket   somebody else may be listening there, and was told nothing
└── TimedOut           a wait ended before what was waited for happened; also a TimeoutError
"""

from __future__ import annotations

from agent_relay.protocol.errors import ErrorCode, RelayError, parse_error
from agent_relay.protocol.payloads import ErrorPayload, NackPayload


class DaemonNotRunning(RelayError):  # noqa: N818 - named by the condition
    def __init__(self, socket: str) -> None:
        super().__init__(
            ErrorCode.SERVICE_UNAVAILABLE, f"No daemon answers at {socket}; start one with `agent-relay up`.", socket=socket
        )


class ConnectionLost(RelayError):  # noqa: N818 - named by the condition
    def __init__(self, message: str, *, code: ErrorCode = ErrorCode.SERVICE_UNAVAILABLE, reason: str = "") -> None:
        super().__init__(code, message)
        if reason:
            self.details["reason"] = reason


class StrangerAtSocket(ConnectionLost):
    def __init__(self, message: str) -> None:
        super().__init__(message, code=ErrorCode.PERMISSION_DENIED, reason="stranger")


class TimedOut(RelayError, TimeoutError):  # noqa: N818 - named by the condition
    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.DELIVERY_TIMEOUT, message)


def read_error(said: NackPayload | ErrorPayload) -> RelayError:
    """The exception for a NACK or ERROR of the daemon."""
    error = parse_error(said.code, said.message, retry_after_ms=said.retry_after_ms, details=said.details)
    if error.code is ErrorCode.DELIVERY_TIMEOUT:
        timed_out = TimedOut(error.message)
        timed_out.retry_after_ms, timed_out.details = error.retry_after_ms, error.details
        error = timed_out
    if isinstance(said, ErrorPayload):
        error.fatal = said.fatal
        return error
    for name in ("message_id", "to", "correlationId", "waited_ms"):
        value = getattr(said, name)
        if value is not None:
            error.details.setdefault(name, value)
    return error
