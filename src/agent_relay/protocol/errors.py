"""The one vocabulary of failure: every code a peer can be sent, its category and its retry advice.

`RelayError` is what the program raises and catches; `error_payload` turns it into what an ERROR or NACK carries.
An error of ours that no code describes leaves as INTERNAL_ERROR with nothing but its code: the peer learns
that it failed, the log learns why.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Category(StrEnum):
    VALIDATION = "validation"
    ROUTING = "routing"
    DELIVERY = "delivery"
    SYSTEM = "system"
    PROTOCOL = "protocol"


class ErrorCode(StrEnum):
    INVALID_FORMAT = "INVALID_FORMAT"
    MISSING_HEADER = "MISSING_HEADER"
    INVALID_HEADER = "INVALID_HEADER"
    CHECKSUM_MISMATCH = "CHECKSUM_MISMATCH"
    MESSAGE_TOO_LARGE = "MESSAGE_TOO_LARGE"
    INVALID_TARGET = "INVALID_TARGET"
    AGENT_NOT_FOUND = "AGENT_NOT_FOUND"
    CHANNEL_NOT_FOUND = "CHANNEL_NOT_FOUND"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    ROUTE_NOT_FOUND = "ROUTE_NOT_FOUND"
    AGENT_OFFLINE = "AGENT_OFFLINE"
    AGENT_BUSY = "AGENT_BUSY"
    QUEUE_FULL = "QUEUE_FULL"
    DELIVERY_TIMEOUT = "DELIVERY_TIMEOUT"
    REJECTED = "REJECTED"
    INTERNAL_ERROR = "INTERNAL_ERROR"
    RATE_LIMITED = "RATE_LIMITED"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    VERSION_MISMATCH = "VERSION_MISMATCH"
    FEATURE_UNSUPPORTED = "FEATURE_UNSUPPORTED"
    RESUME_TOO_OLD = "RESUME_TOO_OLD"
    STALE = "STALE"

    @property
    def category(self) -> Category:
        return _TABLE[self][0]

    @property
    def retryable(self) -> bool:
        return _TABLE[self][1]

    @property
    def meaning(self) -> str:
        """One sentence for the documentation and for a message that has nothing better to say."""
        return _TABLE[self][2]

    @property
    def v1_code(self) -> str | None:
        """The code of protocol 1 that comes nearest, where one does."""
        return _V1.get(self)


_TABLE: dict[ErrorCode, tuple[Category, bool, str]] = {
    ErrorCode.INVALID_FORMAT: (Category.VALIDATION, False, "The frame or one of its fields has an invalid format."),
    ErrorCode.MISSING_HEADER: (Category.VALIDATION, False, "A required header is missing."),
    ErrorCode.INVALID_HEADER: (Category.VALIDATION, False, "A header has an invalid value."),
    ErrorCode.CHECKSUM_MISMATCH: (Category.VALIDATION, False, "The body does not match its checksum."),
    ErrorCode.MESSAGE_TOO_LARGE: (Category.VALIDATION, False, "The frame is larger than the daemon accepts."),
    ErrorCode.INVALID_TARGET: (Category.VALIDATION, False, "The name is not valid for an agent, channel or topic."),
    ErrorCode.AGENT_NOT_FOUND: (Category.ROUTING, False, "No agent with that name has ever connected."),
    ErrorCode.CHANNEL_NOT_FOUND: (Category.ROUTING, False, "No channel with that name exists."),
    ErrorCode.PERMISSION_DENIED: (Category.ROUTING, False, "The caller may not do that."),
    ErrorCode.ROUTE_NOT_FOUND: (Category.ROUTING, False, "Nothing exists at that address."),
    ErrorCode.AGENT_OFFLINE: (Category.DELIVERY, True, "The agent is known but not connected."),
    ErrorCode.AGENT_BUSY: (Category.DELIVERY, True, "The agent cannot accept the message now."),
    ErrorCode.QUEUE_FULL: (Category.DELIVERY, True, "The recipient's queue is full; the message was not stored."),
    ErrorCode.DELIVERY_TIMEOUT: (Category.DELIVERY, True, "The message was not acknowledged in time."),
    ErrorCode.REJECTED: (Category.DELIVERY, False, "The recipient refused the message."),
    ErrorCode.INTERNAL_ERROR: (Category.SYSTEM, True, "The daemon failed; its log has the details."),
    ErrorCode.RATE_LIMITED: (Category.SYSTEM, True, "The connection sent more messages per second than allowed."),
    ErrorCode.SERVICE_UNAVAILABLE: (Category.SYSTEM, True, "The daemon cannot store messages now; nothing was accepted."),
    ErrorCode.VERSION_MISMATCH: (Category.PROTOCOL, False, "The two sides have no protocol version in common."),
    ErrorCode.FEATURE_UNSUPPORTED: (Category.PROTOCOL, False, "The daemon does not know this type of frame."),
    ErrorCode.RESUME_TOO_OLD: (Category.PROTOCOL, False, "The session can no longer be resumed; send a new HELLO."),
    ErrorCode.STALE: (Category.PROTOCOL, False, "The requested history is gone; an alias of RESUME_TOO_OLD."),
}

_V1: dict[ErrorCode, str] = {
    ErrorCode.INVALID_FORMAT: "BAD_REQUEST",
    ErrorCode.MISSING_HEADER: "BAD_REQUEST",
    ErrorCode.INVALID_HEADER: "BAD_REQUEST",
    ErrorCode.CHECKSUM_MISMATCH: "BAD_REQUEST",
    ErrorCode.MESSAGE_TOO_LARGE: "BAD_REQUEST",
    ErrorCode.INVALID_TARGET: "BAD_REQUEST",
    ErrorCode.FEATURE_UNSUPPORTED: "BAD_REQUEST",
    ErrorCode.VERSION_MISMATCH: "BAD_REQUEST",
    ErrorCode.PERMISSION_DENIED: "UNAUTHORIZED",
    ErrorCode.AGENT_NOT_FOUND: "NOT_FOUND",
    ErrorCode.CHANNEL_NOT_FOUND: "NOT_FOUND",
    ErrorCode.ROUTE_NOT_FOUND: "NOT_FOUND",
    ErrorCode.INTERNAL_ERROR: "INTERNAL",
    ErrorCode.SERVICE_UNAVAILABLE: "INTERNAL",
    ErrorCode.RESUME_TOO_OLD: "RESUME_TOO_OLD",
    ErrorCode.STALE: "RESUME_TOO_OLD",
}


class RelayError(Exception):
    """A failure with a code of the wire. `details` name the field, the agent, the limit: whatever helps to mend it."""

    def __init__(
        self, code: ErrorCode, message: str = "", *, retry_after_ms: int | None = None, fatal: bool = False, **details: Any
    ) -> None:
        super().__init__(message or code.meaning)
        self.code = code
        self.message = message or code.meaning
        self.retry_after_ms = retry_after_ms
        self.fatal = fatal
        self.details = details

    def __repr__(self) -> str:
        return f"RelayError({self.code}, {self.message!r})"


def error_payload(error: RelayError, version: int = 2) -> dict[str, Any]:
    """The payload of an ERROR or NACK about it; the caller adds the id of what failed."""
    payload: dict[str, Any] = {
        "code": error.code.value,
        "category": error.code.category.value,
        "message": error.message,
        "retryable": error.code.retryable,
    }
    if error.retry_after_ms is not None:
        payload["retry_after_ms"] = error.retry_after_ms
    details = error.details
    if version < 2 and error.code.v1_code is not None:
        details = {**details, "v1_code": error.code.v1_code}
    if details:
        payload["details"] = details
    return payload


def parse_error(code: object, message: object, *, retry_after_ms: int | None = None, details: object = None) -> RelayError:
    """The inverse for clients: a code this version does not know counts as INTERNAL_ERROR, as an old client must take it."""
    known = ErrorCode(code) if isinstance(code, str) and code in ErrorCode.__members__ else ErrorCode.INTERNAL_ERROR
    extra = {str(key): value for key, value in details.items()} if isinstance(details, dict) else {}
    error = RelayError(known, str(message or ""), retry_after_ms=retry_after_ms)
    error.details = extra
    return error
