from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.retry import RECONNECT, RECONNECT_ATTEMPTS, REDELIVERY, RetryPolicy

policies = st.builds(
    RetryPolicy, st.integers(1, 10_000), st.integers(1, 100_000), st.floats(0, 1), st.integers(1, 10)
)  # fmt: skip
randoms = st.floats(0, 1, exclude_max=True)


def test_the_policy_of_the_contract() -> None:
    assert RetryPolicy(300, 30_000, 0.2) == REDELIVERY
    assert [REDELIVERY.delay_ms(attempt, 0.5) for attempt in range(1, 10)] == [
        300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 30_000, 30_000,
    ]  # fmt: skip
    assert REDELIVERY.delay_ms(1, 0.0) == 240
    assert REDELIVERY.delay_ms(1, 0.999_999_9) == 360


def test_reconnecting() -> None:
    assert [RECONNECT.delay_ms(attempt, 0.5) for attempt in (1, 2, 9, 10)] == [100, 200, 25_600, 30_000]
    assert RECONNECT_ATTEMPTS == 10


@given(policies, st.integers(1, 10_000), randoms)
def test_within_the_jitter_of_the_undisturbed_wait(policy: RetryPolicy, attempt: int, random: float) -> None:
    delay = policy.delay_ms(attempt, random)
    calm = min(policy.base_ms * policy.factor ** (attempt - 1), policy.cap_ms) if attempt < 64 else policy.delay_ms(attempt, 0.5)
    assert isinstance(delay, int)
    assert calm * (1 - policy.jitter) - 1 <= delay <= calm * (1 + policy.jitter) + 1


@given(policies, st.integers(1, 200))
def test_a_later_attempt_never_waits_less(policy: RetryPolicy, attempt: int) -> None:
    assert policy.delay_ms(attempt, 0.5) <= policy.delay_ms(attempt + 1, 0.5)


@pytest.mark.parametrize("attempt", [0, 1])
def test_the_first_wait_is_the_base(attempt: int) -> None:
    assert RetryPolicy(70, 1_000, 0.0).delay_ms(attempt, 0.9) == 70
