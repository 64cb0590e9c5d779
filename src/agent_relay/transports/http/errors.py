"""One error shape for everything that goes wrong, and the status each code of the wire has over HTTP."""

from __future__ import annotations

import math
from typing import Any

from msgspec import Struct

from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.errors import ErrorCode, RelayError

CONFLICT, FORBIDDEN, UNAUTHORIZED = 409, 403, 401

STATUS: dict[ErrorCode, int] = {
    ErrorCode.INVALID_FORMAT: 422,
    ErrorCode.MISSING_HEADER: 422,
    ErrorCode.INVALID_HEADER: 422,
    ErrorCode.CHECKSUM_MISMATCH: 422,
    ErrorCode.MESSAGE_TOO_LARGE: 413,
    ErrorCode.INVALID_TARGET: 422,
    ErrorCode.AGENT_NOT_FOUND: 404,
    ErrorCode.CHANNEL_NOT_FOUND: 404,
    ErrorCode.PERMISSION_DENIED: CONFLICT,  # of the core's; who may come in at all is the guard's business: 401 and 403
    ErrorCode.ROUTE_NOT_FOUND: 404,
    ErrorCode.AGENT_OFFLINE: CONFLICT,
    ErrorCode.AGENT_BUSY: 503,
    ErrorCode.QUEUE_FULL: 429,
    ErrorCode.DELIVERY_TIMEOUT: 504,
    ErrorCode.REJECTED: CONFLICT,
    ErrorCode.INTERNAL_ERROR: 500,
    ErrorCode.RATE_LIMITED: 429,
    ErrorCode.SERVICE_UNAVAILABLE: 503,
    ErrorCode.VERSION_MISMATCH: 422,
    ErrorCode.FEATURE_UNSUPPORTED: CONFLICT,
    ErrorCode.RESUME_TOO_OLD: CONFLICT,
    ErrorCode.STALE: CONFLICT,
}
_FLAT = {
    400: "invalid_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    413: "message_too_large", 415: "unsupported_media_type", 422: "invalid_request", 429: "rate_limit", 500: "internal_error",
}  # fmt: skip
_FORBIDDEN_REASONS = frozenset({"inside_agent", "caller_lost"})  # it may not, whatever the state of things is
_RETRY_S = 1  # where the error itself does not say when


class Problem(Struct):
    code: str
    category: str
    message: str  # a sentence a person understands
    retryable: bool
    details: dict[str, Any]


class ErrorBody(Struct):
    error: Problem


class FlatError(Struct):
    """On the routes of ARC."""

    error: str
    message: str


class HttpError(RelayError):
    """One whose status is not the usual one of its code, or that needs a header of its own."""

    def __init__(
        self, status: int, code: ErrorCode, message: str = "", headers: tuple[tuple[str, str], ...] = (), **details: Any
    ) -> None:
        super().__init__(code, message, **details)
        self.status = status
        self.headers = headers


def status_of(error: RelayError) -> int:
    if error.details.get("reason") in _FORBIDDEN_REASONS:
        return FORBIDDEN
    return error.status if isinstance(error, HttpError) else STATUS[error.code]


def encode_error(error: RelayError, *, flat: bool = False) -> tuple[int, list[tuple[str, str]], bytes]:
    """Status, headers and body."""
    status = status_of(error)
    code = error.code
    details = {name: _shorten(name, value) for name, value in error.details.items()}
    if flat:
        body = encode_json(FlatError(_FLAT.get(status, "unavailable"), error.message))
    else:
        body = encode_json(ErrorBody(Problem(code.value, code.category.value, error.message, code.retryable, details)))
    headers = list(error.headers) if isinstance(error, HttpError) else []
    if status in {429, 503}:
        seconds = _RETRY_S if error.retry_after_ms is None else max(1, math.ceil(error.retry_after_ms / 1000))
        headers.append(("retry-after", str(seconds)))
    return status, headers, body


def _shorten(name: str, value: Any) -> Any:
    """The wire's fields stand in `payload`; here they are the body itself."""
    return value.removeprefix("payload.") if name == "field" and isinstance(value, str) else value


def wrong_method(allowed: list[str]) -> HttpError:
    sentence = "That address does not support this method."
    return HttpError(405, ErrorCode.ROUTE_NOT_FOUND, sentence, (("allow", ", ".join(allowed)),))


def invalid(field: str, sentence: str) -> RelayError:
    return RelayError(ErrorCode.INVALID_FORMAT, sentence, field=field)


def not_found(sentence: str) -> RelayError:
    return RelayError(ErrorCode.ROUTE_NOT_FOUND, sentence)


def unavailable(sentence: str) -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, sentence, retry_after_ms=1_000)
