"""Wire contract, sections 3 and 5: who gets a message — names, lists, broadcast, channels, topics."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.testing.raw_client import RawClient

from .relay import Relay, bodies


def refused_code(client: RawClient, kind: str, payload: dict[str, Any]) -> str:
    """The code of an ERROR or NACK: the contract leaves open which of the two refuses such a request."""
    answer = client.answer(client.say(kind, payload))
    assert answer["type"] in ("ERROR", "NACK"), answer
    code: str = answer["payload"]["code"]
    return code


# --- names ---------------------------------------------------------------------------------------------------------


def test_a_direct_message_reaches_its_recipient_and_nobody_else(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    alice.send_stored(bob.name, "for Bob")
    assert bodies(bob.deliveries(1)) == ["for Bob"]
    alice.send_stored(carol.name, "for Carol")
    assert bodies(carol.deliveries(1)) == ["for Carol"]


def test_an_agent_may_write_to_itself(relay: Relay) -> None:
    alice = relay.join("Alice")
    assert alice.send_stored(alice.name, "note to self")["recipients"] == 1
    assert bodies(alice.deliveries(1)) == ["note to self"]


def test_messages_for_an_offline_agent_follow_in_order_when_it_connects(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    for number in range(10):
        ack = alice.send_stored(away, str(number))
        assert (ack["recipients"], ack["queued"]) == (1, 1)
    back = relay.rejoin(away)
    assert bodies(back.deliveries(10)) == [str(number) for number in range(10)]
    alice.send_stored(away, "live")
    assert bodies(back.deliveries(1)) == ["live"]


def test_an_agent_never_seen_is_not_found_and_near_names_are_offered(relay: Relay) -> None:
    alice = relay.join("Alice")
    names = [relay.rejoin(f"Reviewer{letter}").name for letter in "ABCDE"]
    payload = alice.refused(alice.send("Reviewer", "x"), "AGENT_NOT_FOUND")
    offered = payload["details"]["did_you_mean"]
    assert 1 <= len(offered) <= 3
    assert set(offered) <= set(names)
    nothing_like_it = alice.refused(alice.send("qqqqqqqqqqqqqqqqqqqqqq", "x"), "AGENT_NOT_FOUND")
    assert nothing_like_it["details"]["did_you_mean"] == []


# --- lists ---------------------------------------------------------------------------------------------------------


def test_a_list_reaches_each_of_its_names(relay: Relay) -> None:
    alice, bob, carol, dave = (relay.join(name) for name in ("Alice", "Bob", "Carol", "Dave"))
    away = relay.offline()
    ack = alice.send_stored([bob.name, carol.name.lower(), away], "you three")
    assert (ack["recipients"], ack["queued"]) == (3, 1)
    for client in (bob, carol, relay.rejoin(away)):
        (deliver,) = client.deliveries(1)
        assert (deliver["to"], deliver["payload"]["body"]) == (client.name, "you three")
    dave.expect_none("DELIVER", seconds=0)


def test_a_name_written_twice_in_a_list_gets_the_message_once(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    assert alice.send_stored([bob.name, bob.name.upper(), bob.name], "once")["recipients"] == 1
    alice.send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(2)) == ["once", "marker"]


def test_one_unknown_name_in_a_list_and_nobody_gets_anything(relay: Relay) -> None:
    alice, bob, away = relay.join("Alice"), relay.join("Bob"), relay.offline()
    unknown = relay.name("Ghost")
    request = alice.send([bob.name, unknown, away], "never")
    payload = alice.refused(request, "AGENT_NOT_FOUND")
    assert unknown in str(payload["details"]) + payload["message"]
    alice.send_stored([bob.name, away], "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]
    assert bodies(relay.rejoin(away).deliveries(1)) == ["marker"]


# --- broadcast -----------------------------------------------------------------------------------------------------


def test_a_broadcast_reaches_everybody_connected_but_its_sender(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    away = relay.offline()
    ack = alice.send_stored("*", "everyone")
    assert (ack["recipients"], ack["queued"]) == (2, 0)
    for client in (bob, carol):
        (deliver,) = client.deliveries(1)
        assert (deliver["to"], deliver["from"], deliver["payload"]["body"]) == ("*", alice.name, "everyone")
    alice.send_stored(alice.name, "marker")
    assert bodies(alice.deliveries(1)) == ["marker"]
    alice.send_stored(away, "marker")
    assert bodies(relay.rejoin(away).deliveries(1)) == ["marker"]


def test_a_broadcast_with_nobody_there_has_no_recipients(relay: Relay) -> None:
    alice = relay.join("Alice")
    assert alice.send_stored("*", "hello?")["recipients"] == 0
    alice.expect_none("DELIVER", seconds=0)


def test_a_broadcast_with_a_topic_reaches_its_subscribers_alone(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    for client in (alice, bob):
        client.request("SUBSCRIBE", {"topic": "build.*"})
    assert alice.send_stored("*", "green", topic="build.main")["recipients"] == 1
    (deliver,) = bob.deliveries(1)
    assert (deliver["to"], deliver["topic"]) == ("*", "build.main")
    alice.send_stored("*", "marker")
    assert bodies(carol.deliveries(1)) == ["marker"]


# --- channels ------------------------------------------------------------------------------------------------------


def test_a_channel_reaches_its_members_but_the_sender(relay: Relay) -> None:
    alice, bob, carol, outsider = (relay.join(name) for name in ("Alice", "Bob", "Carol", "Outsider"))
    channel = "#" + relay.name("dev")
    for client in (alice, bob, carol):
        answer = client.request("CHANNEL_JOIN", {"channel": channel})
        assert answer["stage"] == "joined"
    bob.request("CHANNEL_JOIN", {"channel": channel})  # twice a member is once a member
    assert alice.send_stored(channel, "standup")["recipients"] == 2
    for client in (bob, carol):
        (deliver,) = client.deliveries(1)
        assert (deliver["to"], deliver["from"], deliver["payload"]["body"]) == (channel, alice.name, "standup")
    assert outsider.send_stored(channel, "may I?")["recipients"] == 3
    for client in (alice, bob, carol):
        assert bodies(client.deliveries(1)) == ["may I?"]
    outsider.expect_none("DELIVER", seconds=0)


def test_who_left_a_channel_gets_nothing_more(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    channel = "#" + relay.name("dev")
    for client in (bob, carol):
        client.request("CHANNEL_JOIN", {"channel": channel})
    assert bob.request("CHANNEL_LEAVE", {"channel": channel})["stage"] == "left"
    assert alice.send_stored(channel, "who is here")["recipients"] == 1
    carol.deliveries(1)
    alice.send_stored(bob.name, "marker")
    assert bodies(bob.deliveries(1)) == ["marker"]


def test_offline_members_of_a_channel_are_queued_for(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    channel = "#" + relay.name("dev")
    bob.request("CHANNEL_JOIN", {"channel": channel})
    relay.cut(bob)
    ack = alice.send_stored(channel, "read this later")
    assert (ack["recipients"], ack["queued"]) == (1, 1)
    assert bodies(relay.rejoin(bob.name).deliveries(1)) == ["read this later"]


def test_a_channel_exists_while_it_has_members_or_history(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    channel = "#" + relay.name("short")
    alice.refused(alice.send(channel, "x"), "CHANNEL_NOT_FOUND")
    bob.request("CHANNEL_JOIN", {"channel": channel})
    assert alice.send_stored(channel, "x")["recipients"] == 1
    bob.deliveries(1)
    bob.request("CHANNEL_LEAVE", {"channel": channel})
    assert alice.send_stored(channel, "there is history")["recipients"] == 0
    unused = "#" + relay.name("unused")
    bob.request("CHANNEL_JOIN", {"channel": unused})
    bob.request("CHANNEL_LEAVE", {"channel": unused})
    alice.refused(alice.send(unused, "x"), "CHANNEL_NOT_FOUND")


def test_a_channel_with_the_sender_alone_has_no_recipients(relay: Relay) -> None:
    alice, channel = relay.join("Alice"), "#" + relay.name("lonely")
    alice.request("CHANNEL_JOIN", {"channel": channel})
    assert alice.send_stored(channel, "echo?")["recipients"] == 0
    alice.expect_none("DELIVER", seconds=0)


@pytest.mark.parametrize("channel", ["dev", "#", "", "#a b", "#-a", "##a", "#" + "x" * 65, "*"])
def test_bad_channel_names_are_refused(relay: Relay, channel: str) -> None:
    client = relay.join()
    assert refused_code(client, "CHANNEL_JOIN", {"channel": channel}) in ("INVALID_TARGET", "INVALID_FORMAT")
    client.flush()


# --- topics --------------------------------------------------------------------------------------------------------

PATTERNS = [
    # pattern, topics it takes, topics it does not
    ("code", ["code"], ["codes", "code.x", "x.code"]),
    ("code.review", ["code.review"], ["code", "code.review.done", "Code.review"]),
    ("code.*", ["code.review", "code.x"], ["code", "code.review.done", "x.code"]),
    ("*.done", ["code.done", "x.done"], ["done", "a.b.done"]),
    ("code.*.done", ["code.x.done"], ["code.done", "code.x.y.done"]),
    ("code.>", ["code.a", "code.a.b.c"], ["code", "codes.a"]),
    (">", ["a", "a.b.c"], []),
    ("*", ["a"], ["a.b"]),
]


@pytest.mark.parametrize(("pattern", "taken", "left"), PATTERNS, ids=[row[0] for row in PATTERNS])
def test_patterns(relay: Relay, pattern: str, taken: list[str], left: list[str]) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    assert bob.request("SUBSCRIBE", {"topic": pattern})["stage"] == "subscribed"
    for topic in left:
        assert alice.send_stored(None, topic, topic=topic)["recipients"] == 0, topic
    for topic in taken:
        assert alice.send_stored(None, topic, topic=topic)["recipients"] == 1, topic
    found = bob.deliveries(len(taken))
    assert [frame["topic"] for frame in found] == bodies(found) == taken
    assert [frame["to"] for frame in found] == [bob.name] * len(taken)
    assert bob.request("UNSUBSCRIBE", {"topic": pattern})["stage"] == "unsubscribed"
    assert alice.send_stored(None, "x", topic=taken[0])["recipients"] == 0


def test_overlapping_subscriptions_deliver_once(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for pattern in ("a.b", "a.*", "a.>", "a.b"):
        bob.request("SUBSCRIBE", {"topic": pattern})
    assert alice.send_stored(None, "one", topic="a.b")["recipients"] == 1
    bob.request("UNSUBSCRIBE", {"topic": "a.b"})
    bob.request("UNSUBSCRIBE", {"topic": "a.*"})
    assert alice.send_stored(None, "two", topic="a.b")["recipients"] == 1
    alice.send_stored(bob.name, "marker")
    assert sorted(bodies(bob.deliveries(3))) == ["marker", "one", "two"]


def test_a_topic_never_reaches_its_sender_nor_subscribers_that_are_away(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for client in (alice, bob):
        client.request("SUBSCRIBE", {"topic": "news"})
    relay.cut(bob)
    ack = alice.send_stored(None, "nobody hears this", topic="news")
    assert ack["recipients"] == 0
    back = relay.rejoin(bob.name)
    alice.send_stored(None, "the subscription is kept", topic="news")
    assert bodies(back.deliveries(1)) == ["the subscription is kept"]
    alice.send_stored(alice.name, "marker")
    assert bodies(alice.deliveries(1)) == ["marker"]


def test_a_direct_message_with_a_topic_needs_no_subscription(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.send_stored(bob.name, "about the build", topic="build")
    (deliver,) = bob.deliveries(1)
    assert (deliver["to"], deliver["topic"]) == (bob.name, "build")


@pytest.mark.parametrize("pattern", ["", "a..b", ".a", "a.", "a.>.b", "a b"])
def test_bad_patterns_are_refused(relay: Relay, pattern: str) -> None:
    client = relay.join()
    assert refused_code(client, "SUBSCRIBE", {"topic": pattern}) in ("INVALID_TARGET", "INVALID_FORMAT")
    client.flush()
