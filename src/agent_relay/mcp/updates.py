"""Updates of resources: follows the relay's events while somebody has subscribed, and says which resource has changed.

A daemon that goes away is looked for again; whoever subscribed is then told that everything may have changed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agent_relay.mcp.speaker import Speaker
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.mcp.resources import INBOX_URI, find_changed
from agent_relay.protocol.names import fold_name

_AGAIN_S = 1.0  # between two looks for a daemon that is not there
_EXCHANGED, _DELIVERED = "message.exchanged", "message.delivered"


class Updates:
    """`tell` is given the address of each resource that has changed; None: any of them may have."""

    def __init__(self, speaker: Speaker, tell: Callable[[str | None], Awaitable[None]]) -> None:
        self._speaker = speaker
        self._tell = tell
        self._following: asyncio.Task[None] | None = None
        self._is_ready = asyncio.Event()

    async def follow(self) -> None:
        """From now on. Returns when nothing that happens is missed any more, or when there is no daemon to ask."""
        if self._following is None:
            self._following = asyncio.create_task(self._follow())
        await self._is_ready.wait()

    async def close(self) -> None:
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following

    async def _follow(self) -> None:
        is_first = True
        while True:
            with contextlib.suppress(RelayError):
                async with self._speaker.observe() as relay, relay.events([_EXCHANGED, _DELIVERED]) as feed:
                    if not is_first:
                        await self._tell(None)
                    self._is_ready.set()
                    async for event in feed:
                        await self._pass_on(event)
            is_first = False
            self._is_ready.set()
            await asyncio.sleep(_AGAIN_S)

    async def _pass_on(self, event: object) -> None:
        to, thread = str(getattr(event, "to", "")), getattr(event, "thread", None)
        if hasattr(event, "body"):
            for uri in find_changed(to, thread, self._speaker.name):
                await self._tell(uri)
        elif fold_name(to) == fold_name(self._speaker.name):
            await self._tell(INBOX_URI)
