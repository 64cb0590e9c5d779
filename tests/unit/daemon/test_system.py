"""The real clock and the real dice."""

from __future__ import annotations

import base64
import time

from agent_relay.daemon.system import SystemClock, SystemEntropy


def test_the_clocks_are_in_milliseconds() -> None:
    clock = SystemClock()
    assert abs(clock.wall_ms() - time.time() * 1_000) < 10_000  # seconds would be a thousand times less
    first = clock.steady_ms()
    deadline = time.monotonic() + 5
    while clock.steady_ms() == first:
        assert time.monotonic() < deadline
    assert clock.steady_ms() - first < 10_000


def test_a_token_is_256_bits_and_never_the_same() -> None:
    tokens = {SystemEntropy().token() for _ in range(100)}
    assert len(tokens) == 100
    assert {len(base64.urlsafe_b64decode(token + "=")) for token in tokens} == {32}


def test_fractions_and_bits_stay_in_their_range() -> None:
    entropy = SystemEntropy()
    assert all(0 <= entropy.fraction() < 1 for _ in range(1_000))
    assert all(0 <= entropy.bits(40) < 1 << 40 for _ in range(1_000))
    assert len({entropy.bits(60) for _ in range(100)}) == 100
