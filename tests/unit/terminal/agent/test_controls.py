"""Pauses: until somebody says otherwise, and for a time."""

from __future__ import annotations

import asyncio

from agent_relay.terminal.agent.controls import Pauses

LONG_MS = 60_000


def test_a_pause_lasts_until_it_is_ended() -> None:
    told: list[tuple[bool, str, bool]] = []
    pauses = Pauses(lambda *state: told.append(state))
    pauses.pause(by="Anna")
    pauses.resume()
    assert told == [(True, "Anna", False), (False, "", False)]


def test_one_for_a_time_ends_by_itself() -> None:
    async def play() -> None:
        told: list[bool] = []
        over = asyncio.Event()
        pauses = Pauses(lambda is_paused, *_: (told.append(is_paused), over.set() if not is_paused else None)[0])
        pauses.pause(20)
        assert told == [True]
        async with asyncio.timeout(10):
            await over.wait()
        assert told == [True, False]

    asyncio.run(play())


def test_saying_it_again_puts_the_end_off() -> None:
    async def play() -> None:
        told: list[bool] = []
        pauses = Pauses(lambda is_paused, *_: told.append(is_paused))
        pauses.pause(1)
        pauses.pause(LONG_MS)
        await asyncio.sleep(0.02)  # the first one's time is over
        assert told == [True, True]
        pauses.pause(0)
        assert told[-1] is False

    asyncio.run(play())


def test_the_end_of_the_time_leaves_the_other_kind_alone() -> None:
    async def play() -> None:
        told: list[bool] = []
        pauses = Pauses(lambda is_paused, *_: told.append(is_paused))
        pauses.pause()
        pauses.pause(LONG_MS)
        pauses.pause(0)
        assert told[-1] is True
        pauses.pause(LONG_MS)
        pauses.resume()
        assert told[-1] is False

    asyncio.run(play())


def test_one_for_a_time_is_somebody_at_the_keyboard_unless_there_is_the_other_kind() -> None:
    async def play() -> None:
        told: list[tuple[bool, str, bool]] = []
        pauses = Pauses(lambda *state: told.append(state))
        pauses.pause(LONG_MS)
        assert told[-1] == (True, "", True)
        pauses.pause(by="Anna")
        assert told[-1] == (True, "Anna", False)
        pauses.resume()

    asyncio.run(play())
