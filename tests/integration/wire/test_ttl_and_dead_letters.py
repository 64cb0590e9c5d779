"""Wire contract, section 5: messages that run out of time, declared gaps, and the dead letters."""

from __future__ import annotations

from typing import Any

from agent_relay.testing.raw_client import RawClient

from .conftest import StartRelay
from .relay import Relay, bodies, seqs

SHORT = {"ttl_ms": 200}


def expired(client: RawClient, request: str) -> dict[str, Any]:
    return client.refused(request, "DELIVERY_TIMEOUT")


def test_a_message_nobody_fetched_becomes_a_dead_letter_and_its_sender_is_told(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    request = alice.send(away, "too late", meta=SHORT)
    stored = alice.stored(request)
    refusal = expired(alice, request)
    assert (refusal["message_id"], refusal["to"]) == (stored["message_id"], away)
    assert stored["message_id"] in str(relay.history(view="dead_letters"))
    back = relay.rejoin(away)
    back.expect_none("DELIVER")


def test_a_message_nobody_acknowledged_becomes_one_too(start_relay: StartRelay) -> None:
    relay = start_relay("--ack-timeout-ms", "100", "--max-attempts", "2")
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.send(bob.name, "hello?", meta={"ttl_ms": 900})
    stored = alice.stored(request)
    bob.deliveries(2, ack=False)
    assert expired(alice, request)["message_id"] == stored["message_id"]
    relay.cut(bob)
    relay.rejoin(bob.name, token=bob.token).expect_none("DELIVER")


def test_an_acknowledged_message_does_not_expire(relay: Relay) -> None:
    alice, bob, away = relay.join("Alice"), relay.join("Bob"), relay.offline()
    alice.send_stored(bob.name, "in time", meta={"ttl_ms": 1_200})
    bob.deliveries(1)
    bob.flush()
    clock = alice.send(away, "clock", meta={"ttl_ms": 1_400})
    alice.stored(clock)
    expired(alice, clock)
    alice.expect_none("NACK", seconds=0)


def test_each_recipient_has_its_own_fate(relay: Relay) -> None:
    alice, bob, away = relay.join("Alice"), relay.join("Bob"), relay.offline()
    request = alice.send([bob.name, away], "x", meta={"ttl_ms": 1_000, "requires_ack": True})
    alice.stored(request)
    bob.deliveries(1)
    assert alice.delivered(request)["by"] == bob.name
    assert expired(alice, request)["to"] == away
    alice.expect_none("NACK", "ACK")


def test_the_default_is_a_flag(start_relay: StartRelay) -> None:
    relay = start_relay("--message-ttl", "200")
    alice, away = relay.join("Alice"), relay.offline()
    request = alice.send(away, "x")
    alice.stored(request)
    expired(alice, request)


def test_a_gap_of_expired_messages_is_declared(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    alice.send_stored(away, "1")
    gone = [alice.send(away, "2", meta=SHORT), alice.send(away, "3", meta=SHORT)]
    alice.send_stored(away, "4")
    alice.send_stored(away, "5")
    for request in gone:
        alice.stored(request)
        expired(alice, request)
    back = relay.rejoin(away)
    found = back.deliveries(3)
    assert bodies(found) == ["1", "4", "5"]
    assert seqs(found) == [1, 4, 5]
    assert [frame["delivery"].get("prev_seq") for frame in found] == [None, 1, None]


def test_a_gap_is_declared_again_when_the_message_after_it_comes_again(relay: Relay) -> None:
    """Whoever lost the first attempt could not tell the gap from a loss otherwise."""
    alice, away = relay.join("Alice"), relay.offline()
    alice.send_stored(away, "1")
    request = alice.send(away, "2", meta=SHORT)
    alice.stored(request)
    alice.send_stored(away, "3")
    expired(alice, request)
    lost = relay.rejoin(away)
    lost.deliveries(2, ack=False)
    relay.cut(lost)
    found = relay.rejoin(away, token=lost.token).deliveries(2)
    assert seqs(found) == [1, 3]
    assert [frame["delivery"].get("prev_seq") for frame in found] == [None, 1]


def test_a_gap_at_the_beginning_of_a_stream_is_declared(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    request = alice.send(away, "1", meta=SHORT)
    alice.stored(request)
    alice.send_stored(away, "2")
    expired(alice, request)
    (deliver,) = relay.rejoin(away).deliveries(1)
    assert (deliver["delivery"]["seq"], deliver["delivery"]["prev_seq"]) == (2, 0)


def test_a_gap_at_the_end_is_declared_by_the_next_message(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alice.send_stored(bob.name, "1")
    bob.deliveries(1)
    bob.flush()
    relay.cut(bob)
    request = alice.send(bob.name, "2", meta=SHORT)
    alice.stored(request)
    expired(alice, request)
    back = relay.rejoin(bob.name, token=bob.token)
    alice.send_stored(bob.name, "3")
    (deliver,) = back.deliveries(1)
    assert (deliver["delivery"]["seq"], deliver["delivery"]["prev_seq"]) == (3, 1)


def test_a_message_that_was_on_the_wire_leaves_no_gap_to_declare(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.send(bob.name, "1", meta=SHORT)
    bob.deliveries(1, ack=False)
    alice.stored(request)
    expired(alice, request)
    alice.send_stored(bob.name, "2")
    (deliver,) = bob.deliveries(1)
    assert deliver["delivery"]["seq"] == 2
    assert "prev_seq" not in deliver["delivery"]


def test_a_dead_letter_can_be_sent_again(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    request = alice.send(away, "second chance", meta=SHORT)
    stored = alice.stored(request)
    expired(alice, request)
    back = relay.rejoin(away)
    answer = alice.request("CONTROL", {"command": "retry_dead_letter", "id": stored["message_id"]})
    assert answer["stage"] == "requeued"
    (deliver,) = back.deliveries(1)
    assert (deliver["from"], deliver["payload"]["body"]) == (alice.name, "second chance")
    assert deliver["delivery"]["message_id"] == answer["message_id"]
    back.flush()
    assert stored["message_id"] not in str(relay.history(view="dead_letters"))


def test_a_dead_letter_nobody_has_cannot_be_sent_again(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    alive = alice.send_stored(bob.name, "alive")["message_id"]
    bob.deliveries(1)
    for message_id in (alive, "msg_" + "0" * 26, "nonsense"):
        answer = alice.answer(alice.say("CONTROL", {"command": "retry_dead_letter", "id": message_id}))
        assert answer["type"] in ("NACK", "ERROR")
    bob.expect_none("DELIVER", seconds=0)


def test_a_sender_that_was_away_is_told_when_it_returns(relay: Relay) -> None:
    alice, away = relay.join("Alice"), relay.offline()
    request = alice.send(away, "x", meta={"ttl_ms": 300})
    alice.stored(request)
    relay.cut(alice)
    clock = relay.join("Clock")
    ticking = clock.send(away, "clock", meta={"ttl_ms": 600})
    clock.stored(ticking)
    expired(clock, ticking)
    again = relay.rejoin(alice.name, token=alice.token)
    assert expired(again, request)["to"] == away
