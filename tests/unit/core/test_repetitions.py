"""SENDs that are said again while the store cannot be read: the first is stored, and nothing else is ever said of it."""

from __future__ import annotations

from tests.support.harness import Frame, HarnessClient, RelayHarness

READ_AGAIN_MS = 500


def say_and_miss_the_answers(relay: RelayHarness, alice: HarnessClient, *bodies: str) -> list[Frame]:
    frames = [alice.message("Bob", body) for body in bodies]
    alice.say_frames(*frames)
    relay.settle()
    alice.take()
    return frames


def test_a_repetition_waits_until_its_receipt_can_be_read(relay: RelayHarness, alice: HarnessClient) -> None:
    relay.connect("Bob")
    frames = say_and_miss_the_answers(relay, alice, "one", "two")
    relay.store.fail_next_read(5)
    alice.say_frames(*frames)
    relay.settle()
    assert not alice.frames
    relay.advance(2 * READ_AGAIN_MS)
    assert not alice.frames
    relay.advance(3 * READ_AGAIN_MS)
    answers = alice.stored()
    assert sorted(answer["ack_id"] for answer in answers) == sorted(frame["id"] for frame in frames)
    assert all(answer["duplicate"] for answer in answers)
    relay.advance(3 * READ_AGAIN_MS)
    assert not alice.frames


def test_what_is_new_is_accepted_meanwhile(relay: RelayHarness, alice: HarnessClient) -> None:
    bob = relay.connect("Bob")
    (frame,) = say_and_miss_the_answers(relay, alice, "one")
    relay.store.fail_next_read()
    alice.say_frames(frame)
    alice.send("Bob", "two")
    assert len(alice.stored()) == 1
    assert bob.bodies() == ["one", "two"]


def test_whoever_has_gone_is_not_answered(relay: RelayHarness, alice: HarnessClient) -> None:
    relay.connect("Bob")
    (frame,) = say_and_miss_the_answers(relay, alice, "one")
    relay.store.fail_next_read()
    alice.say_frames(frame)
    relay.settle()
    alice.drop()
    relay.advance(3 * READ_AGAIN_MS)
    assert not alice.frames


def test_one_that_is_removed_meanwhile_is_refused(relay: RelayHarness, alice: HarnessClient) -> None:
    bob = relay.connect("Bob")
    (frame,) = say_and_miss_the_answers(relay, alice, "one")
    bob.ack(bob.take_one("DELIVER"))
    relay.store.fail_next_read()
    alice.say_frames(frame)
    relay.advance(READ_AGAIN_MS // 2)
    relay.store.prune(relay.wall_ms + 1_000_000_000, 1_000, lambda _outcome: None)
    relay.settle()
    relay.advance(2 * READ_AGAIN_MS)
    assert "is being removed" in alice.payload("NACK")["message"]


def test_what_became_of_it_waits_for_the_store_as_well(relay: RelayHarness, alice: HarnessClient) -> None:
    bob = relay.connect("Bob")
    frame = alice.message("Bob", "one", meta={"requires_ack": True})
    alice.say_frames(frame)
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(READ_AGAIN_MS)
    alice.take()
    relay.store.hold()
    alice.say_frames(frame)
    relay.turn(lambda: relay.store.step_held() or None)  # the receipt is read
    assert len(alice.stored()) == 1
    relay.store.fail_next_read(2)
    relay.store.release()
    relay.settle()
    assert not alice.frames
    relay.advance(3 * READ_AGAIN_MS)
    assert [answer["by"] for answer in alice.delivered()] == ["Bob"]
    relay.advance(3 * READ_AGAIN_MS)
    assert not alice.frames
