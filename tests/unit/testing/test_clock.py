from __future__ import annotations

import pytest

from agent_relay.testing.clock import ManualClock


def test_it_stands_still_until_it_is_moved() -> None:
    clock = ManualClock(steady_ms=5, wall_ms=7_000)
    assert (clock.steady_ms(), clock.wall_ms(), clock.monotonic(), clock.time()) == (5, 7_000, 0.005, 7.0)
    clock.advance(1_000)
    assert (clock.steady_ms(), clock.wall_ms()) == (1_005, 8_000)


def test_only_the_wall_clock_can_be_set_back() -> None:
    clock = ManualClock()
    before = clock.steady_ms()
    clock.set_wall(1)
    assert (clock.steady_ms(), clock.wall_ms()) == (before, 1)
    with pytest.raises(ValueError, match="set_wall"):
        clock.advance(-1)
