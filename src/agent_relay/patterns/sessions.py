"""The sessions of a run's agents, as the relay's events tell of them: whether they have ended, and what they used."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any

from agent_relay.events.costs import Breakdown, CostBook, read_usage
from agent_relay.events.prices import Prices
from agent_relay.events.types import AgentSpawned, SessionEnded, TokensUsed
from agent_relay.patterns.ends import call_off, to_the_end
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost

_SETTLE_S = 2.0  # for the last events of agents that have ended to come


class Sessions:
    """Those that have ended since the block began: an agent may be gone before its start was answered."""

    def __init__(self, relay: RelayClient, prices: Prices | None = None) -> None:
        self._feed = relay.events(["agent.spawned", "session.ended", "tokens.used"])
        self._ends: dict[str, asyncio.Future[str]] = {}
        self._begun: set[str] = set()
        self._watching: asyncio.Task[None] | None = None
        self._used: list[TokensUsed] = []
        self._prices = prices or Prices()

    async def __aenter__(self) -> Sessions:
        await self._feed.__aenter__()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._feed.aclose()
        if self._watching is not None:
            await to_the_end(call_off([self._watching]))

    async def reason(self, session_id: str) -> str:
        """The end of a session, as soon as it has come. Raises when that cannot be known any more."""
        assert self._watching is not None
        end = self._end_of(session_id)
        waited_for: set[asyncio.Future[Any]] = {end, self._watching}
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        if not end.done():
            self._watching.result()
            raise ConnectionLost("The client was closed.", reason="closed")
        return end.result()

    async def count_usage(self, session_ids: set[str]) -> Breakdown:
        """The tokens of these sessions. An agent's last usage is told before its end, which is waited for, but not for long."""
        ends = [self._end_of(session_id) for session_id in session_ids & self._begun]
        if ends and self._watching is not None and not self._watching.done():
            await asyncio.wait(ends, timeout=_SETTLE_S)
        book = CostBook(self._prices)
        for event in self._used:
            if event.session_id in session_ids:
                book.add(read_usage(event))
        return book.report().total

    async def _watch(self) -> None:
        async for event in self._feed:
            match event:
                case SessionEnded(session_id=session_id, reason=reason) if not self._end_of(session_id).done():
                    self._end_of(session_id).set_result(reason)
                case AgentSpawned(session_id=session_id):
                    self._begun.add(session_id)
                case TokensUsed():
                    self._used.append(event)

    def _end_of(self, session_id: str) -> asyncio.Future[str]:
        if session_id not in self._ends:
            self._ends[session_id] = asyncio.get_running_loop().create_future()
        return self._ends[session_id]
