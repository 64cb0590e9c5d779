"""The wait before trying again: the policy of the wire, with the clock and the dice handed in so that a test needs neither."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from agent_relay.protocol.retry import RECONNECT, RetryPolicy


@dataclass(frozen=True, slots=True)
class Backoff:
    policy: RetryPolicy = RECONNECT
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep)
    random: Callable[[], float] = field(default=random.random)

    async def wait(self, attempt: int, at_least_ms: int | None = None) -> None:
        """The wait after the `attempt`-th failure, or longer where the daemon advised it."""
        await self.sleep(self.policy.delay_s(attempt, self.random(), (at_least_ms or 0) / 1000))
