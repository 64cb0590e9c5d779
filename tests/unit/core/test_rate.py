"""A bucket of one second's worth that refills steadily."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.core.rate import Allowance
from tests.support.harness import RelayHarness


def test_a_second_s_worth_goes_at_once_and_then_one_by_one() -> None:
    allowance = Allowance(10, 0)
    assert [allowance.take(0) for _ in range(10)] == [0] * 10
    assert allowance.take(0) == 100
    assert allowance.take(99) == 1
    assert allowance.take(100) == 0
    assert allowance.take(100) == 100


def test_silence_saves_up_no_more_than_a_second_s_worth() -> None:
    allowance = Allowance(3, 0)
    assert [allowance.take(3_600_000) for _ in range(4)].count(0) == 3


@given(st.integers(1, 1_000), st.lists(st.integers(0, 50), min_size=1, max_size=200))
def test_no_second_ever_carries_more_than_two_seconds_worth(per_second: int, pauses: list[int]) -> None:
    allowance, now, granted = Allowance(per_second, 0), 0, []
    for pause in pauses:
        now += pause
        if allowance.take(now) == 0:
            granted.append(now)
    for start in granted:
        assert sum(start <= at < start + 1_000 for at in granted) <= 2 * per_second


@given(st.integers(1, 1_000), st.integers(1, 50))
def test_whoever_waits_as_long_as_it_was_told_is_let_through(per_second: int, count: int) -> None:
    allowance, now = Allowance(per_second, 0), 0
    for _ in range(per_second + count):
        wait_ms = allowance.take(now)
        while wait_ms:
            assert wait_ms >= 1
            now += wait_ms
            wait_ms = allowance.take(now)


def test_a_client_over_its_limit_is_told_when_to_go_on() -> None:
    relay = RelayHarness(rate_limit=2)
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    for _ in range(3):
        alice.send("Bob")
    refusal = alice.payload("NACK")
    assert (refusal["code"], refusal["retryable"], refusal["retry_after_ms"]) == ("RATE_LIMITED", True, 500)
    assert refusal["details"] == {"limit_per_second": 2}
    relay.advance(500)
    alice.send("Bob")
    assert not alice.take("NACK")
    assert len(bob.bodies()) == 3


def test_each_connection_has_its_own_allowance() -> None:
    relay = RelayHarness(rate_limit=1)
    alice, bob = relay.connect("Alice"), relay.connect("Bob")
    alice.send("Bob")
    bob.send("Alice")
    assert not alice.take("NACK") + bob.take("NACK")


def test_only_messages_count() -> None:
    relay = RelayHarness(rate_limit=1)
    alice = relay.connect("Alice")
    for nonce in range(20):
        alice.say("PING", {"nonce": nonce})
    assert len(alice.take("PONG")) == 20
