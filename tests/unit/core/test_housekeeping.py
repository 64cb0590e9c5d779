"""What is too old is let go: messages, dead letters, agents; never what is still owed."""

from __future__ import annotations

from tests.support.harness import HarnessClient, RelayHarness

HOUR_MS = 3_600_000
ROUND_MS = 20_000  # longer than the pause between two rounds


def start() -> tuple[RelayHarness, HarnessClient, HarnessClient]:
    relay = RelayHarness(message_retention_ms=HOUR_MS, message_ttl_ms=100 * HOUR_MS)
    return relay, relay.connect("Alice"), relay.connect("Bob")


def names(relay: RelayHarness) -> set[str]:
    return {agent.name for agent in relay.relay.queries.agents()}


def test_old_messages_go_in_small_steps_without_a_pause_between() -> None:
    relay, alice, bob = start()
    for _ in range(1_300):
        alice.send("Bob")
        bob.ack(bob.take_one("DELIVER"))
    relay.advance(200)
    relay.advance(HOUR_MS - 200)
    assert relay.store.stats().messages == 1_300
    relay.advance(ROUND_MS, step_ms=50)
    assert relay.store.stats().messages == 0


def test_what_is_still_owed_stays() -> None:
    relay, alice, bob = start()
    bob.drop()
    alice.send("Bob", "still owed")
    relay.advance(2 * HOUR_MS)
    assert relay.connect("Bob", token=bob.token).bodies() == ["still owed"]


def test_an_agent_that_has_been_away_for_long_is_a_stranger_again() -> None:
    relay, alice, bob = start()
    bob.say("SUBSCRIBE", {"topic": "news"})
    bob.say("CHANNEL_JOIN", {"channel": "#dev"})
    bob.drop()
    relay.advance(HOUR_MS - ROUND_MS)
    assert names(relay) == {"Alice", "Bob"}
    relay.advance(2 * ROUND_MS)
    assert names(relay) == {"Alice"}
    assert relay.log.named("forgotten") == [{"agent": "Bob"}]
    alice.send("Bob")
    assert alice.payload("NACK")["code"] == "AGENT_NOT_FOUND"
    relay.advance(1_000)
    relay.restart()
    assert names(relay) == {"Alice"}
    newcomer = relay.connect("bob", uid=4_242)
    assert newcomer.welcome["agent"] == "bob"
    assert not relay.relay.registry.listeners("news")


def test_a_forgotten_agent_that_returns_starts_at_one() -> None:
    relay, alice, bob = start()
    alice.send("Bob")
    bob.ack(bob.take_one("DELIVER"))
    bob.drop()
    relay.advance(HOUR_MS + ROUND_MS)
    again = relay.connect("Bob", token=bob.token)
    assert again.welcome["session_id"] != bob.welcome["session_id"]
    alice.send("Bob")
    assert again.take_one("DELIVER")["delivery"]["seq"] == 1


def test_whoever_is_connected_or_owed_something_is_not_forgotten() -> None:
    relay, alice, _bob = start()
    relay.connect("Carol").drop()
    alice.send("Carol")
    relay.advance(3 * HOUR_MS)
    assert names(relay) == {"Alice", "Bob", "Carol"}


def test_old_dead_letters_go() -> None:
    relay, alice, _bob = start()
    relay.connect("Carol").drop()
    alice.send("Carol", meta={"ttl_ms": 100})
    relay.advance(1_000)
    alice.take()
    relay.advance(HOUR_MS + ROUND_MS)
    alice.say("HISTORY", {"view": "dead_letters"})
    assert alice.payload("HISTORY_RESULT")["messages"] == []
    assert relay.relay.queries.server()["dead_letters"] == 0
    relay.advance(ROUND_MS)
    relay.restart()
    assert relay.relay.queries.server()["dead_letters"] == 0


def test_many_old_dead_letters_go_page_by_page_and_young_ones_stay() -> None:
    relay, alice, _bob = start()
    relay.connect("Carol").drop()
    frames = [alice.message("Carol", meta={"ttl_ms": 100}) for _ in range(1_000)]
    alice.say_frames(*frames)
    relay.advance(HOUR_MS - ROUND_MS)
    alice.send("Carol", meta={"ttl_ms": 100})
    relay.advance(1_000)
    assert relay.relay.queries.server()["dead_letters"] == 1_001
    relay.advance(2 * ROUND_MS, step_ms=50)
    assert relay.relay.queries.server()["dead_letters"] == 1
    relay.restart()
    assert relay.relay.queries.server()["dead_letters"] == 1


def test_a_store_that_cannot_prune_now_is_asked_again() -> None:
    relay, alice, bob = start()
    alice.send("Bob")
    bob.ack(bob.take_one("DELIVER"))
    relay.advance(HOUR_MS)
    relay.store.fail_next_read()
    relay.advance(2 * ROUND_MS)
    assert relay.store.stats().messages == 0
