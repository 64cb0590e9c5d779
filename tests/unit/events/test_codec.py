"""Events come back as they were, in the words of the contract; what is wrong is named, what is unknown is not minded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.events.codec import BadEvent, build_event, decode_event, encode_event
from agent_relay.events.types import EVENT_TYPES, MessageExchanged
from agent_relay.protocol.errors import ErrorCode, RelayError
from tests.unit.events.examples import ENVELOPE, EXAMPLES, OPTIONAL


@pytest.mark.parametrize("kind", EXAMPLES)
def test_every_field_survives_under_its_name(kind: str) -> None:
    said = {"type": kind, **ENVELOPE, **EXAMPLES[kind]}
    event = decode_event(json.dumps(said).encode())
    assert type(event) is EVENT_TYPES[kind]
    assert json.loads(encode_event(event)) == said


@pytest.mark.parametrize("kind", EXAMPLES)
def test_what_is_optional_may_be_left_out_and_then_is(kind: str) -> None:
    said = {name: value for name, value in EXAMPLES[kind].items() if name not in OPTIONAL.get(kind, set())}
    assert json.loads(encode_event(decode_event(json.dumps({"type": kind, **ENVELOPE, **said}).encode()))) == {
        "type": kind, **ENVELOPE, **said,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in EXAMPLES for name in EXAMPLES[kind] if name not in OPTIONAL.get(kind, set())]
)
def test_what_is_required_is_missed_and_named(kind: str, name: str) -> None:
    said = {key: value for key, value in EXAMPLES[kind].items() if key != name}
    with pytest.raises(RelayError) as refusal:
        build_event(kind, said, "payload.fields")
    assert refusal.value.code is ErrorCode.INVALID_FORMAT
    assert refusal.value.details["field"] == f"payload.fields.{name}"


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in EXAMPLES for name in EXAMPLES[kind] if name != "result"])
def test_a_wrong_value_is_named(kind: str, name: str) -> None:
    wrong: Any = {"no": object} if not isinstance(EXAMPLES[kind][name], dict) else "text"
    with pytest.raises(RelayError) as refusal:
        build_event(kind, EXAMPLES[kind] | {name: wrong}, "payload.fields")
    assert refusal.value.details["field"] == f"payload.fields.{name}"


def test_a_wrong_word_deep_inside_is_named_too() -> None:
    with pytest.raises(RelayError) as refusal:
        build_event("item.delta", EXAMPLES["item.delta"] | {"delta": {"type": "smoke", "content": ""}}, "payload.fields")
    assert refusal.value.details["field"] == "payload.fields.delta.type"


def test_unknown_fields_are_a_later_versions() -> None:
    said = {"type": "stream.gap", **ENVELOPE, "oldest": 7, "colour": "red"}
    assert decode_event(json.dumps(said).encode()).seq == 9


def test_nobody_gives_themselves_a_number_or_a_name() -> None:
    event = build_event("stream.gap", {"oldest": 1, "_seq": 99, "_agentName": "Mallory", "type": "item.delta"}, "f")
    assert (event.seq, event.by_agent) == (0, "")


def test_an_unknown_type_is_told_by_name() -> None:
    with pytest.raises(RelayError) as refusal:
        build_event("item.exploded", {}, "f")
    assert refusal.value.code is ErrorCode.FEATURE_UNSUPPORTED
    assert refusal.value.details["type"] == "item.exploded"


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b'{"type":"nothing"}', b'{"oldest":1}', b"\xff", b"[" * 100_000])
def test_what_is_no_event_is_said_to_be_none(line: bytes) -> None:
    with pytest.raises(BadEvent):
        decode_event(line)


def test_an_envelope_stands_in_front_of_every_event_also_where_nobody_is_named() -> None:
    event = MessageExchanged(seq=1, ts=2, session_id="s", message_id="m", from_='A"', to="", body="a\nb", kind="message")
    line = encode_event(event)
    assert line.startswith(b'{"type":"message.exchanged","_seq":1,"_ts":2,"_sessionId":"","_agentName":""')
    assert b"\n" not in line
    assert decode_event(line) == event
