"""What tests of ARC's clients share: running with a deadline, waiting for a condition, and not waiting long to come back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from agent_relay.arc import Patience
from agent_relay.protocol.retry import RetryPolicy

QUICK = Patience(RetryPolicy(base_ms=10, cap_ms=100, jitter=0.1))


def run(main: Callable[[], Awaitable[None]], deadline_s: float = 60.0) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(deadline_s):
            await main()

    asyncio.run(bounded())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)
