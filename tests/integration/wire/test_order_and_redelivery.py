"""Wire contract, section 5: order within a stream, and delivery at least once."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import Frame, RawClient, encode

from .relay import Relay, attempts, bodies, calm_flags, seqs

# --- order ---------------------------------------------------------------------------------------------------------


def test_each_stream_counts_by_itself_from_one_without_a_gap(relay: Relay) -> None:
    alice, carol, bob = relay.join("Alice"), relay.join("Carol"), relay.join("Bob", auto_ack=True)
    streams = [(alice, None), (alice, "a"), (alice, "b"), (carol, None), (carol, "a")]
    for number in range(1, 6):
        for sender, topic in streams:
            sender.send_stored(bob.name, str(number), topic=topic)
    found = bob.deliveries(25)
    for sender, topic in streams:
        stream = [f for f in found if f["from"] == sender.name and f.get("topic") == topic]
        assert seqs(stream) == [1, 2, 3, 4, 5]
        assert bodies(stream) == ["1", "2", "3", "4", "5"]


def test_each_recipient_has_its_own_numbers(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob", auto_ack=True), relay.join("Carol", auto_ack=True)
    for number in range(4):
        alice.send_stored(bob.name, f"b{number}")
    alice.send_stored(carol.name, "c0")
    assert seqs(bob.deliveries(4)) == [1, 2, 3, 4]
    assert seqs(carol.deliveries(1)) == [1]


def test_direct_broadcast_channel_and_list_share_one_stream_in_the_order_they_were_sent(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob", auto_ack=True), relay.join("Carol", auto_ack=True)
    channel = "#" + relay.name("mixed")
    bob.request("CHANNEL_JOIN", {"channel": channel})
    targets = [bob.name, "*", channel, [bob.name, carol.name], "*", bob.name] * 10
    alice.write(b"".join(encode(alice.message(target, str(number))) for number, target in enumerate(targets)))
    found = bob.deliveries(60)
    assert bodies(found) == [str(number) for number in range(60)]
    assert seqs(found) == list(range(1, 61))
    for_carol = [str(number) for number, target in enumerate(targets) if target == "*" or isinstance(target, list)]
    found = carol.deliveries(len(for_carol))
    assert bodies(found) == for_carol
    assert seqs(found) == list(range(1, len(for_carol) + 1))


def test_all_recipients_see_broadcasts_in_the_same_order(relay: Relay) -> None:
    senders = [relay.join("Sender", auto_ack=True) for _ in range(3)]
    readers = [relay.join("Reader", auto_ack=True) for _ in range(3)]
    for number in range(20):
        for sender in senders:
            sender.send("*", f"{sender.name}/{number}")
    seen = [bodies(reader.deliveries(60)) for reader in readers]
    assert seen[0] == seen[1] == seen[2]
    for sender in senders:  # and a sender sees those of the others in that very order
        others = [body for body in seen[0] if not body.startswith(sender.name + "/")]
        assert bodies(sender.deliveries(40)) == others


def test_a_priority_overtakes_other_streams_but_never_its_own(relay: Relay) -> None:
    alice, carol = relay.join("Alice"), relay.join("Carol")
    bob = relay.join("Bob", capabilities={"max_inflight": 1})
    alice.send_stored(bob.name, "on the wire")
    (blocking,) = bob.deliveries(1, ack=False)
    alice.send_stored(bob.name, "slow 1", meta={"priority": 9})
    alice.send_stored(bob.name, "urgent, behind its own", meta={"priority": 0})
    alice.send_stored(bob.name, "slow 2", meta={"priority": 9})
    carol.send_stored(bob.name, "urgent", meta={"priority": 0})
    carol.send_stored(bob.name, "urgent too", meta={"priority": 0})
    bob.ack(blocking)
    found = bob.deliveries(5)
    assert bodies(found)[0] == "urgent"
    own = [frame for frame in found if frame["from"] == alice.name]
    assert bodies(own) == ["slow 1", "urgent, behind its own", "slow 2"]
    assert seqs(own) == [2, 3, 4]
    assert bodies([frame for frame in found if frame["from"] == carol.name]) == ["urgent", "urgent too"]


def test_a_window_of_one_keeps_the_order_of_many(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", capabilities={"max_inflight": 1})
    alice.write(b"".join(encode(alice.message(bob.name, str(n), meta={"priority": n % 10})) for n in range(50)))
    found = bob.deliveries(50)
    assert bodies(found) == [str(n) for n in range(50)]
    assert seqs(found) == list(range(1, 51))


# --- again and again -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def impatient_daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(*calm_flags("--ack-timeout-ms", "150", "--max-attempts", "3")) as daemon:
        yield daemon


@pytest.fixture
def impatient(impatient_daemon: DaemonProcess) -> Iterator[Relay]:
    relay = Relay(impatient_daemon)
    yield relay
    relay.close()


def same_delivery(frames: list[Frame]) -> bool:
    return len({(f["id"], f["delivery"]["seq"], f["delivery"]["message_id"], f["payload"]["body"]) for f in frames}) == 1


def test_an_unacknowledged_message_comes_again_with_the_next_attempt(impatient: Relay) -> None:
    alice, bob = impatient.join("Alice"), impatient.join("Bob")
    alice.send_stored(bob.name, "hello?")
    found = bob.deliveries(3, ack=False)
    assert attempts(found) == [1, 2, 3]
    assert same_delivery(found)


def test_there_are_max_attempts_a_connection_and_the_count_goes_on_with_the_next(impatient: Relay) -> None:
    alice, bob = impatient.join("Alice"), impatient.join("Bob")
    alice.send_stored(bob.name, "hello?")
    found = bob.deliveries(3, ack=False)
    assert bob.listen(1.8, "DELIVER") == []  # the fourth would have been due after at most 0.15 s + 1.44 s
    impatient.cut(bob)
    again = impatient.rejoin(bob.name, token=bob.token)
    found += again.deliveries(3, ack=False)
    assert attempts(found) == [1, 2, 3, 4, 5, 6]
    assert same_delivery(found)


def test_an_acknowledged_message_does_not_come_again(impatient: Relay) -> None:
    alice, bob, carol = impatient.join("Alice"), impatient.join("Bob"), impatient.join("Carol")
    alice.send_stored(bob.name, "acknowledged")
    bob.deliveries(1)
    alice.send_stored(carol.name, "not acknowledged")
    carol.deliveries(3, ack=False)  # Carol's redeliveries are the clock: Bob's would have come as well
    bob.expect_none("DELIVER", seconds=0)


def test_the_acknowledgement_of_any_attempt_counts(impatient: Relay) -> None:
    alice, bob = impatient.join("Alice"), impatient.join("Bob")
    request = alice.send(bob.name, "x", meta={"requires_ack": True})
    alice.stored(request)
    first, second = bob.deliveries(2, ack=False)
    assert attempts([first, second]) == [1, 2]
    bob.ack(first)
    assert alice.delivered(request)["by"] == bob.name
    bob.ack(second)
    bob.flush()
    alice.expect_none("ACK")


def test_a_message_that_is_not_acknowledged_does_not_hold_up_the_next(impatient: Relay) -> None:
    alice, bob = impatient.join("Alice"), impatient.join("Bob")
    alice.send_stored(bob.name, "stuck")
    bob.deliveries(1, ack=False)
    for number in range(5):
        alice.send_stored(bob.name, str(number))
    missing = {str(number) for number in range(5)}
    while missing:  # the one that is stuck comes again in between
        deliver = bob.expect("DELIVER", where=lambda frame: frame["payload"]["body"] != "stuck")
        bob.ack(deliver)
        missing.discard(deliver["payload"]["body"])


# --- reconnecting --------------------------------------------------------------------------------------------------


def leave_unacknowledged(relay: Relay, count: int) -> tuple[RawClient, list[Frame]]:
    """Bob, gone with so many messages that he never acknowledged."""
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for number in range(1, count + 1):
        alice.send_stored(bob.name, str(number))
    return bob, bob.deliveries(count, ack=False)


def test_after_a_reconnect_everything_unacknowledged_follows_in_order(relay: Relay) -> None:
    bob, first = leave_unacknowledged(relay, 10)
    relay.cut(bob)
    again = relay.rejoin(bob.name, token=bob.token)
    second = again.deliveries(10)
    assert seqs(second) == list(range(1, 11))
    assert [frame["id"] for frame in second] == [frame["id"] for frame in first]
    assert attempts(second) == [2] * 10
    again.flush()
    relay.cut(again)
    third = relay.rejoin(bob.name, token=again.token)
    third.expect_none("DELIVER")


def test_acknowledgements_need_no_order_and_cover_one_message_each(relay: Relay) -> None:
    bob, first = leave_unacknowledged(relay, 6)
    for index in (5, 2, 3):
        bob.ack(first[index])
    bob.flush()
    relay.cut(bob)
    again = relay.rejoin(bob.name, token=bob.token)
    assert seqs(again.deliveries(3)) == [1, 2, 5]
    again.expect_none("DELIVER")


def test_a_message_sent_during_the_reconnect_stays_behind_the_older_ones(relay: Relay) -> None:
    bob, _ = leave_unacknowledged(relay, 5)
    relay.cut(bob)
    carol = relay.join("Carol")
    carol.send_stored(bob.name, "while away")
    again = relay.rejoin(bob.name)
    carol.send_stored(bob.name, "after")
    found = again.deliveries(7)
    assert bodies([f for f in found if f["from"] == carol.name]) == ["while away", "after"]
    assert bodies([f for f in found if f["from"] != carol.name]) == ["1", "2", "3", "4", "5"]


def test_a_recipient_without_the_ack_capability_has_acknowledged_what_was_written(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob", capabilities={"ack": False})
    request = alice.send(bob.name, "x", meta={"requires_ack": True})
    assert alice.delivered(request)["by"] == bob.name
    bob.expect("DELIVER")
    relay.cut(bob)
    again = relay.rejoin(bob.name, token=bob.token)
    again.expect_none("DELIVER")


# --- refusals by the recipient -------------------------------------------------------------------------------------


def test_rejected_is_forwarded_and_not_delivered_again(impatient: Relay) -> None:
    alice, bob, carol = impatient.join("Alice"), impatient.join("Bob"), impatient.join("Carol")
    request = alice.send(bob.name, "do my homework")
    stored = alice.stored(request)
    bob.nack(bob.expect("DELIVER"), "REJECTED", message="I would rather not.")
    refusal = alice.refused(request, "REJECTED")
    assert refusal["message"] == "I would rather not."
    assert refusal["message_id"] == stored["message_id"]
    assert refusal["to"] == bob.name
    alice.send_stored(carol.name, "clock")
    carol.deliveries(3, ack=False)
    impatient.cut(bob)
    again = impatient.rejoin(bob.name, token=bob.token)
    alice.send_stored(bob.name, "next")
    (deliver,) = again.deliveries(1)
    assert (deliver["payload"]["body"], deliver["delivery"]["seq"]) == ("next", 2)


def test_busy_is_delivered_again_after_the_time_asked_for(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    request = alice.send(bob.name, "now?")
    alice.stored(request)
    first = bob.expect("DELIVER")
    asked_at = time.monotonic()
    bob.nack(first, "AGENT_BUSY", retry_after_ms=300)
    second = bob.expect("DELIVER")
    assert time.monotonic() - asked_at >= 0.29
    assert second["delivery"]["attempt"] == 2
    assert same_delivery([first, second])
    bob.ack(second)
    bob.flush()
    alice.expect_none("NACK", seconds=0)


def test_busy_goes_before_the_usual_time_of_a_redelivery(impatient: Relay) -> None:
    alice, bob = impatient.join("Alice"), impatient.join("Bob")
    alice.send_stored(bob.name, "now?")
    first = bob.expect("DELIVER")
    asked_at = time.monotonic()
    bob.nack(first, "AGENT_BUSY", retry_after_ms=1500)
    bob.flush()
    bob.listen(0, "DELIVER")  # one that crossed the refusal on its way
    bob.ack(bob.expect("DELIVER"))
    assert time.monotonic() - asked_at >= 1.45


def test_nobody_can_acknowledge_or_refuse_for_somebody_else(relay: Relay) -> None:
    alice, bob, carol = relay.join("Alice"), relay.join("Bob"), relay.join("Carol")
    request = alice.send(bob.name, "for Bob alone", meta={"requires_ack": True})
    alice.stored(request)
    (deliver,) = bob.deliveries(1, ack=False)
    carol.ack(deliver)
    carol.nack(deliver, "REJECTED")
    alice.ack(deliver)
    carol.flush()
    alice.expect_none("ACK", "NACK")
    relay.cut(bob)
    again = relay.rejoin(bob.name, token=bob.token)
    assert bodies(again.deliveries(1)) == ["for Bob alone"]
    assert alice.delivered(request)["by"] == bob.name


def test_an_acknowledgement_of_nothing_does_no_harm(relay: Relay) -> None:
    alice, bob = relay.join("Alice"), relay.join("Bob")
    for payload in ({"ack_id": "d_unknown", "seq": 999}, {"ack_id": ""}, {"ack_id": "x" * 500, "seq": -1}):
        bob.say("ACK", payload)
    alice.send_stored(bob.name, "x")
    bob.deliveries(1)
    bob.flush()
