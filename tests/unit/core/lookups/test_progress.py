"""How far a message has come, in one word."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.lookups.progress import add_progress
from agent_relay.protocol.reports import encode_seen
from tests.support.store_driver import make_trail

HANDED = make_trail(1, 1, 20, "handed", detail=encode_seen("typing", "composer"))
INJECTED = make_trail(1, 1, 21, "injected", detail=encode_seen("typing", "busy"))
READ = make_trail(1, 1, 30, "read", detail=encode_seen(None, "transcript"))
RECEIVED = make_trail(1, 1, 10, "received")


def progress(status: str, *steps: Any) -> dict[str, Any]:
    recipient = {"name": "bob", "seq": 1, "status": status}
    add_progress([recipient], steps)
    return {name: value for name, value in recipient.items() if name not in {"name", "seq", "status"}}


@pytest.mark.parametrize(
    ("status", "steps", "stage", "at"),
    [
        ("queued", (), "queued", None),
        ("sent", (), "sent", None),
        ("sent", (RECEIVED,), "received", 10),
        ("delivered", (), "delivered", None),
        ("sent", (RECEIVED, HANDED), "handed", 20),
        ("delivered", (RECEIVED, HANDED), "delivered", 20),
        ("delivered", (RECEIVED, HANDED, INJECTED), "delivered", 21),
        ("delivered", (RECEIVED, INJECTED, READ), "read", 30),
        ("delivered", (READ, INJECTED), "read", 30),
        ("rejected", (RECEIVED, HANDED), "rejected", 20),
        ("dead", (RECEIVED,), "dead", 10),
        ("delivered", (make_trail(1, 1, 5, "resent"),), "delivered", None),
    ],
)
def test_the_furthest_step_counts(status: str, steps: tuple[Any, ...], stage: str, at: int | None) -> None:
    found = progress(status, *steps)
    assert (found["stage"], found["stage_at"]) == (stage, at)


def test_the_door_is_still_known_when_it_was_read() -> None:
    assert progress("delivered", INJECTED, READ) == {"stage": "read", "stage_at": 30, "door": "typing", "evidence": "transcript"}


def test_each_recipient_has_its_own() -> None:
    recipients: list[dict[str, Any]] = [{"name": name, "status": "sent"} for name in ("Bob", "Carol")]
    add_progress(recipients, [RECEIVED])
    assert [recipient["stage"] for recipient in recipients] == ["received", "sent"]
