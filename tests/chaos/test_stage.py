"""The stage itself: it comes to rest where there is nothing left to wait for."""

from __future__ import annotations

import asyncio

from tests.chaos.faults import FAMILIES
from tests.chaos.habits import CALM
from tests.chaos.stage import Stage


def test_agents_that_have_nothing_open_come_to_rest() -> None:
    async def rest() -> list[str]:
        async with Stage("rest", ["A", "B"], CALM, FAMILIES["suspend"].flags) as stage:
            await stage.settle()
            return [entry.kind for entry in stage.history.entries]

    kinds = asyncio.run(rest())
    assert "settled" in kinds
    assert "unsettled" not in kinds
