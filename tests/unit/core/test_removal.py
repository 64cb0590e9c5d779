"""`remove`: a name goes off the lists, nothing that was accepted is lost in silence, and the name is free."""

from __future__ import annotations

import pytest

from tests.support.harness import RelayHarness
from tests.unit.core.test_erasure import ask, exchange, names


def remove(relay: RelayHarness, agent: str) -> int:
    answer = ask(relay, "remove", agent)
    assert answer.get("stage") == "removed", answer
    return int(answer["responseData"]["dead_letters"])


def test_the_name_goes_and_the_history_stays_also_after_a_restart(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    exchange(alice, bob, "Bob", 2)
    bob.say("SUBSCRIBE", {"topic": "code.>"})
    bob.say("CHANNEL_JOIN", {"channel": "#dev"})
    bob.drop()
    assert remove(relay, "bob") == 0
    for _ in range(2):
        assert names(relay) == {"Alice"}
        assert relay.store.stats().messages == 2
        found = relay.relay.registry.find("Bob")
        assert found is None or not (found.subscriptions or found.channels)
        relay.restart()
    alice = relay.connect("Alice", token=alice.token)
    alice.send("Bob", "anybody?")
    assert alice.payload("NACK")["code"] == "AGENT_NOT_FOUND"


def test_what_waits_for_it_becomes_dead_letters_and_senders_are_told(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    bob.drop()
    for body in ("one", "two"):
        alice.send("Bob", body)
    assert remove(relay, "Bob") == 2
    told = [frame["payload"] for frame in alice.take("NACK")]
    assert [(nack["code"], nack["to"]) for nack in told] == [("AGENT_NOT_FOUND", "Bob")] * 2
    relay.restart()
    assert relay.relay.journal.dead_letters == 2
    bob = relay.connect("Bob")
    assert bob.bodies() == []  # whoever has the name next does not get its mail


def test_a_long_queue_goes_whole(relay: RelayHarness) -> None:
    relay = RelayHarness(queue_capacity=5_000)
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    bob.drop()
    for _ in range(2_100):  # more than wait in memory
        alice.send("Bob")
    assert remove(relay, "Bob") == 2_100


def test_what_it_sent_still_arrives_also_after_a_restart(relay: RelayHarness) -> None:
    bob, carol = relay.connect("Bob"), relay.connect("Carol")
    carol.drop()
    bob.send("Carol", "from one who is gone")
    bob.drop()
    assert remove(relay, "Bob") == 0
    relay.restart()
    assert relay.connect("Carol", token=carol.token).bodies() == ["from one who is gone"]


def test_a_dead_letter_to_it_is_not_sent_again(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    bob.drop()
    alice.send("Bob", "waits")
    message_id = alice.stored()[0]["message_id"]
    remove(relay, "Bob")
    owner = relay.connect("Watcher", mode="observer")
    owner.say("CONTROL", {"command": "retry_dead_letter", "id": message_id})
    relay.advance(100)
    assert owner.payload("ERROR")["code"] == "AGENT_NOT_FOUND"
    bob = relay.connect("Bob")
    owner.say("CONTROL", {"command": "retry_dead_letter", "id": message_id})
    relay.advance(100)
    assert bob.bodies() == ["waits"]


def test_the_name_of_a_wrapped_agent_is_free_again_and_its_token_is_not_good(relay: RelayHarness) -> None:
    bob = relay.connect("Bob", capabilities={"control": True})
    bob.drop()
    remove(relay, "Bob")
    again = relay.open()
    again.resume("Bob", bob.token)
    relay.settle()
    assert again.take("ERROR", "NACK")
    assert relay.connect("Bob", owner_token=None).welcome["agent"] == "Bob"
    assert names(relay) == {"Bob"}


def test_it_goes_on_counting_towards_those_who_stayed(relay: RelayHarness) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    assert exchange(bob, alice, "Alice", 3) == [1, 2, 3]
    bob.drop()
    remove(relay, "Bob")
    assert exchange(relay.connect("Bob"), alice, "Alice") == [4]


@pytest.mark.parametrize("how", ["connected", "an agent asks", "unknown", "removed before"])
def test_it_is_refused(relay: RelayHarness, how: str) -> None:
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    if how == "connected":
        answer = ask(relay, "remove", "Bob")
        assert (answer["code"], answer["details"]["reason"]) == ("REJECTED", "agent_is_running")
        assert "agent-relay stop Bob" in answer["message"]
    elif how == "an agent asks":
        bob.drop()
        alice.say("CONTROL", {"command": "remove", "agent": "Bob"})
        assert alice.payload("ERROR")["details"]["reason"] == "not_the_owner"
    elif how == "unknown":
        answer = ask(relay, "remove", "Bbo")
        assert (answer["code"], answer["details"]["did_you_mean"]) == ("AGENT_NOT_FOUND", ["Bob"])
    else:
        bob.drop()
        remove(relay, "Bob")
        assert ask(relay, "remove", "Bob")["code"] == "AGENT_NOT_FOUND"
        return
    assert names(relay) >= {"Alice", "Bob"}


def test_a_store_that_fails_leaves_it_as_it_was(relay: RelayHarness) -> None:
    bob = relay.connect("Bob", capabilities={"control": True})
    bob.say("CHANNEL_JOIN", {"channel": "#dev"})
    bob.drop()
    relay.advance(300)
    relay.store.fail_next()
    answer = ask(relay, "remove", "Bob")
    assert (answer["code"], answer["retry_after_ms"]) == ("SERVICE_UNAVAILABLE", 1_000)
    assert [(agent.name, agent.channels) for agent in relay.relay.queries.agents()] == [("Bob", ["#dev"])]
    assert remove(relay, "Bob") == 0
