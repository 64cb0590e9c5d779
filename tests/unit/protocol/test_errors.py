from __future__ import annotations

import pytest

from agent_relay.protocol.errors import Category, ErrorCode, RelayError, error_payload, parse_error

# The table of the contract, word for word: code, category, retryable, nearest code of protocol 1.
TABLE = [
    ("INVALID_FORMAT", "validation", False, "BAD_REQUEST"),
    ("MISSING_HEADER", "validation", False, "BAD_REQUEST"),
    ("INVALID_HEADER", "validation", False, "BAD_REQUEST"),
    ("CHECKSUM_MISMATCH", "validation", False, "BAD_REQUEST"),
    ("MESSAGE_TOO_LARGE", "validation", False, "BAD_REQUEST"),
    ("INVALID_TARGET", "validation", False, "BAD_REQUEST"),
    ("AGENT_NOT_FOUND", "routing", False, "NOT_FOUND"),
    ("CHANNEL_NOT_FOUND", "routing", False, "NOT_FOUND"),
    ("PERMISSION_DENIED", "routing", False, "UNAUTHORIZED"),
    ("ROUTE_NOT_FOUND", "routing", False, "NOT_FOUND"),
    ("AGENT_OFFLINE", "delivery", True, None),
    ("AGENT_BUSY", "delivery", True, None),
    ("QUEUE_FULL", "delivery", True, None),
    ("DELIVERY_TIMEOUT", "delivery", True, None),
    ("REJECTED", "delivery", False, None),
    ("INTERNAL_ERROR", "system", True, "INTERNAL"),
    ("RATE_LIMITED", "system", True, None),
    ("SERVICE_UNAVAILABLE", "system", True, "INTERNAL"),
    ("VERSION_MISMATCH", "protocol", False, "BAD_REQUEST"),
    ("FEATURE_UNSUPPORTED", "protocol", False, "BAD_REQUEST"),
    ("RESUME_TOO_OLD", "protocol", False, "RESUME_TOO_OLD"),
    ("STALE", "protocol", False, "RESUME_TOO_OLD"),
]


@pytest.mark.parametrize(("code", "category", "retryable", "v1_code"), TABLE)
def test_the_table_of_the_contract(code: str, category: str, retryable: bool, v1_code: str | None) -> None:
    found = ErrorCode(code)
    assert (found.category, found.retryable, found.v1_code) == (category, retryable, v1_code)
    assert found.meaning.endswith(".")


def test_there_are_no_other_codes() -> None:
    assert {code.value for code in ErrorCode} == {row[0] for row in TABLE}
    assert {category.value for category in Category} == {row[1] for row in TABLE}


def test_what_the_peer_is_told() -> None:
    error = RelayError(ErrorCode.QUEUE_FULL, "Bob's queue is full.", retry_after_ms=250, to="Bob")
    assert error_payload(error) == {
        "code": "QUEUE_FULL",
        "category": "delivery",
        "message": "Bob's queue is full.",
        "retryable": True,
        "retry_after_ms": 250,
        "details": {"to": "Bob"},
    }


def test_an_error_without_more_says_no_more() -> None:
    assert error_payload(RelayError(ErrorCode.REJECTED)) == {
        "code": "REJECTED",
        "category": "delivery",
        "message": ErrorCode.REJECTED.meaning,
        "retryable": False,
    }


@pytest.mark.parametrize(("code", "v1_code"), [(row[0], row[3]) for row in TABLE])
def test_a_client_of_protocol_1_is_told_the_old_code_too(code: str, v1_code: str | None) -> None:
    error = RelayError(ErrorCode(code), "x", field="y")
    old, new = error_payload(error, version=1), error_payload(error, version=2)
    assert old["code"] == new["code"] == code
    assert old["details"] == {"field": "y"} | ({"v1_code": v1_code} if v1_code else {})
    assert new["details"] == {"field": "y"}
    assert error.details == {"field": "y"}  # the error itself is as it was


@pytest.mark.parametrize("code", list(ErrorCode))
def test_what_is_told_is_understood(code: ErrorCode) -> None:
    told = error_payload(RelayError(code, "A sentence.", retry_after_ms=7, name="Bob"))
    heard = parse_error(told["code"], told["message"], retry_after_ms=told["retry_after_ms"], details=told["details"])
    assert (heard.code, heard.message, heard.retry_after_ms, heard.details) == (code, "A sentence.", 7, {"name": "Bob"})


@pytest.mark.parametrize("code", ["OF_A_LATER_VERSION", "", None, 5, ["QUEUE_FULL"], "queue_full"])
def test_an_unknown_code_counts_as_internal(code: object) -> None:
    error = parse_error(code, None, details="not an object")
    assert error.code is ErrorCode.INTERNAL_ERROR
    assert error.message == ErrorCode.INTERNAL_ERROR.meaning
    assert error.details == {}


def test_it_reads_like_an_exception() -> None:
    error = RelayError(ErrorCode.STALE, "Gone.", fatal=True)
    assert str(error) == "Gone."
    assert repr(error) == "RelayError(STALE, 'Gone.')"
    assert error.fatal
