"""`forget`: nothing of an agent is left, whoever waits is told, and nobody who stays is confused by the numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import HarnessClient, RelayHarness


def ask(relay: RelayHarness, command: str, agent: str) -> dict[str, Any]:
    owner = relay.connect("Watcher", mode="observer")
    owner.say("CONTROL", {"command": command, "agent": agent})
    relay.advance(200)
    (answer,) = owner.take("ACK", "ERROR")
    payload: dict[str, Any] = answer["payload"]
    return payload


def forget(relay: RelayHarness, agent: str) -> dict[str, int]:
    answer = ask(relay, "forget", agent)
    assert answer.get("stage") == "forgotten", answer
    counts: dict[str, int] = answer["responseData"]
    return counts


def names(relay: RelayHarness) -> set[str]:
    return {agent.name for agent in relay.relay.queries.agents()}


def exchange(sender: HarnessClient, recipient: HarnessClient, name: str, count: int = 1) -> list[int]:
    """The numbers they were delivered under."""
    seqs = []
    for _ in range(count):
        sender.send(name)
        delivered = recipient.take_one("DELIVER")
        recipient.ack(delivered)
        seqs.append(delivered["delivery"]["seq"])
    return seqs


def test_its_messages_and_its_registration_go_also_after_a_restart(relay: RelayHarness) -> None:
    alice, bob, carol = (relay.connect(name) for name in ("Alice", "Bob", "Carol"))
    exchange(alice, bob, "Bob", 2)
    exchange(bob, alice, "Alice", 3)
    exchange(alice, carol, "Carol")
    bob.drop()
    counts = forget(relay, "bob")
    assert counts == {"undelivered_from": 0, "undelivered_to": 0, "messages": 5, "events": 0, "files": 0}
    assert names(relay) == {"Alice", "Carol"}
    assert relay.store.stats().messages == 1
    relay.restart()
    assert names(relay) == {"Alice", "Carol"}
    assert relay.store.stats().messages == 1


@pytest.mark.parametrize("how", ["connected", "an agent asks", "no name"])
def test_it_is_refused(relay: RelayHarness, how: str) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    exchange(alice, bob, "Bob")
    if how == "connected":
        answer = ask(relay, "forget", "Bob")
        assert (answer["code"], answer["details"]["reason"]) == ("REJECTED", "agent_is_running")
        assert ask(relay, "count_data", "Bob")["code"] == "REJECTED"
    elif how == "an agent asks":
        bob.drop()
        alice.say("CONTROL", {"command": "forget", "agent": "Bob"})
        assert alice.payload("ERROR")["details"]["reason"] == "not_the_owner"
    else:
        assert ask(relay, "forget", "not a name")["code"] == "INVALID_TARGET"
    assert relay.store.stats().messages == 1
    assert names(relay) >= {"Alice", "Bob"}


def test_what_is_on_its_way_is_counted_before_and_its_senders_are_told(relay: RelayHarness) -> None:
    alice, bob, carol = (relay.connect(name) for name in ("Alice", "Bob", "Carol"))
    carol.drop()
    bob.send("Carol", "never to arrive")
    bob.send("Alice", "on the wire")
    bob.drop()
    alice.send("Bob", "for nobody")
    counted = ask(relay, "count_data", "Bob")
    assert (counted["stage"], counted["by"]) == ("counted", "Bob")
    assert counted["responseData"]["undelivered_from"] == 2
    assert counted["responseData"]["undelivered_to"] == 1
    assert relay.store.stats().messages == 3
    counts = forget(relay, "Bob")
    assert (counts["undelivered_from"], counts["undelivered_to"], counts["messages"]) == (2, 1, 3)
    assert alice.payload("NACK")["to"] == "Bob"
    back = relay.connect("Carol", token=carol.token)
    assert back.bodies() == []
    relay.restart()
    assert relay.connect("Carol").bodies() == []


def test_a_name_that_comes_again_goes_on_counting_towards_those_who_stayed(relay: RelayHarness) -> None:
    """A recipient that resumes says how far it came: with numbers that began anew, what is new would count as old."""
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    assert exchange(bob, alice, "Alice", 3) == [1, 2, 3]
    assert exchange(alice, bob, "Bob", 2) == [1, 2]
    bob.drop()
    forget(relay, "Bob")
    relay.restart()
    alice = relay.connect("Alice", token=alice.token)
    bob = relay.connect("Bob")
    assert exchange(alice, bob, "Bob") == [1]
    alice.drop()
    bob.send("Alice", "new")
    again = relay.open()
    again.resume("Alice", alice.token, [{"topic": "", "peer": "Bob", "last_seq": 3}])
    relay.settle()
    delivered = again.take_one("DELIVER")
    assert (delivered["payload"]["body"], delivered["delivery"]["seq"]) == ("new", 4)


def test_a_gap_that_erasing_left_is_declared(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    exchange(bob, alice, "Alice", 2)
    alice.drop()
    bob.send("Alice", "erased on its way")
    bob.drop()
    forget(relay, "Bob")
    bob = relay.connect("Bob")
    bob.send("Alice", "later")
    delivered = relay.connect("Alice", token=alice.token).take_one("DELIVER")
    assert (delivered["payload"]["body"], delivered["delivery"]["seq"], delivered["delivery"]["prev_seq"]) == ("later", 4, 2)


def test_ids_of_a_forgotten_sender_are_forgotten_with_it(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    frame = bob.message("Alice", "once", id="mine")
    bob.say_frames(frame)
    alice.ack(alice.take_one("DELIVER"))
    bob.drop()
    forget(relay, "Bob")
    bob = relay.connect("Bob")
    bob.say_frames(frame)
    assert bob.payload("ACK").get("duplicate") in {None, False}


def test_what_was_said_to_several_stays_theirs(relay: RelayHarness) -> None:
    alice, bob, carol = (relay.connect(name) for name in ("Alice", "Bob", "Carol"))
    alice.send("*", "for all")
    for each in (bob, carol):
        each.ack(each.take_one("DELIVER"))
    bob.drop()
    assert forget(relay, "Bob")["messages"] == 1
    assert relay.store.stats().messages == 1


def test_somebody_nobody_knows_is_forgotten_without_a_word(relay: RelayHarness) -> None:
    assert forget(relay, "Nobody") == dict.fromkeys(("undelivered_from", "undelivered_to", "messages", "events", "files"), 0)


def test_one_who_comes_back_meanwhile_is_not_forgotten(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    exchange(alice, bob, "Bob")
    bob.drop()
    owner, back = relay.connect("Watcher", mode="observer"), relay.open()
    owner.say("CONTROL", {"command": "forget", "agent": "Bob"})
    back.hello("Bob", token=bob.token)
    relay.advance(200)
    answers = owner.take("ACK", "ERROR")
    assert len(answers) == 1
    if answers[0]["type"] == "ERROR":
        assert "Bob" in names(relay)
