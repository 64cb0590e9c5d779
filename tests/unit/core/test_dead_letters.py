"""What could not be delivered, and is sent again."""

from __future__ import annotations

import pytest

from tests.support.harness import HarnessClient, RelayHarness

from .lookups.test_history import ask, send


@pytest.fixture
def bob(relay: RelayHarness) -> HarnessClient:
    return relay.connect("Bob", cli="claude")


def bury(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient, body: str = "late") -> str:
    if bob.peer.agent is not None and not bob.peer.closed:
        bob.drop()
    message_id = send(alice, "Bob", body, meta={"ttl_ms": 60_000})
    relay.advance(60_000)
    alice.take()
    return message_id


def test_dead_letters_are_listed(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    first, second = bury(relay, alice, bob, "1"), bury(relay, alice, bob, "2")
    messages = ask(alice, view="dead_letters")["messages"]
    assert [message["message_id"] for message in messages] == [second, first]
    assert (messages[0]["dead"]["to"], messages[0]["dead"]["code"]) == ("Bob", "DELIVERY_TIMEOUT")
    assert ask(alice, view="dead_letters", limit=1)["messages"][0]["message_id"] == second


def test_a_dead_letter_is_sent_again_as_a_new_message(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    dead = bury(relay, alice, bob)
    watcher = relay.connect("watcher", mode="observer")
    request = watcher.say("CONTROL", {"command": "retry_dead_letter", "id": dead})
    answer = watcher.payload("ACK")
    assert (answer["ack_id"], answer["stage"], answer["by"]) == (request, "requeued", "Bob")
    assert answer["message_id"] != dead
    (deliver,) = relay.connect("Bob", token=bob.token).take("DELIVER")
    assert (deliver["from"], deliver["payload"]["body"], deliver["delivery"]["seq"]) == ("Alice", "late", 2)
    assert ask(alice, view="dead_letters")["messages"] == []


def test_a_dead_letter_asked_for_twice_goes_once(relay: RelayHarness, alice: HarnessClient, bob: HarnessClient) -> None:
    dead = bury(relay, alice, bob)
    frames = [alice.frame("CONTROL", {"command": "retry_dead_letter", "id": dead}) for _ in range(2)]
    alice.say_frames(*frames, alice.message("Bob", "after"))
    assert alice.payload("ERROR")["code"] == "ROUTE_NOT_FOUND"
    assert sorted(frame["payload"]["stage"] for frame in alice.take("ACK")) == ["requeued", "stored"]
    assert sorted(relay.connect("Bob", token=bob.token).bodies()) == ["after", "late"]


def test_a_dead_letter_goes_once_though_a_crash_hides_that_it_went(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    dead = bury(relay, alice, bob)
    alice.say("CONTROL", {"command": "retry_dead_letter", "id": dead})
    first = alice.payload("ACK")
    relay.restart()  # before it was written that the letter is none any more
    watcher = relay.connect("watcher", mode="observer")
    assert len(ask(watcher, view="dead_letters")["messages"]) == 1
    watcher.say("CONTROL", {"command": "retry_dead_letter", "id": dead})
    again = watcher.payload("ACK")
    assert (again["stage"], again["message_id"]) == ("requeued", first["message_id"])
    assert ask(watcher, view="dead_letters")["messages"] == []
    assert relay.connect("Bob", token=bob.token).bodies() == ["late"]


def test_a_dead_letter_that_could_not_be_stored_again_stays_one(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    dead = bury(relay, alice, bob)
    relay.store.fail_next()
    alice.say("CONTROL", {"command": "retry_dead_letter", "id": dead})
    assert alice.payload("ERROR")["code"] == "SERVICE_UNAVAILABLE"
    assert len(ask(alice, view="dead_letters")["messages"]) == 1
    alice.say("CONTROL", {"command": "retry_dead_letter", "id": dead})
    assert alice.payload("ACK")["stage"] == "requeued"


def test_a_dismissed_letter_is_none_any_more_and_stays_in_the_history(
    relay: RelayHarness, alice: HarnessClient, bob: HarnessClient
) -> None:
    dead, other = bury(relay, alice, bob, "1"), bury(relay, alice, bob, "2")
    request = alice.say("CONTROL", {"command": "dismiss_dead_letter", "id": dead})
    answer = alice.payload("ACK")
    assert (answer["ack_id"], answer["stage"], answer["message_id"]) == (request, "dismissed", dead)
    relay.restart()
    watcher = relay.connect("watcher", mode="observer")
    assert [message["message_id"] for message in ask(watcher, view="dead_letters")["messages"]] == [other]
    assert [message["message_id"] for message in ask(watcher)["messages"]] == [other, dead]
    assert relay.connect("Bob", token=bob.token).bodies() == []
    watcher.say("CONTROL", {"command": "dismiss_dead_letter", "id": dead})
    assert watcher.payload("ERROR")["code"] == "ROUTE_NOT_FOUND"


@pytest.mark.parametrize(
    ("id_", "code"),
    [("nonsense", "INVALID_FORMAT"), (None, "INVALID_FORMAT"), ("msg_01MCC5RM000000000000010002", "ROUTE_NOT_FOUND")],
)
def test_what_is_no_dead_letter_is_not_sent(alice: HarnessClient, id_: str | None, code: str) -> None:
    alice.say("CONTROL", {"command": "retry_dead_letter", "id": id_})
    assert alice.payload("ERROR")["code"] == code


def test_an_acknowledged_message_is_no_dead_letter(alice: HarnessClient, bob: HarnessClient) -> None:
    message_id = send(alice, "Bob")
    bob.ack(bob.take_one("DELIVER"))
    alice.say("CONTROL", {"command": "retry_dead_letter", "id": message_id})
    assert alice.payload("ERROR")["code"] == "ROUTE_NOT_FOUND"
    assert not bob.frames
