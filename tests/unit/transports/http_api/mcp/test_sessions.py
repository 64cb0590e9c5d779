"""Sessions of MCP clients: few at a time, begun by any id, and told only of what they subscribed to."""

from __future__ import annotations

import json

import pytest

from agent_relay.events.record import Record, read_records
from agent_relay.protocol.errors import RelayError
from agent_relay.transports.http.mcp.sessions import MOST_SESSIONS, MOST_SUBSCRIPTIONS, McpSession, McpSessions


def record(type_: str, **fields: object) -> Record:
    event = {"type": type_, "_seq": 1, "_ts": 1, "_sessionId": "s", "_agentName": "Bob", **fields}
    return read_records([json.dumps(event).encode()])[0]


def test_a_session_is_found_again() -> None:
    sessions = McpSessions()
    sessions.find("a").seen = "msg_1"
    assert sessions.find("a").seen == "msg_1"
    sessions.end("a")
    assert sessions.find("a").seen == ""


def test_no_id_and_an_endless_one_are_kept_nowhere() -> None:
    sessions = McpSessions()
    for id_ in (None, "", "x" * 1_000):
        sessions.find(id_).seen = "msg_1"
        assert sessions.find(id_).seen == ""


def test_the_one_that_was_silent_for_longest_is_forgotten() -> None:
    sessions = McpSessions()
    for number in range(MOST_SESSIONS):
        sessions.find(str(number)).seen = "msg_1"
    sessions.find("0")
    sessions.find("one more")
    assert sessions.find("0").seen == "msg_1"
    assert sessions.find("1").seen == ""


def test_it_is_told_of_what_it_subscribed_to() -> None:
    session = McpSession()
    said = record("message.exchanged", to="Alice", thread="t", body="x", **{"from": "Bob"})
    assert session.encode_updates(said, "Alice") == b""
    session.subscribe("relay://thread/t")
    assert json.loads(session.encode_updates(said, "Alice").partition(b"data: ")[2])["params"] == {"uri": "relay://thread/t"}
    session.subscribe("relay://inbox")
    assert session.encode_updates(said, "alice").count(b"event: message") == 2
    assert session.encode_updates(record("message.delivered", to="Alice"), "Alice").count(b"relay://inbox") == 1
    assert session.encode_updates(record("message.delivered", to="Bob"), "Alice") == b""


def test_subscriptions_are_bounded() -> None:
    session = McpSession(subscribed={str(number) for number in range(MOST_SUBSCRIPTIONS)})
    with pytest.raises(RelayError, match="end some"):
        session.subscribe("one more")
