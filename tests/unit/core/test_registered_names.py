"""Names that are registered with a transport: whose they are, whom their agents hear, and what is kept for them."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agent_relay.ports.connection import NOBODY_UID, REGISTERED_UID
from agent_relay.ports.names import NameTraits
from agent_relay.ports.relay import PeerTraits, ReadSend
from agent_relay.ports.store import StoreError
from agent_relay.protocol.encode import encode_json
from tests.support.harness import HarnessClient, RelayHarness
from tests.unit.core.test_erasure import ask

DAY_MS = 86_400_000


def register(relay: RelayHarness, name: str) -> None:
    answers: list[StoreError | None] = []

    def act() -> None:
        assert relay.relay.names.claim(name)
        relay.relay.names.register(name, answers.append)

    relay.turn(act)
    assert answers == [None]


TRAITS = PeerTraits(dedups=False, skips_unknown=True, has_heartbeat=True)


def connect(relay: RelayHarness, name: str, traits: PeerTraits = TRAITS) -> HarnessClient:
    """As the transport does: nothing is acknowledged, the bytes count."""
    return relay.connect(name, uid=REGISTERED_UID, traits=traits, capabilities={"ack": False}, cli="phone")


def follow(relay: RelayHarness, name: str, others: list[str], *, active: bool = True) -> StoreError | None:
    answers: list[StoreError | None] = []
    relay.turn(lambda: relay.relay.names.follow(name, others, answers.append, active=active))
    return answers[0]


@pytest.fixture
def relay() -> RelayHarness:
    found = RelayHarness()
    register(found, "ann-1")
    register(found, "bob-1")
    return found


# --- names -----------------------------------------------------------------------------------------------------------------


def test_a_name_is_claimed_once(relay: RelayHarness) -> None:
    relay.connect("Sock")
    for name in ("ann-1", "ANN-1", "sock"):
        assert not relay.relay.names.claim(name)


def test_an_owner_who_removes_one_is_told_how_its_transport_ends_a_registration() -> None:
    relay = RelayHarness(registered=NameTraits(kind="phone", removal="Hang up: end {name}, not {name}."))
    register(relay, "ann-1")
    answer = ask(relay, "remove", "ann-1")
    assert (answer["code"], answer["message"]) == ("REJECTED", "Hang up: end ann-1, not ann-1.")
    assert answer["details"] == {"reason": "phone_name", "name": "ann-1"}


def test_a_name_that_is_just_arriving_is_taken(relay: RelayHarness) -> None:
    relay.store.hold()
    relay.open().hello("Carl")
    assert not relay.relay.names.claim("carl")


@pytest.mark.parametrize("name", ["ann-1", "Ann-1"])
def test_nobody_says_hello_with_a_registered_name(relay: RelayHarness, name: str) -> None:
    stranger = relay.open()
    stranger.hello(name)
    error = stranger.payload("ERROR")
    assert (error["code"], error["details"]["reason"]) == ("PERMISSION_DENIED", "name_in_use")


def test_nobody_writes_to_a_name_before_it_is_registered_for_good(relay: RelayHarness) -> None:
    sock = relay.connect("Sock")
    assert relay.relay.names.claim("new-1")
    sock.send("new-1")
    assert sock.payload("NACK")["code"] == "AGENT_NOT_FOUND"
    relay.relay.names.abandon("new-1")
    register(relay, "new-1")
    sock.send("new-1")
    assert sock.stored()[0]["queued"] == 1


def test_a_revoked_name_is_nobodys_and_stays_taken(relay: RelayHarness) -> None:
    sock = relay.connect("Sock")
    relay.relay.names.retire("ann-1")
    sock.send("ann-1")
    sock.send(["Ann-1"])
    assert [frame["payload"]["code"] for frame in sock.take("NACK")] == ["AGENT_NOT_FOUND"] * 2
    assert not relay.relay.names.claim("ann-1")
    assert "ann-1" not in [agent.name for agent in relay.relay.queries.agents()]


def test_names_are_kept_however_long_they_are_away(relay: RelayHarness) -> None:
    relay.advance(40 * DAY_MS)
    assert relay.relay.registry.find("ann-1") is not None


def test_after_a_restart_the_registrations_decide(relay: RelayHarness) -> None:
    relay.restart()
    relay.turn(lambda: relay.relay.names.adopt(["bob-1", "lost-1"], ["old-1"]))
    present = [name for name, _ in relay.relay.names.present()]
    assert sorted(present) == ["bob-1", "lost-1"]  # of ann-1 no registration is left
    for name in ("ann-1", "old-1", "lost-1"):
        assert not relay.relay.names.claim(name)


# --- who gets it -----------------------------------------------------------------------------------------------------------


def test_whoever_is_not_known_is_passed_over(relay: RelayHarness) -> None:
    ann, bob = connect(relay, "ann-1"), connect(relay, "bob-1")
    ann.send(["nobody", "bob-1", "#channel"], "x")
    assert bob.bodies() == ["x"]
    assert not ann.take("NACK")
    ann.send(["nobody"], "y")
    assert ann.payload("NACK")["code"] == "AGENT_NOT_FOUND"


def test_a_full_recipient_is_passed_over_and_named() -> None:
    relay = RelayHarness(queue_capacity=2)
    for name in ("ann-1", "bob-1", "cat-1"):
        register(relay, name)
    ann, cat = connect(relay, "ann-1"), connect(relay, "cat-1")
    for number in range(3):
        ann.send(["bob-1", "cat-1"], str(number))
    assert cat.bodies() == ["0", "1", "2"]
    nack = ann.payload("NACK")
    assert (nack["code"], nack["details"]["to"]) == ("QUEUE_FULL", "bob-1")
    assert connect(relay, "bob-1").bodies() == ["0", "1"]


def test_followers_hear_what_is_said_to_many_and_nothing_else(relay: RelayHarness) -> None:
    ann, bob, sock = connect(relay, "ann-1"), connect(relay, "bob-1"), relay.connect("Sock")
    assert follow(relay, "ann-1", ["SOCK"]) is None
    sock.send(None, "topic", topic="news")
    sock.send("*", "some", topic="news")
    sock.send("*", "all")
    sock.send("bob-1", "private")
    assert ann.bodies() == ["topic", "some", "all"]
    assert bob.bodies() == ["all", "private"]
    follow(relay, "ann-1", ["sock"], active=False)
    sock.send(None, "topic", topic="news")
    assert ann.bodies() == []


def test_nobody_can_publish_to_followers_or_follow_by_topic(relay: RelayHarness) -> None:
    sock = relay.connect("Sock")
    sock.send(None, "x", topic="from bob-1")
    assert sock.payload("NACK")["details"]["field"] == "topic"
    sock.say("SUBSCRIBE", {"topic": "from bob-1"})
    assert sock.payload("ERROR")["code"] == "INVALID_FORMAT"


def test_subscriptions_outlive_the_daemon_and_are_undone_when_they_cannot_be_kept(relay: RelayHarness) -> None:
    follow(relay, "ann-1", ["zoe", "bob-1"])
    relay.store.fail_next()
    assert follow(relay, "ann-1", ["carl", "zoe"]) is not None
    assert relay.relay.names.followed("ann-1") == ["bob-1", "zoe"]
    relay.restart()
    assert relay.relay.names.followed("ann-1") == ["bob-1", "zoe"]
    assert relay.relay.names.followed("nobody") == []


# --- what is kept ------------------------------------------------------------------------------------------------------------


def test_what_the_system_has_not_taken_comes_again(relay: RelayHarness) -> None:
    sock, ann = relay.connect("Sock"), connect(relay, "ann-1")
    sock.send("ann-1", "taken")
    ann.stall()
    sock.send("ann-1", "not taken")
    assert ann.bodies() == ["taken", "not taken"]
    ann.drop()
    assert connect(relay, "ann-1").bodies() == ["not taken"]


@pytest.mark.parametrize(("away_ms", "arrives"), [(DAY_MS - 1_000, True), (DAY_MS + 1_000, False)])
def test_what_waits_for_one_that_is_away_waits_for_a_day(relay: RelayHarness, away_ms: int, arrives: bool) -> None:
    ann = connect(relay, "ann-1")
    ann.send("bob-1", "for later")
    relay.advance(away_ms, step_ms=60_000)
    assert connect(relay, "bob-1").bodies() == (["for later"] if arrives else [])


def test_where_nothing_is_kept_the_sender_is_told_or_not_as_its_contract_says() -> None:
    relay = RelayHarness(registered=NameTraits(keeps_offline=False))
    passing = replace(TRAITS, keeps_offline=False)
    register(relay, "ann-1")
    register(relay, "bob-1")
    sock, ann = relay.connect("Sock"), connect(relay, "ann-1", passing)
    sock.send("bob-1")
    assert sock.payload("NACK")["code"] == "AGENT_OFFLINE"
    ann.send(["bob-1", "sock"], "x")
    assert sock.bodies() == ["x"]
    bob = connect(relay, "bob-1", passing)
    bob.stall()
    sock.send("bob-1", "unread")
    bob.take()
    bob.drop()
    again = connect(relay, "bob-1", passing)
    assert again.bodies() == []
    sock.send("bob-1", "read")
    assert again.bodies() == ["read"]


def test_the_relay_leaves_heartbeats_to_the_transport() -> None:
    relay = RelayHarness(heartbeat_ms=1_000)
    register(relay, "ann-1")
    ann = connect(relay, "ann-1")
    relay.advance(60_000)
    assert ann.closed is None
    assert not ann.take("PING")


def test_coming_and_going_is_told(relay: RelayHarness) -> None:
    told: list[Any] = []
    relay.relay.names.watch(lambda name, is_here: told.append((name, is_here)))
    sock, ann = relay.connect("Sock"), connect(relay, "ann-1")
    sock.drop()
    ann.drop()
    assert told == [("Sock", True), ("ann-1", True), ("Sock", False), ("ann-1", False)]


# --- words of its own ----------------------------------------------------------------------------------------------------------


def read_send(to: str, body: str, id_: str) -> ReadSend:
    """As a transport reads it."""
    return id_, to, encode_json({"body": body}), body


def test_a_client_with_words_of_its_own_sends_and_is_given_messages_as_any_other(relay: RelayHarness) -> None:
    sock, ann = relay.connect("Sock"), connect(relay, "ann-1")
    given: list[tuple[str, str, int]] = []
    ann.peer.deliver = lambda handed: given.extend((row.sender, row.target, accepted) for row, accepted in handed)
    relay.turn(lambda: relay.relay.sent(ann.peer, [read_send("sock", body, body) for body in ("one", "two")]))
    assert sock.bodies() == ["one", "two"]
    relay.turn(lambda: relay.relay.sent(ann.peer, [read_send("nobody", "x", "three")]))
    assert ann.payload("NACK")["code"] == "AGENT_NOT_FOUND"
    sock.send("ann-1", "hello")
    assert given == [("Sock", "ann-1", relay.relay.context.steady_ms)]
    assert not ann.take("DELIVER")
    ann.drop()
    back = connect(relay, "ann-1")
    assert back.bodies() == ["hello"]  # it has not shown that it read it


def test_nothing_is_taken_from_a_client_that_is_not_here_or_while_the_relay_stops(relay: RelayHarness) -> None:
    sock, ann = relay.connect("Sock"), connect(relay, "ann-1")
    stranger = relay.open(REGISTERED_UID, TRAITS)
    relay.turn(lambda: relay.relay.sent(stranger.peer, [read_send("sock", "x", "one")]))
    ann.drop()
    relay.turn(lambda: relay.relay.sent(ann.peer, [read_send("sock", "x", "two")]))
    bob = connect(relay, "bob-1")
    relay.turn(relay.relay.begin_shutdown)
    relay.turn(lambda: relay.relay.sent(bob.peer, [read_send("sock", "x", "three")]))
    assert bob.payload("NACK")["code"] == "SERVICE_UNAVAILABLE"
    assert sock.bodies() == []


# --- names that the owner frees --------------------------------------------------------------------------------------------


def free(relay: RelayHarness, name: str) -> None:
    answers: list[StoreError | None] = []
    relay.turn(lambda: relay.relay.names.retire(name))
    relay.turn(lambda: relay.relay.names.free(name, answers.append))
    relay.settle()
    assert answers == [None]


def test_a_freed_name_can_be_claimed_and_its_mail_is_not_the_next_ones(relay: RelayHarness) -> None:
    sender = relay.connect("Sock")
    sender.send("bob-1", "for the first Bob")
    relay.settle()
    free(relay, "bob-1")
    nack = sender.payload("NACK")
    assert (nack["code"], nack["to"]) == ("AGENT_NOT_FOUND", "bob-1")
    register(relay, "bob-1")
    bob = connect(relay, "bob-1")
    sender.send("bob-1", "for the second Bob")
    relay.settle()
    assert bob.bodies() == ["for the second Bob"]


def test_a_client_of_the_socket_can_have_a_freed_name(relay: RelayHarness) -> None:
    free(relay, "bob-1")
    assert relay.connect("bob-1").take("ERROR") == []


def test_a_freed_name_stays_free_and_hidden_over_a_restart(relay: RelayHarness) -> None:
    free(relay, "bob-1")
    relay.restart()
    relay.turn(lambda: relay.relay.names.adopt(["ann-1"], []))
    assert "bob-1" not in [name for name, _ in relay.relay.names.present()]
    assert relay.relay.names.claim("bob-1")


def test_ids_of_the_one_before_are_not_the_next_ones(relay: RelayHarness) -> None:
    """The same id of another holder is another message, also after a restart."""
    reader = relay.connect("Sock")
    free(relay, "bob-1")
    first = relay.connect("bob-1")
    first.send("Sock", "first", id="same")
    relay.settle()
    agent = relay.relay.registry.find("bob-1")
    assert agent is not None
    first.drop()
    agent.uid, agent.hidden = NOBODY_UID, True
    second = relay.connect("bob-1")
    second.send("Sock", "second", id="same")
    relay.settle()
    assert reader.bodies() == ["first", "second"]
