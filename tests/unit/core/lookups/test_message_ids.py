"""One message by what people say of it."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.core.lookups import message_ids
from agent_relay.protocol.short_ids import AMBIGUOUS, long_id, short_id
from tests.support.harness import HarnessClient, RelayHarness


@pytest.fixture
def alice(relay: RelayHarness) -> HarnessClient:
    relay.connect("Bob")
    return relay.connect("Alice")


def send(alice: HarnessClient, body: str = "x", **meta: Any) -> str:
    alice.send("Bob", body, meta=meta or None)
    return str(alice.stored()[0]["message_id"])


def find(alice: HarnessClient, wanted: str) -> dict[str, Any]:
    alice.say("HISTORY", {"view": "message", "id": wanted})
    found: dict[str, Any] = alice.take("HISTORY_RESULT", "ERROR")[0]["payload"]
    return found


def test_by_its_id_its_short_one_and_more_digits_of_that(alice: HarnessClient) -> None:
    ids = [send(alice) for _ in range(5)]
    for wanted in (ids[2], short_id(ids[2]), f"[{short_id(ids[2])}]", long_id(ids[2])[:12].upper()):
        assert find(alice, wanted)["messages"][0]["message_id"] == ids[2]


def test_one_that_may_be_two_is_ambiguous(alice: HarnessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [send(alice) for _ in range(2)]
    monkeypatch.setattr(message_ids, "stands_for", lambda short, id_: True)
    error = find(alice, "3f9c2a11")
    assert error["code"] == "INVALID_FORMAT"
    assert error["message"].startswith(AMBIGUOUS)
    assert sorted(error["details"]["ids"]) == sorted(ids)


def test_all_pages_are_searched_and_no_more(alice: HarnessClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_ids, "_PAGE", 2)
    ids = [send(alice) for _ in range(7)]
    assert find(alice, short_id(ids[0]))["messages"][0]["message_id"] == ids[0]
    monkeypatch.setattr(message_ids, "SEARCHED_MESSAGES", 4)
    assert find(alice, short_id(ids[0]))["code"] == "ROUTE_NOT_FOUND"
    assert find(alice, short_id(ids[-1]))["messages"][0]["message_id"] == ids[-1]


@pytest.mark.parametrize(("wanted", "code"), [
    ("", "INVALID_FORMAT"), ("nonsense", "INVALID_FORMAT"), ("3f9c2a1", "INVALID_FORMAT"), ("3f9c2a11", "ROUTE_NOT_FOUND"),
    ("msg_01KA2V8Z5T7Q4M9C3XKJ0000A1", "ROUTE_NOT_FOUND"),
])  # fmt: skip
def test_what_there_is_not(alice: HarnessClient, wanted: str, code: str) -> None:
    assert find(alice, wanted)["code"] == code


def test_a_dead_letter_is_sent_again_by_its_short_id(relay: RelayHarness, alice: HarnessClient) -> None:
    id_ = send(alice, ttl_ms=1_000)
    relay.advance(2_000)
    alice.take()
    alice.say("CONTROL", {"command": "retry_dead_letter", "id": short_id(id_)})
    assert alice.take("ACK")[0]["payload"]["stage"] == "requeued"


def test_a_refused_message_is_rejected_and_not_delivered(relay: RelayHarness) -> None:
    bob, alice = relay.connect("Bob"), relay.connect("Alice")
    alice.send("Bob", "one")
    alice.send("Bob", "two")
    first, second = bob.take("DELIVER")
    bob.nack(first, "REJECTED")
    bob.ack(second)
    alice.say("HISTORY", {})
    found = alice.payload("HISTORY_RESULT")["messages"]
    assert [message["recipients"][0]["status"] for message in found] == ["delivered", "rejected"]
    assert find(alice, found[1]["message_id"])["messages"][0]["recipients"][0]["status"] == "rejected"
