"""The published schema takes every event, as it is written, and refuses wrong ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agent_relay.events.codec import build_event, encode_event
from agent_relay.events.drafts import Draft, Exchange, Handover, Lost, Note, encode_drafts
from agent_relay.events.schema import make_event_schema
from agent_relay.events.types import EVENT_TYPES, AgentState
from agent_relay.testing.daemon import DaemonProcess
from tests.support.event_schema import SCHEMA, check_recorded, find_faults, find_recorded_faults
from tests.unit.events.examples import ENVELOPE, EXAMPLES, OPTIONAL


def make(kind: str) -> dict[str, Any]:
    return {"type": kind, **ENVELOPE, **EXAMPLES[kind]}


def test_the_published_file_is_up_to_date() -> None:
    assert json.loads(SCHEMA.read_text("utf-8")) == make_event_schema(), "write it again: make docs"


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(make_event_schema())


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_every_event_is_one(kind: str) -> None:
    whole = make(kind)
    assert find_faults(whole) == []
    least = {name: value for name, value in whole.items() if name not in OPTIONAL.get(kind, set())}
    assert find_faults(least) == []
    assert find_faults(least | {"addedLater": 1}) == []
    assert Draft202012Validator(make_event_schema()).is_valid(whole)


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_an_event_as_it_is_written_is_one(kind: str) -> None:
    assert find_faults(json.loads(encode_event(build_event(kind, EXAMPLES[kind], "")))) == [
        f"{kind} ['{name}']: 0 is less than the minimum of 1" for name in ("_seq", "_ts")
    ]  # it has no number yet; everything else is as it should be


def test_the_lines_of_messages_are_events() -> None:
    at = ENVELOPE["_ts"]
    assert isinstance(at, int)
    drafts: list[Draft] = [
        Exchange(0, at, "ses_1", "Alice", "ses_1", "msg_1", "Alice", "Bob", "message", "hi"),
        Handover(0, at, "ses_2", "Bob", "msg_1", "Bob", 1, 4, "typing", "composer"),
        Lost(at, 3),
        Note(AgentState(state="idle"), "Bob", "ses_2", at),
    ]
    lines, _ = encode_drafts(drafts, 1, at)
    assert len(lines.splitlines()) == len(drafts)
    assert find_recorded_faults(lines.decode().splitlines()) == []


@pytest.mark.parametrize("kind", EVENT_TYPES)
def test_a_field_that_every_event_of_a_type_has_must_be_there(kind: str) -> None:
    whole = make(kind)
    for name in set(whole) - OPTIONAL.get(kind, set()) - {"type"}:
        assert find_faults({key: value for key, value in whole.items() if key != name}), name


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("session.ended", "reason", "bored"),
        ("session.ended", "summary", {"duration": "long"}),
        ("session.started", "agent", {"name": "Alice"}),
        ("session.started", "config", {"environment": ["A"]}),
        ("item.started", "itemType", "dance"),
        ("item.delta", "delta", {"type": "text"}),
        ("item.completed", "duration", "2 s"),
        ("permission.requested", "riskLevel", "huge"),
        ("file.operation", "operation", "rename"),
        ("file.operation", "linesChanged", -1),
        ("command.executed", "exitCode", "0"),
        ("tokens.used", "inputTokens", -1),
        ("message.exchanged", "body", None),
        ("message.delivered", "attempt", 1.5),
        ("agent.state", "state", "asleep"),
        ("stream.gap", "_seq", 0),
    ],
)
def test_wrong_events_are_refused(kind: str, field: str, value: object) -> None:
    assert find_faults(make(kind) | {field: value})
    assert not Draft202012Validator(make_event_schema()).is_valid(make(kind) | {field: value})


def test_unknown_types_are_refused() -> None:
    assert find_faults(make("agent.state") | {"type": "agent.mood"})


def test_a_scene_with_a_wrong_event_is_found(tmp_path: Path) -> None:
    check_recorded(tmp_path)
    (tmp_path / "events.jsonl").write_text(json.dumps(make("agent.state")) + "\nhalf a li")
    check_recorded(tmp_path)
    (tmp_path / "events.jsonl").write_text(json.dumps(make("agent.state") | {"state": "asleep"}) + "\n")
    with pytest.raises(AssertionError, match="asleep"):
        check_recorded(tmp_path)


def test_every_daemon_of_a_test_is_held_against_the_schema(tmp_path: Path) -> None:
    """By tests/conftest.py, before its directory is removed."""
    daemon = DaemonProcess(directory=tmp_path)
    daemon.state_dir.mkdir()
    recorded = daemon.state_dir / "events.jsonl"
    recorded.write_text(json.dumps(make("item.started")) + "\n")
    daemon.remove()
    recorded.write_text(json.dumps(make("item.started") | {"itemType": "dance"}) + "\n")
    with pytest.raises(AssertionError, match="dance"):
        daemon.remove()
