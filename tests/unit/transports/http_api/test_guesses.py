"""Who guesses waits, longer and longer; nobody else does."""

from __future__ import annotations

import asyncio

import pytest

from agent_relay.transports.http import guesses
from agent_relay.transports.http.errors import HttpError
from agent_relay.transports.http.guesses import FORGOTTEN_MS, FREE, LONGEST_S, MOST_ADDRESSES, MOST_WAITING, Guesses


class Clock:
    now = 0

    def __call__(self) -> int:
        return self.now


def waits(clock: Clock, *tries: tuple[str, str], made: Guesses | None = None) -> list[float]:
    """How long each of them is kept waiting."""
    found: list[float] = []

    async def sleep(seconds: float) -> None:
        found[-1] = seconds

    async def play() -> None:
        desk = made or Guesses(clock)
        desk._sleep = sleep
        for address, guess in tries:
            found.append(0.0)
            await desk.punish(address, guess)

    asyncio.run(play())
    return found


def test_guesses_are_answered_later_and_later() -> None:
    found = waits(Clock(), *(("192.0.2.1", str(number)) for number in range(FREE + 8)))
    assert found[:FREE] == [0.0] * FREE
    assert found[FREE:] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, LONGEST_S, LONGEST_S])


def test_the_same_wrong_token_again_is_no_guess() -> None:
    assert set(waits(Clock(), *[("192.0.2.1", "stale")] * 100)) == {0.0}


def test_others_do_not_wait_and_one_machine_is_one() -> None:
    tries = [(f"127.0.0.{number}", str(number)) for number in range(1, FREE + 2)]
    found = waits(Clock(), *tries, ("192.0.2.1", "x"))
    assert found[-2] > 0
    assert found[-1] == 0


def test_it_is_forgotten_after_a_while() -> None:
    clock = Clock()
    made = Guesses(clock)
    assert waits(clock, *(("192.0.2.1", str(number)) for number in range(FREE + 2)), made=made)[-1] > 0
    clock.now += FORGOTTEN_MS
    assert waits(clock, ("192.0.2.1", "another"), made=made) == [0.0]


def test_what_is_remembered_is_bounded() -> None:
    made = Guesses(Clock())
    waits(Clock(), *((f"10.0.{number // 250}.{number % 250}", "x") for number in range(2 * MOST_ADDRESSES)), made=made)
    assert len(made._records) == MOST_ADDRESSES
    waits(Clock(), *(("192.0.2.1", str(number)) for number in range(1_000)), made=made)
    assert len(made._records["192.0.2.1"].last) == guesses._REMEMBERED


def test_no_more_than_so_many_wait_at_once() -> None:
    async def play() -> None:
        made = Guesses(Clock(), lambda _: asyncio.Event().wait())
        for number in range(FREE):
            await made.punish("192.0.2.1", str(number))
        waiting = [asyncio.create_task(made.punish("192.0.2.1", f"w{number}")) for number in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(HttpError) as refused:
            await made.punish("192.0.2.1", "one more")
        assert refused.value.status == 429
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(made.punish("192.0.2.1", "there is room again"), 0.01)

    asyncio.run(play())
