"""The moment of a turn, and ids for the daemon's own frames."""

from __future__ import annotations

from agent_relay.core.context import Context
from agent_relay.core.limits import Limits
from tests.support.harness import FixedEntropy, RecordingLog, RelayHarness


def make_context(entropy: FixedEntropy) -> Context:
    return Context(Limits(), entropy, RecordingLog(), 0, 1, 2)


def test_frame_ids_are_unique_within_a_run_and_between_runs() -> None:
    entropy = FixedEntropy()
    runs = [make_context(entropy), make_context(entropy)]
    ids = [context.frame_id() for context in runs for _ in range(1_000)]
    assert len(set(ids)) == len(ids)
    assert max(map(len, ids)) <= 128


def test_everything_said_in_a_turn_carries_the_moment_of_that_turn() -> None:
    relay = RelayHarness()
    alice = relay.connect("Alice")
    relay.advance(12_345)
    alice.say("PING", {"nonce": 1})
    assert alice.take_one("PONG")["ts"] == relay.wall_ms
