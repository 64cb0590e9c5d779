"""The health of agents: one that is idle at its prompt and gives no result is reminded, and has failed if that does not help."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import NoReturn

from agent_relay.events.types import AgentState
from agent_relay.patterns.ends import call_off, to_the_end
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name
from agent_relay.sdk.client import RelayClient

_REMINDER = "You are idle, and the result of task {id} is still missing. Go on, and give it when you have finished."


class Health:
    """`idle_s`: how long an agent may be idle before it is reminded, and again after that."""

    def __init__(self, relay: RelayClient, idle_s: float) -> None:
        self._relay = relay
        self._idle_s = idle_s
        self._feed = relay.events(["agent.state"])
        self._states: dict[str, str] = {}
        self._changes: dict[str, asyncio.Event] = {}
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Health:
        await self._feed.__aenter__()
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._feed.aclose()
        if self._watching is not None:
            await to_the_end(call_off([self._watching]))

    async def fail(self, agent: str, task_id: str) -> NoReturn:
        """Raises once it has been idle for too long, twice."""
        await self._until_idle(agent)
        await self._relay.send(agent, _REMINDER.format(id=task_id), thread=task_id)
        await self._until_idle(agent)
        raise RelayError(
            ErrorCode.DELIVERY_TIMEOUT, f"{agent} was idle for {self._idle_s:g} seconds, twice, without giving its result.",
            reason="idle",
        )  # fmt: skip

    async def _until_idle(self, agent: str) -> None:
        """Returns when it has been idle for so long without a break."""
        changed = self._changes.setdefault(fold_name(agent), asyncio.Event())
        while True:
            changed.clear()
            is_idle = self._states.get(fold_name(agent)) == "idle"
            try:
                async with asyncio.timeout(self._idle_s if is_idle else None):
                    await changed.wait()
            except TimeoutError:
                return

    async def _watch(self) -> None:
        async for event in self._feed:
            if isinstance(event, AgentState):
                key = fold_name(event.by_agent)
                if self._states.get(key) != event.state:
                    self._states[key] = event.state
                    self._changes.setdefault(key, asyncio.Event()).set()
