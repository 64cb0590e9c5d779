"""Shadows get copies of what others send and receive, and count for nothing: no receipt, no answer, no refusal is theirs."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.ports.callers import Caller
from agent_relay.protocol.shadows import parse_shadows
from tests.support.harness import HarnessClient, RelayHarness

KNOWS_COPIES = {"shadows": True}


def watch(setting: str = "Auditor:Alice", **limits: Any) -> tuple[RelayHarness, HarnessClient, HarnessClient, HarnessClient]:
    """Alice, Bob and their Auditor, after they were told."""
    relay = RelayHarness(shadows=parse_shadows(setting), **limits)
    clients = [relay.connect(name, capabilities=KNOWS_COPIES) for name in ("Alice", "Bob", "Auditor")]
    for client in clients:
        for notice in client.take("DELIVER"):
            client.ack(notice)
    relay.advance(1_000)  # the acknowledgements are on disk
    alice, bob, auditor = clients
    return relay, alice, bob, auditor


def look_up(relay: RelayHarness, message_id: str) -> dict[str, Any]:
    person = relay.connect("Person", mode="observer")
    person.say("HISTORY", {"view": "message", "id": message_id})
    shown: dict[str, Any] = person.payload("HISTORY_RESULT")
    person.drop()
    return shown


def test_both_directions_are_copied_and_marked() -> None:
    _, alice, bob, auditor = watch()
    alice.send("Bob", "out")
    bob.send("Alice", "in")
    out, back = auditor.take("DELIVER")
    assert [(each["from"], each["to"], each["payload"]["body"]) for each in (out, back)] == [
        ("Alice", "Bob", "out"), ("Bob", "Alice", "in"),
    ]  # fmt: skip
    assert out["delivery"]["copy"] is True
    given = bob.take_one("DELIVER")
    assert given["shadows"] == ["Auditor"]  # whoever gets it sees who else does
    assert "copy" not in given["delivery"]
    assert given["delivery"]["message_id"] == out["delivery"]["message_id"]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [("Auditor:Alice:outgoing", ["out"]), ("Auditor:Alice:incoming", ["in"]), ("Auditor:*", ["out", "in", "own"]),
     ("Auditor:Al*", ["out", "in"]), ("Auditor:Carol", [])],
)  # fmt: skip
def test_the_setting_says_whose_and_which_way(setting: str, expected: list[str]) -> None:
    _, alice, bob, auditor = watch(setting)
    alice.send("Bob", "out")
    bob.send("Alice", "in")
    bob.send("Bob", "own")
    assert auditor.bodies() == expected


def test_one_that_gets_the_message_anyway_or_wrote_it_gets_no_copy() -> None:
    _, alice, bob, auditor = watch("Auditor:*")
    alice.send(["Bob", "Auditor"], "both")
    auditor.send("Alice", "mine")
    (only,) = auditor.take("DELIVER")
    assert "copy" not in only["delivery"]
    assert "shadows" not in bob.take_one("DELIVER")


def test_the_sender_is_told_of_recipients_alone() -> None:
    _, alice, bob, auditor = watch()
    alice.send("Bob", "x", meta={"requires_ack": True})
    (stored,) = alice.stored()
    assert (stored["recipients"], stored["queued"]) == (1, 0)
    auditor.ack(auditor.take_one("DELIVER"))
    assert alice.delivered() == []  # the shadow's word is nobody's receipt
    bob.ack(bob.take_one("DELIVER"))
    assert [each["by"] for each in alice.delivered()] == ["Bob"]


def test_a_shadow_that_is_away_counts_for_nothing_and_gets_its_copy_later() -> None:
    relay, alice, bob, auditor = watch()
    auditor.drop()
    alice.send("Bob", "x")
    assert [(each["recipients"], each["queued"]) for each in alice.stored()] == [(1, 0)]
    bob.ack(bob.take_one("DELIVER"))
    relay.restart()
    again = relay.open()
    again.hello("Auditor", token=auditor.token, capabilities=KNOWS_COPIES)
    (copy,) = again.take("DELIVER")
    assert (copy["payload"]["body"], copy["delivery"]["copy"], copy["to"]) == ("x", True, "Bob")


def test_what_a_shadow_refuses_or_lets_expire_is_told_to_nobody_and_is_no_dead_letter() -> None:
    relay, alice, bob, auditor = watch()
    alice.send("Bob", "refused", meta={"requires_ack": True})
    auditor.nack(auditor.take_one("DELIVER"), "REJECTED")
    alice.send("Bob", "late", meta={"requires_ack": True, "ttl_ms": 1_000})
    for delivery in bob.take("DELIVER"):
        bob.ack(delivery)
    relay.advance(2_000)
    assert alice.take("NACK") == []
    assert [each["by"] for each in alice.delivered()] == ["Bob", "Bob"]
    assert relay.relay.queries.server()["dead_letters"] == 0
    late = auditor.take("DELIVER")[-1]["delivery"]["message_id"]
    shown = look_up(relay, late)["messages"][0]["recipients"]
    assert {each["name"]: each["status"] for each in shown} == {"Bob": "delivered", "Auditor": "dead"}


def test_a_shadow_answers_no_question() -> None:
    relay, alice, bob, auditor = watch()
    sync = {"blocking": True, "correlationId": "q1", "timeoutMs": 60_000}
    alice.send("Bob", "which?", meta={"sync": sync})
    copy = auditor.take_one("DELIVER")
    auditor.ack(copy, correlationId="q1", response="mine")
    auditor.send("Alice", "mine", meta={"reply_to": copy["delivery"]["message_id"]})
    assert alice.delivered() == []
    assert alice.bodies() == ["mine"]  # a message like any other
    bob.ack(bob.take_one("DELIVER"), correlationId="q1", response="Bob's")
    assert [each["response"] for each in alice.delivered()] == ["Bob's"]
    assert relay.log.named("crashed") == []


def test_a_full_shadow_stops_nobody_and_is_named() -> None:
    _, alice, bob, auditor = watch(queue_capacity=1)
    auditor.drop()
    for body in ("1", "2"):
        alice.send("Bob", body)
        bob.ack(bob.take_one("DELIVER"))
    first, second = alice.stored()
    assert "skipped" not in first
    assert second["skipped"] == ["Auditor"]
    assert alice.take("NACK", "BUSY") == []


def test_the_history_marks_the_copy() -> None:
    relay, alice, bob, auditor = watch()
    alice.send("Bob", "x")
    (stored,) = alice.stored()
    shown = look_up(relay, stored["message_id"])["messages"][0]["recipients"]
    assert [(each["name"], each.get("copy", False)) for each in shown] == [("Bob", False), ("Auditor", True)]
    del bob, auditor


def test_no_event_says_that_a_shadow_got_it() -> None:
    relay, alice, bob, auditor = watch()
    alice.send("Bob", "x")
    for client in (bob, auditor):
        client.ack(client.take_one("DELIVER"))
    (stored,) = alice.stored()
    told = [event["to"] for event in relay.events.named("message.delivered") if event["messageId"] == stored["message_id"]]
    assert told == ["Bob"]


def test_a_client_that_cannot_tell_copies_from_messages_gets_none() -> None:
    relay = RelayHarness(shadows=parse_shadows("Auditor:Alice"))
    alice, _, auditor = relay.connect("Alice"), relay.connect("Bob"), relay.connect("Auditor")
    auditor.take("DELIVER")
    alice.send("Bob", "x")
    assert auditor.bodies() == []


def test_both_sides_are_told_once_also_over_a_restart() -> None:
    relay = RelayHarness(shadows=parse_shadows("Auditor:Alice"))
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    auditor = relay.connect("Auditor", capabilities=KNOWS_COPIES)
    (notice,) = alice.take("DELIVER")
    assert (notice["from"], notice["payload"]["kind"]) == ("relay", "shadows")
    assert "Auditor gets a copy of what you send or receive." in notice["payload"]["body"]
    assert "You get a copy of what Alice sends or receives." in auditor.take_one("DELIVER")["payload"]["body"]
    assert bob.bodies() == []
    alice.ack(notice)
    relay.advance(1_000)
    relay.restart()
    again = relay.open()
    again.hello("Alice", token=alice.token)
    assert again.bodies() == []


def test_a_team_sets_and_ends_shadows_while_agents_run() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    auditor = relay.connect("Auditor", capabilities=KNOWS_COPIES)
    person = relay.open()
    person.hello("x", mode="observer")
    person.take("WELCOME")
    shadows = [{"shadow": "Auditor", "of": "Alice"}]
    person.say("CONTROL", {"command": "set_team", "id": "f" * 64, "rules": [], "shadows": shadows})
    assert person.take_one("ACK")
    assert len(alice.bodies()) == len(auditor.bodies()) == 1
    person.say("LIST_AGENTS", {})
    listed = {each["name"]: each for each in person.payload("AGENTS")["agents"]}
    assert listed["Alice"]["shadowed_by"] == ["Auditor"]
    assert listed["Auditor"]["shadows"] == ["Alice"]
    alice.send("Bob", "x")
    assert auditor.bodies() == ["x"]
    person.say("CONTROL", {"command": "set_team", "id": "", "rules": []})
    assert alice.bodies() == ["Nobody gets copies of your messages any more, and you get none of others'."]
    alice.send("Bob", "y")
    assert auditor.bodies() == ["Nobody gets copies of your messages any more, and you get none of others'."]
    assert bob.bodies() == ["x", "y"]


def test_an_agent_makes_nobody_a_shadow() -> None:
    relay, alice, bob, auditor = watch("")
    auditor.connection.process = Caller(agent="Auditor")
    auditor.say("CONTROL", {"command": "set_team", "id": "f" * 64, "rules": [], "shadows": [{"shadow": "Auditor", "of": "*"}]})
    assert auditor.payload("ERROR")["code"] == "PERMISSION_DENIED"
    alice.send("Bob", "secret")
    assert (bob.bodies(), auditor.bodies()) == (["secret"], [])
    assert relay.relay.shadows.all == ()


def test_agents_of_other_users_get_no_copies() -> None:
    relay = RelayHarness(shadows=parse_shadows("Guest:Alice"), allowed_uids=frozenset({2_000}))
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    guest = relay.connect("Guest", uid=2_000, capabilities=KNOWS_COPIES, owner_token=None)
    guest.take("DELIVER")
    alice.send("Bob", "secret")
    assert guest.bodies() == []
    assert bob.bodies() == ["secret"]
