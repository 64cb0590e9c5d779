"""Codes of errors in a client's frame, and of reasons to close a connection."""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import Any


class ArcCode(StrEnum):
    INVALID_MESSAGE = "invalid_message"
    MESSAGE_TOO_LARGE = "message_too_large"
    RATE_LIMIT = "rate_limit"
    TOKEN_EXPIRED = "token_expired"  # noqa: S105
    UNKNOWN_TYPE = "unknown_type"
    FORBIDDEN = "forbidden"


class ArcProblem(Exception):  # noqa: N818 - named by the condition
    """A frame that is refused; the connection lives. `ref` is the frame's own, where it could be read."""

    def __init__(self, code: ArcCode, message: str, ref: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.ref = ref


class CloseCode(IntEnum):
    NORMAL = 1000
    SHUTDOWN = 1001
    PROTOCOL_ERROR = 1002
    NOT_UTF8 = 1007
    TOO_LARGE = 1009
    INTERNAL_ERROR = 1011
    SUPERSEDED = 4000
    TOKEN = 4001  # expired or revoked
    SLOW_CONSUMER = 4008
    RATE_LIMIT = 4029
