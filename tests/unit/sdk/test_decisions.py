"""Whoever waits for an outcome is woken by it, by a connection that came back, and at last by the clock."""

from __future__ import annotations

import asyncio

from agent_relay.sdk.decisions import Decisions

LONG_S = 60.0


def test_only_those_who_wait_for_it_are_woken() -> None:
    async def main() -> None:
        decisions = Decisions()
        with decisions.watch("prop_1") as one, decisions.watch("prop_1") as another, decisions.watch("prop_2") as other:
            decisions.on_consensus("prop_1")
            await one.wait(LONG_S)
            await another.wait(LONG_S)
            waiting = asyncio.create_task(other.wait(LONG_S))
            await asyncio.sleep(0)
            assert not waiting.done()
            decisions.on_ready()
            await waiting
            await one.wait(LONG_S)
            decisions.on_closed()
            await other.wait(LONG_S)
            await other.wait(0.01)  # nothing comes: it returns all the same
        decisions.on_consensus("prop_1")  # nobody waits any more

    asyncio.run(main())


def test_what_comes_before_somebody_waits_is_not_missed() -> None:
    async def main() -> None:
        decisions = Decisions()
        with decisions.watch("prop_1") as watched:
            decisions.on_consensus("prop_1")
            async with asyncio.timeout(LONG_S):
                await watched.wait(2 * LONG_S)

    asyncio.run(main())
