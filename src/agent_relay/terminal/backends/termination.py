"""Ending a program and all it started: asked, then told, then ended."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

from agent_relay.terminal.backends.process_session import session_members, signal_session

_LAST_DEADLINE_S = 5.0
_STEP_S = 0.01


async def end_session(leader: int, ended: asyncio.Future[Any], grace_s: float) -> None:
    """SIGTERM; after half the time SIGHUP, since shells ignore the first; at the end SIGKILL for whoever is left.

    Not both at once: a program that tidies up on SIGTERM seldom knows SIGHUP, and would die of it half-way.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        if ended.done():
            break
        signal_session(leader, number)
        signal_session(leader, signal.SIGCONT)  # a stopped process gets its signals when it goes on
        await asyncio.wait([ended], timeout=grace_s / 2)
    deadline = asyncio.get_running_loop().time() + _LAST_DEADLINE_S
    while session_members(leader) and asyncio.get_running_loop().time() < deadline:
        signal_session(leader, signal.SIGKILL)
        await asyncio.sleep(_STEP_S)  # the kernel takes a moment, and nobody tells us of grandchildren
