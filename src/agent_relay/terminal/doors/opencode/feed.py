"""opencode's stream of events, followed for as long as the program runs: begun again when it breaks, given up when it is over."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

from agent_relay.terminal.doors.loopback_http import HttpFailed, HttpRefused, LoopbackHttp
from agent_relay.terminal.output.transcripts.records import decode_record

SILENCE_S = 45.0  # it sends a sign of life every ten seconds
AGAIN_S = 0.3
REFUSED_S = 2.0  # nobody listens any more: the program has ended
BROKEN_S = 30.0
_log = logging.getLogger("agent_relay.terminal")


class Feed:
    """`catch_up` asks for what may have been missed, whenever the stream has begun; it may raise HttpFailed. `lost` is called
    once, with the reason."""

    def __init__(
        self, http: LoopbackHttp, catch_up: Callable[[], Awaitable[None]], take: Callable[[dict[str, Any]], None],
        lost: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._http = http
        self._catch_up = catch_up
        self._take = take
        self._lost = lost
        self._task: asyncio.Task[None] | None = None
        self._broken_at: float | None = None
        self._caught_up = asyncio.Event()

    async def open(self, seconds: float) -> bool:
        """False: nothing was told within that time."""
        self._task = asyncio.create_task(self._run())
        waiting = asyncio.create_task(self._caught_up.wait())
        try:
            await asyncio.wait([self._task, waiting], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        return self._caught_up.is_set() and not self._task.done()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        reason = ""
        try:
            while not reason:
                reason = await self._follow()
                await asyncio.sleep(AGAIN_S)
        except Exception:  # noqa: BLE001 - a fault must end as a lost door, not as silence
            _log.exception("the events of opencode cannot be followed")
            reason = "The events of opencode can no longer be followed."
        self._lost(reason)

    async def _follow(self) -> str:
        """One stream, from its beginning to its end. Says why there should not be another one."""
        trouble, patience_s = "it ended the stream of events", BROKEN_S
        try:
            events = self._http.events("/event", SILENCE_S)
            async with aclosing(events):
                async for data in events:
                    if self._broken_at is not None or not self._caught_up.is_set():
                        await self._catch_up()
                        self._broken_at = None
                        self._caught_up.set()
                    event = decode_record(data)
                    if event is not None:
                        self._take(event)
        except HttpRefused as error:
            trouble, patience_s = str(error), REFUSED_S
        except HttpFailed as error:
            trouble = str(error)
        now = asyncio.get_running_loop().time()
        self._broken_at = now if self._broken_at is None else self._broken_at
        return f"The server of opencode is gone: {trouble}." if now - self._broken_at >= patience_s else ""
