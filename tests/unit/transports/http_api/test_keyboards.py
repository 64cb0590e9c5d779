"""Whose the keyboard is: one at a time, and for a while."""

from __future__ import annotations

import pytest

from agent_relay.transports.http.errors import HttpError
from agent_relay.transports.http.keyboards import LEASE_MS, Keyboards


class Clock:
    now = 1_000

    def __call__(self) -> int:
        return self.now


def test_the_second_is_refused_and_the_first_keeps_it() -> None:
    clock = Clock()
    keyboards = Keyboards(clock, clock)
    first = keyboards.take("Bob", None, force=False)
    assert first.expires_at == 1_000 + LEASE_MS
    with pytest.raises(HttpError, match="Somebody else") as refused:
        keyboards.take("BOB", None, force=False)
    assert refused.value.status == 409
    assert refused.value.details == {"reason": "keyboard_held", "expires_at": first.expires_at}
    clock.now += 500
    again = keyboards.take("bob", first.holder, force=False)
    assert (again.holder, again.expires_at) == (first.holder, first.expires_at + 500)
    assert keyboards.take("Carol", None, force=False).holder != first.holder


def test_it_runs_out() -> None:
    clock = Clock()
    keyboards = Keyboards(clock, clock)
    first = keyboards.take("Bob", None, force=False)
    clock.now = first.expires_at
    second = keyboards.take("Bob", None, force=False)
    assert second.holder != first.holder
    assert not keyboards.release("Bob", first.holder)
    assert keyboards.release("Bob", second.holder)


def test_it_can_be_taken_by_force_and_a_holder_is_not_made_up() -> None:
    keyboards = Keyboards(Clock(), Clock())
    first = keyboards.take("Bob", "chosen", force=False)
    assert first.holder != "chosen"
    second = keyboards.take("Bob", None, force=True)
    assert second.holder != first.holder
    with pytest.raises(HttpError):
        keyboards.take("Bob", first.holder, force=False)


def test_it_runs_out_also_where_the_wall_clock_is_set_back() -> None:
    steady, wall = Clock(), Clock()
    keyboards = Keyboards(steady, wall)
    first = keyboards.take("Bob", None, force=False)
    wall.now -= 3_600_000
    steady.now += LEASE_MS
    second = keyboards.take("Bob", None, force=False)
    assert second.holder != first.holder
    assert second.expires_at == wall.now + LEASE_MS
