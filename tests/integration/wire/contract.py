"""What the contract says about every frame the daemon sends, checked on each one that arrives in these tests.

The tables are written out again on purpose: a code that loses its category in the program is noticed here.
"""

from __future__ import annotations

import re
import time
from typing import Any

from agent_relay.testing.raw_client import Frame

ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}", re.IGNORECASE)

_CATEGORIES = {
    "validation": (
        "INVALID_FORMAT",
        "MISSING_HEADER",
        "INVALID_HEADER",
        "CHECKSUM_MISMATCH",
        "MESSAGE_TOO_LARGE",
        "INVALID_TARGET",
    ),
    "routing": ("AGENT_NOT_FOUND", "CHANNEL_NOT_FOUND", "PERMISSION_DENIED", "ROUTE_NOT_FOUND"),
    "delivery": ("AGENT_OFFLINE", "AGENT_BUSY", "QUEUE_FULL", "DELIVERY_TIMEOUT", "REJECTED"),
    "system": ("INTERNAL_ERROR", "RATE_LIMITED", "SERVICE_UNAVAILABLE"),
    "protocol": ("VERSION_MISMATCH", "FEATURE_UNSUPPORTED", "RESUME_TOO_OLD", "STALE"),
}
CATEGORY = {code: category for category, codes in _CATEGORIES.items() for code in codes}
RETRYABLE = {"AGENT_OFFLINE", "AGENT_BUSY", "QUEUE_FULL", "DELIVERY_TIMEOUT", *_CATEGORIES["system"]}
V1_CODES = {"BAD_REQUEST", "UNAUTHORIZED", "NOT_FOUND", "INTERNAL", "RESUME_TOO_OLD"}

_DAY_MS = 86_400_000


def is_id(text: object, prefix: str) -> bool:
    return isinstance(text, str) and text.startswith(prefix) and ULID.fullmatch(text[len(prefix) :]) is not None


class FrameCheck:
    """One for each connection: it knows which ids it has seen."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def __call__(self, frame: Frame) -> None:
        _check_envelope(frame)
        self._check_unique(frame)
        match frame["type"]:
            case "ERROR" | "NACK":
                check_error(frame)
            case "ACK":
                assert isinstance(frame["payload"].get("ack_id"), str), frame
                assert isinstance(frame["payload"].get("stage"), str), frame
            case "DELIVER":
                _check_deliver(frame)
            case "BUSY":
                _check_busy(frame["payload"])
            case _:
                pass

    def _check_unique(self, frame: Frame) -> None:
        """Only a DELIVER may come again under the same id, and then it is the same message."""
        meaning = f"DELIVER of {frame['delivery']['message_id']}" if frame["type"] == "DELIVER" else frame["type"]
        before = self._ids.setdefault(frame["id"], meaning)
        assert before == meaning, f"id {frame['id']} was {before} and is {meaning}"


def _check_envelope(frame: Frame) -> None:
    assert frame.get("v") in (1, 2), frame
    assert not isinstance(frame["v"], bool), frame
    assert isinstance(frame.get("id"), str), frame
    assert 1 <= len(frame["id"]) <= 128, frame
    assert isinstance(frame.get("ts"), int | float), frame
    assert abs(frame["ts"] - time.time() * 1000) < _DAY_MS, f"ts is not milliseconds of today: {frame['ts']}"


def check_error(frame: Frame) -> None:
    payload = frame["payload"]
    code = payload.get("code")
    assert code in CATEGORY, f"{code!r} is not a code of the contract: {frame}"
    assert payload.get("category") == CATEGORY[code], frame
    assert payload.get("retryable") is (code in RETRYABLE), frame
    message = payload.get("message")
    assert isinstance(message, str), frame
    assert len(message.split()) >= 2, f"a message is a sentence a person understands: {frame}"
    assert isinstance(payload.get("details", {}), dict), frame
    if frame["type"] == "NACK":
        assert isinstance(payload.get("nack_id"), str), frame
    else:
        assert isinstance(payload.get("fatal", False), bool), frame


def _check_deliver(frame: Frame) -> None:
    delivery: dict[str, Any] = frame["delivery"]
    assert frame["id"].startswith("d_"), frame
    assert isinstance(frame.get("from"), str), frame
    assert isinstance(frame.get("to"), str), frame
    assert is_id(delivery.get("message_id"), "msg_"), frame
    assert is_id(delivery.get("session_id"), "ses_"), frame
    for name, least in (("seq", 1), ("attempt", 1), ("queued_ms", 0)):
        value = delivery.get(name)
        assert isinstance(value, int), frame
        assert value >= least, frame


def _check_busy(payload: dict[str, Any]) -> None:
    assert isinstance(payload.get("to"), str), payload
    for name in ("queue_depth", "queue_capacity", "retry_after_ms", "estimated_delay_ms"):
        value = payload.get(name)
        assert isinstance(value, int), payload
        assert value >= 0, payload
    assert isinstance(payload.get("accepting"), bool), payload
