"""An outline: each event in its place, with the one word that matters, and nothing of what was said."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from agent_relay.events.outline import NONE, Outline, OutlineMaker
from agent_relay.events.record import Record, read_record
from tests.unit.events.examples import ENVELOPE, EXAMPLES


def record(type_: str, fields: dict[str, Any], by: str = "Alice") -> Record:
    found = read_record(json.dumps({"type": type_, **ENVELOPE, "_agentName": by, **fields}).encode())
    assert found is not None
    return found


def outline(*records: Record) -> Outline:
    made = OutlineMaker()
    made.add(records)
    assert len(made) == len(records)
    return made.finish(None)


def test_words_are_said_once() -> None:
    found = outline(
        record("message.exchanged", {"from": "Alice", "to": "Bob", "kind": "message", "body": "hello"}),
        record("agent.state", {"state": "working"}, "Bob"),
        record("agent.state", {"state": "idle"}, "Bob"),
    )
    assert found.agents == ["Alice", "Bob"]
    assert found.types == ["message.exchanged", "agent.state"]
    assert found.notes == ["message", "working", "idle"]
    assert [entry[2:] for entry in found.events] == [(0, 0, 0, 0, 1), (1, 1, 1, 0, NONE), (1, 1, 2, 0, NONE)]
    assert {entry[:2] for entry in found.events} == {(9, 1_800_000_000_000)}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_type_fits_and_nothing_that_was_said_is_in_it(kind: str) -> None:
    said = {"body": "a secret", "description": "a secret"} | ({"reason": "a secret"} if kind == "permission.resolved" else {})
    found = outline(record(kind, EXAMPLES[kind] | said))
    assert found.types == [kind]
    assert b"secret" not in msgspec.json.encode(found)


@pytest.mark.parametrize(
    ("kind", "fields", "note", "duration"),
    [
        ("item.completed", {"duration": 1200}, "", 1200), ("item.started", {"itemType": "tool_call"}, "tool_call", 0),
        ("permission.requested", {"riskLevel": "high"}, "high", 0),
        ("permission.resolved", {"resolution": "denied", "reason": "no"}, "denied", 0),
        ("message.delivered", {"latencyMs": 3, "to": "Bob"}, "", 3), ("session.ended", {"reason": "crashed"}, "crashed", 0),
        ("file.operation", {"operation": "edit"}, "edit", 0), ("agent.state", {"state": {"strange": 1}}, "", 0),
    ],
)  # fmt: skip
def test_the_word_and_the_duration_of_an_event(kind: str, fields: dict[str, Any], note: str, duration: int) -> None:
    found = outline(record(kind, fields))
    assert (found.notes, found.events[0][5]) == ([note] if note else [], duration)
