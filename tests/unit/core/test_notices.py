"""What a sender could not be told while it was away, it is told when it comes back: in order, and not without end."""

from __future__ import annotations

from tests.support.harness import HarnessClient, RelayHarness


def acknowledge_all(client: HarnessClient) -> None:
    for deliver in client.take("DELIVER"):
        client.ack(deliver)


def test_receipts_wait_for_their_sender() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for number in range(3):
        alice.send("Bob", id=f"m{number}", meta={"requires_ack": True})
    alice.drop()
    acknowledge_all(bob)
    again = relay.connect("Alice", token=alice.token)
    assert [receipt["ack_id"] for receipt in again.delivered()] == ["m0", "m1", "m2"]
    assert not relay.connect("Alice", token=again.token).delivered()


def test_a_fresh_session_is_not_told_what_concerned_the_one_before() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", meta={"requires_ack": True})
    alice.drop()
    acknowledge_all(bob)
    assert not relay.connect("Alice").delivered()


def test_no_more_than_the_capacity_is_kept() -> None:
    relay = RelayHarness(notice_capacity=2)
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for number in range(5):
        alice.send("Bob", id=f"m{number}", meta={"requires_ack": True})
    alice.drop()
    acknowledge_all(bob)
    again = relay.connect("Alice", token=alice.token)
    assert [receipt["ack_id"] for receipt in again.delivered()] == ["m0", "m1"]


def test_a_notice_comes_after_welcome_and_before_messages() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob", meta={"requires_ack": True})
    alice.drop()
    acknowledge_all(bob)
    bob.send("Alice")
    again = relay.open()
    again.hello("Alice", token=alice.token)
    assert [frame["type"] for frame in again.take()] == ["WELCOME", "ACK", "DELIVER"]
