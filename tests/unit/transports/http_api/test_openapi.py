"""Schemas for generators of clients: what is always there is required, what need not be is not, and nothing is left vague."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from agent_relay.events.types import PermissionRequested
from agent_relay.transports.http.openapi import describe_types


class _Answer(Struct):
    name: str
    state: Literal["on", "off"] = "off"
    more: dict[str, Any] = {}
    events: list[PermissionRequested] = []
    expires_at: int | UnsetType = UNSET


class _Body(Struct):
    to: str
    kind: str = "message"
    thread: str | None = None


SCHEMAS, COMPONENTS = describe_types([_Answer, dict[str, Any]], [_Body])


def test_an_answer_has_all_of_its_fields_but_those_that_may_be_unset() -> None:
    assert COMPONENTS["_Answer"]["properties"]["expires_at"] == {"type": "integer"}
    assert COMPONENTS["_Answer"]["required"] == ["name", "state", "more", "events"]
    assert "default" not in COMPONENTS["_Answer"]["properties"]["state"]


def test_a_body_needs_what_has_no_default_and_the_others_say_what_they_are_without() -> None:
    body = COMPONENTS["_Body"]
    assert body["required"] == ["to"]
    assert body["properties"]["kind"] == {"type": "string", "description": 'Without it: "message".'}
    assert body["properties"]["thread"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


def test_an_event_has_its_envelope_and_not_what_says_nothing() -> None:
    required = set(COMPONENTS["PermissionRequested"]["required"])
    assert {"type", "_seq", "_ts", "_sessionId", "_agentName", "requestId"} <= required
    assert not required & {"command", "filePath"}


def test_objects_may_hold_anything_and_words_are_text() -> None:
    properties = COMPONENTS["_Answer"]["properties"]
    assert properties["more"] == {"type": "object", "additionalProperties": True}
    assert properties["state"] == {"enum": ["off", "on"], "type": "string"}
    assert SCHEMAS[id(_Answer)] == {"$ref": "#/components/schemas/_Answer"}


def test_places_of_a_list_are_described_as_one() -> None:
    schemas, _ = describe_types([list[tuple[int, int, str]]], [])
    (schema,) = schemas.values()
    assert schema["items"] == {
        "type": "array", "minItems": 3, "maxItems": 3, "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    }  # fmt: skip


def test_a_type_that_is_read_and_written_need_not_be_whole() -> None:
    _, components = describe_types([_Body], [_Body])
    assert components["_Body"]["required"] == ["to"]
