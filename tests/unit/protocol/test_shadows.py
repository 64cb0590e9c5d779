"""The owner's words on shadows, and the mark in a stored message."""

from __future__ import annotations

import msgspec
import pytest

from agent_relay.protocol.encode import encode_tail, keep_shadows, read_shadows, read_tail
from agent_relay.protocol.shadows import Shadowing, describe_shadowings, describe_traffic, parse_shadowing, parse_shadows


def test_the_setting_is_pairs() -> None:
    found = parse_shadows("Auditor:Alice, Auditor:Worker*:incoming Log:*:outgoing")
    assert found == (
        Shadowing("Auditor", "Alice"), Shadowing("Auditor", "Worker*", "incoming"), Shadowing("Log", "*", "outgoing"),
    )  # fmt: skip
    assert parse_shadows("") == ()
    assert describe_shadowings(found[:2]) == ["Alice", "Worker* (incoming)"]


@pytest.mark.parametrize(
    "text", ["Auditor", "Auditor:", ":Alice", "Auditor:Alice:up", "A*:Bob", "Auditor:#dev", "Auditor:a b", "x:y:"]
)
def test_a_mistake_names_the_form(text: str) -> None:
    with pytest.raises(ValueError, match="pairs such as Auditor:Alice"):
        parse_shadows(text)


def test_names_are_compared_without_regard_to_case() -> None:
    assert parse_shadowing("Auditor", "worker*").is_of("Worker1")
    assert not parse_shadowing("Auditor", "worker").is_of("Worker1")


def test_the_wire_checks_them_too() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"shadow": "A*", "of": "Bob"}', type=Shadowing)


def test_traffic_in_words() -> None:
    assert describe_traffic("both", "you") == "you send or receive"
    assert describe_traffic("incoming", "Alice") == "Alice receives"


@pytest.mark.parametrize("topic", ["", "code.review"])
def test_the_mark_is_read_back_and_can_be_taken_out(topic: str) -> None:
    plain = encode_tail("Alice", topic, b'{"body":"x"}', b'{"ttl_ms":5}')
    marked = encode_tail("Alice", topic, b'{"body":"x"}', b'{"ttl_ms":5}', ["Auditor", "Log"])
    assert read_shadows(marked) == ("Auditor", "Log")
    assert read_tail(marked) == read_tail(plain) | {"shadows": ["Auditor", "Log"]}
    assert read_shadows(keep_shadows(marked, ["Log"])) == ("Log",)
    assert keep_shadows(marked, ()) == plain == keep_shadows(plain, ["Log"])


def test_a_sender_cannot_forge_it() -> None:
    """Neither in its payload nor in a topic: the mark stands right behind the sender, where only the daemon writes."""
    for payload in (
        b'{"body":"\\",\\"shadows\\":[\\"Bob\\"]"}',
        b'{"shadows":["Bob"],"body":""}',
        b'{"from":"x","shadows":["Bob"]}',
    ):
        assert read_shadows(encode_tail("Alice", "t", payload, b"")) == ()
