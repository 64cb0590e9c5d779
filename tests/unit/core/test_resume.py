"""RESUME: what a point acknowledges, what it asks to see again, and what is no longer there to be seen."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.harness import Frame, HarnessClient, RelayHarness, connect_pair

HOUR_MS = 3_600_000


def send(alice: HarnessClient, *bodies: str, **options: Any) -> None:
    for body in bodies:
        alice.send("Bob", body, **options)


def resume(relay: RelayHarness, bob: HarnessClient, streams: Any = ()) -> HarnessClient:
    if bob.closed is None:
        bob.drop()
    again = relay.open()
    again.resume("Bob", bob.token, streams)
    sync = again.take("SYNC")
    again.welcome = sync[0]["payload"] if sync else {}
    return again


def point(last_seq: int, peer: str = "Alice", topic: str = "") -> list[dict[str, Any]]:
    return [{"topic": topic, "peer": peer, "last_seq": last_seq}]


def seqs(client: HarnessClient) -> list[tuple[int, int | None]]:
    return [(frame["delivery"]["seq"], frame["delivery"].get("prev_seq")) for frame in client.take("DELIVER")]


def acknowledge(bob: HarnessClient, *places: int) -> list[Frame]:
    """Acknowledges the deliveries at these places, or all of them."""
    delivers = bob.take("DELIVER")
    for place in places or range(len(delivers)):
        bob.ack(delivers[place])
    return delivers


def test_an_exact_point_acknowledges_everything_up_to_it() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2", "3", "4", meta={"requires_ack": True})
    again = resume(relay, bob, point(3))
    assert [receipt["seq"] for receipt in alice.delivered()] == [1, 2, 3]
    assert again.welcome["streams"] == [{"topic": "", "peer": "Alice", "last_seq": 3, "server_last_seq": 4}]
    assert seqs(again) == [(4, None)]


def test_after_an_exact_point_no_gap_is_declared_that_is_none() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2", "3")
    again = resume(relay, bob, point(3))
    send(alice, "4")
    assert seqs(again) == [(4, None)]


def test_a_point_behind_shows_everything_after_it_again() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2", "3", "4")
    originals = acknowledge(bob, 0, 1, 2)
    again = resume(relay, bob, point(1))
    assert again.welcome["streams"] == [{"topic": "", "peer": "Alice", "last_seq": 1, "server_last_seq": 4}]
    shown = again.take("DELIVER")
    assert [frame["payload"]["body"] for frame in shown] == ["2", "3", "4"]
    assert [frame["id"] for frame in shown] == [frame["id"] for frame in originals[1:]]
    assert all(frame["delivery"]["attempt"] > 1 for frame in shown)


def test_what_is_shown_again_is_acknowledged_without_telling_anybody() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2", meta={"requires_ack": True})
    acknowledge(bob)
    alice.take()
    again = resume(relay, bob, point(0))
    acknowledge(again)
    relay.advance(60_000)
    assert not alice.take()
    assert not again.take("DELIVER")


def test_what_was_acknowledged_out_of_order_is_shown_again_too() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2", "3", "4", "5")
    acknowledge(bob, 0, 1, 2, 4)
    assert seqs(resume(relay, bob, point(3))) == [(4, None), (5, None)]


def test_a_gap_of_dead_letters_is_declared_when_it_is_passed_again() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1")
    acknowledge(bob)
    bob.drop()
    send(alice, "2", meta={"ttl_ms": 100})
    relay.advance(200)
    bob = relay.connect("Bob", token=bob.token)
    send(alice, "3")
    acknowledge(bob)
    assert seqs(resume(relay, bob, point(0))) == [(1, None), (3, 1)]


def test_a_map_with_one_peer_is_exact() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2", "3", meta={"requires_ack": True})
    again = resume(relay, bob, {"": {"last_seq": 2}})
    assert len(alice.delivered()) == 2
    assert seqs(again) == [(3, None)]


def test_a_map_with_several_peers_only_shows_again_and_acknowledges_nothing() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    send(alice, "a1", "a2", "a3", meta={"requires_ack": True})
    send(carol, "c1", meta={"requires_ack": True})
    acknowledge(bob, 0, 1, 3)  # a1, a2, c1
    alice.take()
    carol.take()
    again = resume(relay, bob, {"": {"last_seq": 1}})
    assert not alice.delivered()
    assert sorted(again.bodies()) == ["a2", "a3"]


def test_a_map_with_several_peers_from_the_beginning_shows_all_of_them_in_the_order_of_acceptance() -> None:
    relay, alice, bob = connect_pair()
    carol = relay.connect("Carol")
    for number in range(3):
        send(alice, f"a{number}")
        send(carol, f"c{number}")
    acknowledge(bob)
    assert resume(relay, bob, {"": {"last_seq": 0}}).bodies() == ["a0", "c0", "a1", "c1", "a2", "c2"]


def test_a_stream_not_named_goes_on_after_the_last_acknowledged() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2")
    acknowledge(bob, 0)
    assert seqs(resume(relay, bob)) == [(2, None)]


def test_topics_are_streams_of_their_own() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "plain")
    send(alice, "news", topic="news")
    acknowledge(bob)
    again = resume(relay, bob, point(0, topic="news"))
    assert again.bodies() == ["news"]


def test_a_point_from_the_future_acknowledges_no_message_to_come() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1")
    again = resume(relay, bob, point(99))
    send(alice, "2")
    assert seqs(again) == [(2, None)]


def test_a_stream_nobody_knows_is_ignored() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1")
    again = resume(relay, bob, point(5, peer="Stranger") + point(5, topic="unknown"))
    assert seqs(again) == [(1, None)]


def test_pruned_history_is_stale_and_a_fresh_hello_is_heard() -> None:
    relay, alice, bob = connect_pair(message_retention_ms=HOUR_MS)
    send(alice, "1", "2")
    acknowledge(bob)
    relay.advance(HOUR_MS + 60_000)
    send(alice, "3")
    again = resume(relay, bob, point(0))
    refusal = again.payload("NACK")
    assert (refusal["code"], refusal["details"]["code"]) == ("STALE", "RESUME_TOO_OLD")
    assert again.closed is None
    assert not again.frames
    again.hello("Bob", token=bob.token)
    assert again.take_one("WELCOME")
    assert again.bodies() == ["3"]


def test_after_stale_the_same_token_resumes_with_another_point() -> None:
    relay, alice, bob = connect_pair(message_retention_ms=HOUR_MS)
    send(alice, "1")
    acknowledge(bob)
    relay.advance(HOUR_MS + 60_000)
    send(alice, "2")
    again = resume(relay, bob, point(0))
    assert again.take("NACK")
    again.resume("Bob", bob.token, point(1))
    assert again.take_one("SYNC")
    assert again.bodies() == ["2"]


def test_a_history_that_cannot_be_read_now_refuses_and_may_be_tried_again() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1")
    acknowledge(bob)
    relay.store.fail_next_read()
    again = resume(relay, bob, point(0))
    refusal = again.payload("NACK")
    assert (refusal["code"], refusal["retryable"]) == ("SERVICE_UNAVAILABLE", True)
    again.resume("Bob", bob.token, point(0))
    assert again.take_one("SYNC")
    assert again.bodies() == ["1"]


def test_what_comes_while_the_history_is_read_follows_it() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2")
    acknowledge(bob)
    bob.drop()
    relay.advance(200)
    relay.store.hold()
    again = relay.open()
    again.resume("Bob", bob.token, point(0))
    send(alice, "3")
    relay.store.release()
    relay.settle()
    assert [frame["type"] for frame in again.take("SYNC", "DELIVER")] == ["SYNC", "DELIVER", "DELIVER", "DELIVER"]


@pytest.mark.parametrize("leaves_when", ["being stored", "being read"])
def test_a_client_that_leaves_meanwhile_loses_nothing(leaves_when: str) -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1", "2")
    acknowledge(bob, 0)
    bob.drop()
    relay.advance(200)
    relay.store.hold()
    gone = relay.open()
    gone.resume("Bob", bob.token, point(0))
    if leaves_when == "being read":
        relay.store.step_held()
    gone.drop()
    relay.store.release()
    relay.settle()
    assert not gone.frames
    assert seqs(resume(relay, bob, point(0))) == [(1, None), (2, None)]


def test_a_resume_that_cannot_be_stored_is_refused_and_the_token_still_good() -> None:
    relay, alice, bob = connect_pair()
    send(alice, "1")
    bob.drop()
    relay.advance(200)
    relay.store.fail_next()
    refused = resume(relay, bob, point(0))
    assert refused.payload("ERROR")["code"] == "SERVICE_UNAVAILABLE"
    assert refused.closed is not None
    assert seqs(resume(relay, bob, point(0))) == [(1, None)]


def test_a_session_of_nobody_and_another_session_are_too_old() -> None:
    relay, _, bob = connect_pair()
    bob.drop()
    stranger = relay.open()
    stranger.resume("Nobody", "x")
    assert stranger.payload("NACK")["code"] == "RESUME_TOO_OLD"
    wrong = relay.open()
    wrong.resume("Bob", bob.token, session_id="ses_of_another_time")
    assert wrong.payload("NACK")["code"] == "RESUME_TOO_OLD"
    assert wrong.closed is None


def test_resume_keeps_what_hello_agreed_and_may_change_it() -> None:
    relay = RelayHarness()
    alice, bob = relay.connect("Alice"), relay.connect("Bob", max_inflight=1)
    send(alice, "1", "2", "3")
    bob.drop()
    again = relay.open()
    again.resume("Bob", bob.token)
    assert len(again.take("DELIVER")) == 1
    again.welcome = again.payload("SYNC")
    again.drop()
    wide = relay.open()
    wide.resume("Bob", again.token, capabilities={"ack": True, "max_inflight": 2})
    assert len(wide.take("DELIVER")) == 2
