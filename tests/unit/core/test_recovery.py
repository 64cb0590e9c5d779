"""After a kill -9: the same numbers, cursors, subscriptions, channels and ids, as if it had never stopped."""

from __future__ import annotations

import pytest

from tests.support.harness import Frame, HarnessClient, RelayHarness, connect_pair


def back(relay: RelayHarness, client: HarnessClient) -> HarnessClient:
    return relay.connect(client.name, token=client.token)


def places(frames: list[Frame]) -> list[tuple[str, str, int]]:
    return [(frame["id"], frame["delivery"]["message_id"], frame["delivery"]["seq"]) for frame in frames]


def test_what_was_owed_comes_again_under_the_same_ids_and_numbers() -> None:
    relay, alice, bob = connect_pair()
    for number in range(4):
        alice.send("Bob", str(number))
    before = bob.take("DELIVER")
    bob.ack(before[0])
    relay.advance(200)
    relay.restart()
    after = back(relay, bob).take("DELIVER")
    assert places(after) == places(before[1:])
    assert [frame["delivery"]["attempt"] for frame in after] == [2, 2, 2]


def test_numbers_go_on() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "1")
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(200)
    relay.restart()
    alice, bob = back(relay, alice), back(relay, bob)
    alice.send("Bob", "2")
    (deliver,) = bob.take("DELIVER")
    assert (deliver["delivery"]["seq"], deliver["delivery"].get("prev_seq")) == (2, None)


def test_numbers_go_on_even_if_no_cursor_was_written() -> None:
    relay, alice, bob = connect_pair()
    alice.send("Bob", "1")
    bob.ack(bob.take_one("DELIVER"))
    relay.restart()  # before the acknowledgement was written
    alice, bob = back(relay, alice), back(relay, bob)
    alice.send("Bob", "2")
    assert [(f["payload"]["body"], f["delivery"]["seq"]) for f in bob.take("DELIVER")] == [("1", 1), ("2", 2)]


def test_a_write_whose_answer_was_lost_is_one_message() -> None:
    relay, alice, bob = connect_pair()
    relay.store.lose_next_answer()
    alice.send("Bob", "once", id="m")
    assert not alice.frames
    relay.restart()
    alice, bob = back(relay, alice), back(relay, bob)
    alice.send("Bob", "once", id="m")
    assert alice.stored()[0]["duplicate"] is True
    assert bob.bodies() == ["once"]


def test_each_recipient_of_a_broadcast_is_owed_its_own() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    alice.send("*", "all")
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(200)
    relay.restart()
    assert not back(relay, bob).take("DELIVER")
    (deliver,) = back(relay, carol).take("DELIVER")
    assert (deliver["to"], deliver["payload"]["body"]) == ("*", "all")


def test_subscriptions_and_channels_are_as_they_were() -> None:
    relay, alice, bob = connect_pair()
    bob.say("SUBSCRIBE", {"topic": "kept.*"})
    bob.say("SUBSCRIBE", {"topic": "left"})
    bob.say("UNSUBSCRIBE", {"topic": "left"})
    bob.say("CHANNEL_JOIN", {"channel": "#kept"})
    bob.say("CHANNEL_JOIN", {"channel": "#left"})
    bob.say("CHANNEL_LEAVE", {"channel": "#left"})
    relay.restart()
    alice = back(relay, alice)
    alice.say("LIST_AGENTS", {})
    shown = next(agent for agent in alice.payload("AGENTS")["agents"] if agent["name"] == "Bob")
    assert (shown["subscriptions"], shown["channels"]) == (["kept.*"], ["#kept"])
    alice.send("#kept", "hello")
    assert back(relay, bob).bodies() == ["hello"]


def test_a_priority_and_a_receipt_are_not_forgotten() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    bob.drop()
    alice.send("Bob", "slow", meta={"priority": 9})
    carol.send("Bob", "urgent", id="u", meta={"priority": 0, "requires_ack": True})
    relay.restart()
    carol, bob = back(relay, carol), relay.connect("Bob", token=bob.token, max_inflight=1)
    deliver = bob.take_one("DELIVER")
    assert deliver["payload"]["body"] == "urgent"
    bob.ack(deliver)
    assert [receipt["ack_id"] for receipt in carol.delivered()] == ["u"]


@pytest.mark.parametrize(("away_ms", "arrives"), [(50_000, True), (70_000, False)])
def test_time_goes_on_while_the_daemon_is_dead(away_ms: int, arrives: bool) -> None:
    relay, alice, bob = connect_pair()
    bob.drop()
    alice.send("Bob", "x", meta={"ttl_ms": 60_000})
    relay.restart(wall_ms_later=away_ms)
    alice, bob = back(relay, alice), back(relay, bob)
    relay.advance(200)
    assert (bob.bodies() == ["x"]) is arrives
    assert len(alice.take("NACK")) == (0 if arrives else 1)


def test_a_clock_that_was_set_back_does_not_make_messages_live_longer_than_they_may() -> None:
    relay, alice, bob = connect_pair()
    bob.drop()
    alice.send("Bob", "x", meta={"ttl_ms": 60_000})
    relay.restart(wall_ms_later=-3_600_000)
    alice = back(relay, alice)
    relay.advance(61_000)  # the store is asked once a second
    assert alice.payload("NACK")["code"] == "DELIVERY_TIMEOUT"


def test_a_clock_that_was_set_back_does_not_give_a_number_twice() -> None:
    relay, alice, _bob = connect_pair()
    alice.send("Bob", "1")
    (first,) = alice.stored()
    relay.restart(wall_ms_later=-3_600_000)
    alice = back(relay, alice)
    alice.send("Bob", "2")
    assert alice.stored()[0]["message_id"] > first["message_id"]


def test_a_dead_letter_and_its_retry_survive() -> None:
    relay, alice, bob = connect_pair()
    bob.drop()
    alice.send("Bob", "x", meta={"ttl_ms": 1_000})
    relay.advance(1_000)
    message_id = alice.payload("NACK")["message_id"]
    relay.restart()
    alice = back(relay, alice)
    alice.say("HISTORY", {"view": "dead_letters"})
    assert [message["message_id"] for message in alice.payload("HISTORY_RESULT")["messages"]] == [message_id]
    alice.say("CONTROL", {"command": "retry_dead_letter", "id": message_id})
    relay.advance(200)
    relay.restart()
    alice = back(relay, alice)
    alice.say("HISTORY", {"view": "dead_letters"})
    assert alice.payload("HISTORY_RESULT")["messages"] == []
    assert back(relay, bob).bodies() == ["x"]


def test_a_message_to_one_who_was_forgotten_is_let_go() -> None:
    relay, alice, bob = connect_pair()
    bob.drop()
    alice.send("Bob", "x")
    del relay.store._inner._agents["bob"]  # as a store might be that somebody else has mended
    relay.restart()
    assert not relay.connect("Bob").take("DELIVER")
    assert back(relay, alice).welcome


def test_nobody_is_connected_after_a_restart_and_names_are_kept() -> None:
    relay, _, bob = connect_pair()
    relay.restart()
    assert not relay.relay.registry.connected
    stranger = relay.open(uid=4_242)
    stranger.hello("Bob")
    assert stranger.payload("ERROR")["details"]["reason"] == "name_in_use"
    assert back(relay, bob).welcome["session_id"] == bob.welcome["session_id"]


class Once(list[int]):
    """A list that may be read through, and not be asked for each of its members: that takes as long as there are both."""

    def __contains__(self, number: object) -> bool:
        raise AssertionError(f"{number} was looked for in a list")
