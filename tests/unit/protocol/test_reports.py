"""Reports: each type with its fields, and evidence on its way into a trail and out of it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import AgentEventPayload
from agent_relay.protocol.reports import (
    InputReport,
    ReadReport,
    ReceivedReport,
    Report,
    StateReport,
    UnusedDoor,
    describe_seen,
    encode_seen,
    read_report,
    read_seen,
)


@pytest.mark.parametrize(
    ("kind", "fields", "report"),
    [
        ("agent.state", {"state": "idle"}, StateReport("idle")),
        (
            "agent.state",
            {
                "state": "waiting",
                "waitingFor": "a permission",
                "door": "typing",
                "doorNote": "no socket",
                "unusedDoors": [{"door": "an inbox", "reason": "It has no socket.", "new": 1}],
                "paused": True,
                "new": 1,
            },
            StateReport(
                "waiting",
                "a permission",
                "typing",
                "no socket",
                True,
                unused_doors=(UnusedDoor("an inbox", "It has no socket."),),
            ),
        ),
        ("message.received", {"messageId": "msg_1"}, ReceivedReport("msg_1")),
        ("message.read", {"messageId": "msg_1", "evidence": "transcript"}, ReadReport("msg_1", "transcript")),
        ("agent.input", {}, InputReport()),
    ],
)
def test_a_report_is_read(kind: str, fields: dict[str, Any], report: Report) -> None:
    assert read_report(AgentEventPayload(kind, fields)) == report


@pytest.mark.parametrize(
    ("kind", "fields", "field"),
    [
        ("agent.state", {}, "payload.fields.state"),
        ("agent.state", {"state": "asleep"}, "payload.fields.state"),
        ("agent.state", {"state": "idle", "waitingFor": "x" * 201}, "payload.fields.waitingFor"),
        ("agent.state", {"state": "idle", "door": "x" * 65}, "payload.fields.door"),
        ("agent.state", {"state": "idle", "doorNote": 1}, "payload.fields.doorNote"),
        ("agent.state", {"state": "idle", "unusedDoors": [{"door": "x"}]}, "payload.fields.unusedDoors.reason"),
        ("agent.state", {"state": "idle", "unusedDoors": [{"door": "x", "reason": "y"}] * 9}, "payload.fields.unusedDoors"),
        ("agent.state", {"state": "idle", "paused": "yes"}, "payload.fields.paused"),
        ("message.received", {}, "payload.fields.messageId"),
        ("message.received", {"messageId": ""}, "payload.fields.messageId"),
        ("message.read", {"messageId": 1}, "payload.fields.messageId"),
        ("message.read", {"messageId": "msg_1", "evidence": "x" * 201}, "payload.fields.evidence"),
    ],
)
def test_a_wrong_field_is_named(kind: str, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(RelayError) as caught:
        read_report(AgentEventPayload(kind, fields))
    assert (caught.value.code, caught.value.details) == (ErrorCode.INVALID_FORMAT, {"field": field})


def test_another_type_is_not_taken() -> None:
    with pytest.raises(RelayError) as caught:
        read_report(AgentEventPayload("x" * 200))
    assert (caught.value.code, caught.value.details) == (ErrorCode.FEATURE_UNSUPPORTED, {"type": "x" * 128})


@given(st.none() | st.text(), st.none() | st.text())
def test_evidence_comes_back_as_it_was(door: str | None, evidence: str | None) -> None:
    said = {name: text for name, text in (("door", door), ("evidence", evidence)) if text is not None}
    assert read_seen(encode_seen(door, evidence)) == said


def test_what_is_no_evidence_is_none() -> None:
    for detail in ("", "attempt 2", "[1]", '{"door": 1}'):
        assert read_seen(detail) == {}


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ({"door": "typing", "evidence": "composer"}, "door typing, seen: composer"),
        ({"door": "typing"}, "door typing"),
        ({"evidence": "transcript"}, "seen: transcript"),
        ({}, ""),
    ],
)
def test_evidence_for_people(seen: dict[str, str], text: str) -> None:
    assert describe_seen(seen) == text
