"""Frames of clients: nonsense, frames nobody offers yet, and errors that stay short."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.protocol.states import CloseReason
from tests.support.harness import HarnessClient, RelayHarness

NONSENSE = [b"", b"\xff\xfe", b"{", b"[]", b"null", b"12"]


@pytest.mark.parametrize("frame", NONSENSE)
def test_nonsense_is_an_error_and_the_twentieth_in_a_row_the_end(alice: HarnessClient, frame: bytes) -> None:
    for _ in range(19):
        alice.say_frames(frame)
    errors = alice.take("ERROR")
    assert [(e["payload"]["code"], e["payload"]["fatal"]) for e in errors] == [("INVALID_FORMAT", False)] * 19
    alice.say_frames(frame, alice.frame("PING", {"nonce": 1}))
    assert alice.payload("ERROR")["fatal"] is True
    assert not alice.frames
    assert alice.closed is CloseReason.TOO_MANY_BAD_FRAMES


def test_a_sound_frame_forgives_the_nonsense_before_it(alice: HarnessClient) -> None:
    for _ in range(5):
        alice.say_frames(*[b"{"] * 19)
        alice.say("PING", {"nonce": 1})
    assert alice.closed is None
    assert len(alice.take("PONG")) == 5


@pytest.mark.parametrize(("field", "value"), [("v", 3), ("v", "2"), ("ts", None), ("id", ""), ("id", "x" * 129), ("payload", [])])
def test_a_mistyped_envelope_is_named(alice: HarnessClient, field: str, value: object) -> None:
    alice.say_frames(alice.message("Alice") | {field: value})
    error = alice.payload("ERROR")
    assert (error["code"], error["details"]["field"], error["fatal"]) == ("INVALID_FORMAT", field, False)
    assert not alice.frames


def test_an_unknown_type_is_named_and_survived(alice: HarnessClient) -> None:
    request = alice.say("TELEPORT", {})
    error = alice.payload("ERROR")
    assert (error["code"], error["details"], error["reply_to"]) == ("FEATURE_UNSUPPORTED", {"type": "TELEPORT"}, request)


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("SPAWN", {"name": "X", "cli": "claude"}),
        ("RELEASE", {"name": "X"}),
        ("AGENT_EVENT", {"type": "x"}),
        ("CONTROL", {"command": "dance"}),
    ],
)
def test_what_is_not_offered_is_said_to_be_so(alice: HarnessClient, kind: str, payload: dict[str, object]) -> None:
    alice.say(kind, payload)
    error = alice.payload("ERROR")
    assert (error["code"], error["fatal"]) == ("FEATURE_UNSUPPORTED", False)


@pytest.mark.parametrize("nonce", [1, "x", None, {"deep": [1]}])
def test_a_ping_comes_back_with_its_nonce(alice: HarnessClient, nonce: object) -> None:
    alice.say("PING", {"nonce": nonce})
    assert alice.payload("PONG")["nonce"] == nonce


LONG = "\0" * 200_000  # six times as long where it is shown


@pytest.mark.parametrize(
    ("kind", "payload"),
    [
        ("CONTROL", {"command": LONG, "agent": "Alice"}),
        ("CONTROL", {"command": "pause", "agent": LONG}),
        ("CONTROL", {"command": "retry_dead_letter", "id": LONG}),
        ("HISTORY", {"view": LONG}),
        ("HISTORY", {"view": "message", "id": LONG}),
        ("HISTORY", {"cursor": f"msg_{LONG}"}),
        ("HISTORY", {"view": "events", "types": [LONG]}),
        ("HISTORY", {"view": "events", "cursor": LONG}),
        ("LIST_AGENTS", {"cursor": LONG}),
        ("SUBSCRIBE", {"topic": "$events", "types": [LONG]}),
        ("SUBSCRIBE", {"topic": LONG}),
        ("CHANNEL_JOIN", {"channel": LONG}),
        ("CHANNEL_LEAVE", {"channel": LONG}),
        ("SPAWN", {"name": LONG, "cli": "claude"}),
        ("SPAWN", {"name": "Bob", "cli": LONG}),
        ("RELEASE", {"name": LONG}),
        ("AGENT_EVENT", {"type": LONG}),
        ("AGENT_EVENT", {"type": "message.read", "fields": {"messageId": LONG}}),
        ("SEND", {"body": "x", "kind": LONG}),
        ("RESUME", {"agent": LONG, "resume_token": "x"}),
    ],
)
def test_what_was_said_wrong_is_not_said_back_at_length(relay: RelayHarness, kind: str, payload: dict[str, Any]) -> None:
    client = relay.open() if kind == "RESUME" else relay.connect("Alice")
    client.take()
    client.say(kind, payload, **({"to": "Bob"} if kind == "SEND" else {}))
    assert client.frames
    assert all(len(json.dumps(frame)) < 4_096 for frame in client.take())
