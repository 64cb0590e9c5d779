"""Turns: begun by the first thing that happens, ended once, each connection flushed once."""

from __future__ import annotations

import asyncio

import pytest

from agent_relay.testing.clock import ManualClock
from agent_relay.transports.pump import Pump

from .parts import RecordingRelay, run, until


class Flushed:
    def __init__(self) -> None:
        self.count = 0

    def flush(self) -> None:
        self.count += 1


def test_everything_of_one_iteration_is_one_turn(loop_kind: str) -> None:
    async def test() -> None:
        relay, clock = RecordingRelay(), ManualClock()
        pump: Pump = Pump(asyncio.get_running_loop(), relay, clock)
        happened: list[int] = []
        for number in range(5):
            pump.run(lambda number=number: happened.append(number))  # type: ignore[misc]
        assert happened == [0, 1, 2, 3, 4]
        assert relay.turns == 0
        await until(lambda: relay.turns)
        assert (relay.turns, relay.moments) == (1, [(clock.steady_ms(), clock.wall_ms())])

    run(loop_kind, test)


def test_a_connection_is_flushed_once_after_the_relay_had_its_say(loop_kind: str) -> None:
    async def test() -> None:
        relay = RecordingRelay()
        pump: Pump = Pump(asyncio.get_running_loop(), relay, ManualClock())
        first, second = Flushed(), Flushed()
        flushed_at_turn_end: list[int] = []
        relay.at_turn_end = lambda: (flushed_at_turn_end.append(first.count), pump.will_flush(second))  # type: ignore[assignment, func-returns-value]
        pump.will_flush(first)
        await until(lambda: second.count)
        assert (flushed_at_turn_end[0], first.count, second.count) == (0, 1, 1)

    run(loop_kind, test)


def test_a_turn_that_fails_still_flushes_and_the_next_one_works(loop_kind: str) -> None:
    async def test() -> None:
        errors: list[BaseException] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _loop, context: errors.append(context["exception"]))
        relay, flushed = RecordingRelay(), Flushed()
        pump: Pump = Pump(loop, relay, ManualClock())

        def fail() -> None:
            relay.at_turn_end = None
            raise RuntimeError("ours")

        relay.at_turn_end = fail
        pump.will_flush(flushed)
        await until(lambda: flushed.count)
        pump.will_flush(flushed)
        await until(lambda: flushed.count == 2)
        assert [str(error) for error in errors] == ["ours"]
        assert relay.turns == 2

    run(loop_kind, test)


def test_ending_a_turn_that_has_not_begun_does_nothing() -> None:
    relay = RecordingRelay()
    loop = asyncio.new_event_loop()
    Pump(loop, relay, ManualClock()).end_turn()
    loop.close()
    assert relay.turns == 0


@pytest.mark.parametrize("turns", [1, 3])
def test_each_turn_is_told_its_own_moment(turns: int) -> None:
    async def test() -> None:
        relay, clock = RecordingRelay(), ManualClock()
        pump: Pump = Pump(asyncio.get_running_loop(), relay, clock)
        for number in range(turns):
            clock.advance(10)
            pump.begin_turn()
            await until(lambda number=number: relay.turns > number)  # type: ignore[misc]
        assert [steady for steady, _ in relay.moments] == [1_010 + 10 * number for number in range(turns)]

    run("asyncio", test)


def test_while_the_relay_gathers_nobody_is_served_and_what_came_meanwhile_is_in_the_turn_that_ends_it(loop_kind: str) -> None:
    async def test() -> None:
        relay, slept = RecordingRelay(), list[tuple[float, int]]()
        pump = Pump(asyncio.get_running_loop(), relay, ManualClock(), lambda seconds: slept.append((seconds, relay.turns)))
        relay.is_gathering = True
        pump.run(lambda: None)
        await until(lambda: relay.turns == 2)
        assert not relay.is_gathering  # it was told
        (gathered_s, before), (written_s, after) = slept
        assert (before, after) == (1, 2)
        assert 0 < written_s < gathered_s < 0.001
        pump.run(lambda: None)
        await until(lambda: relay.turns == 3)
        assert len(slept) == 2

    run(loop_kind, test)
