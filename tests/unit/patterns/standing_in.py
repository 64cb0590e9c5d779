"""Agents inside the test's own process, in the place of CLIs in terminals: a real daemon, real messages, no programs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.messages import Message
from agent_relay.sdk.views import Spawned
from agent_relay.testing.daemon import DaemonProcess

DEADLINE_S = 60.0
SHORT_S = 0.3  # only ever given to agents that do not answer: on a loaded machine others may need longer


async def say_it(message: Message) -> None:
    """Answers with what it was told to say."""
    found = re.search(r"say (.*)", message.body)
    await message.reply(found[1] if found else f"nothing in: {message.body}")


async def stay_silent(message: Message) -> None:
    await message.ack()


async def refuse(message: Message) -> None:
    await message.nack(ErrorCode.REJECTED, "I will not.")


Part = Callable[[Message], Awaitable[None]]
PARTS: dict[str, Part] = {"talker": say_it, "silent": stay_silent, "unwilling": refuse}


class StandIn(RelayClient):
    """A client whose agents play the part that their `cli` names; `refusals` are raised first, one for each start."""

    def __init__(self, name: str, daemon: DaemonProcess) -> None:
        super().__init__(name, socket=daemon.socket)
        self.parts = dict(PARTS)
        self.refusals: list[RelayError] = []
        self.running: dict[str, asyncio.Task[None]] = {}
        self.clients: dict[str, RelayClient] = {}
        self.most_running = 0
        self.started: list[str] = []
        self.released: list[str] = []
        self.strangers: list[str] = []  # that were to be released and are not its own

    async def spawn(self, name: str, cli: str, task: str | None = None, **options: Any) -> Spawned:
        if self.refusals:
            raise self.refusals.pop(0)
        if cli not in self.parts:
            raise RelayError(ErrorCode.INVALID_TARGET, f"{cli} may not be started.", reason="cli_not_allowed")
        agent = RelayClient(name, socket=self.socket)
        try:
            await agent.connect()
        except BaseException:
            await agent.close(0)
            raise
        self.started.append(name)
        self.clients[name] = agent
        self.running[name] = asyncio.create_task(self._play(agent, self.parts[cli]))
        self.most_running = max(self.most_running, len(self.running))
        return Spawned(name, f"ses_{name}")

    async def release(self, name: str, reason: str | None = None) -> None:
        playing = self.running.get(name)
        if playing is None:
            self.strangers.append(name)
            raise RelayError(ErrorCode.INVALID_TARGET, f"{name} has ended.", reason="not_spawned")
        playing.cancel()
        await asyncio.wait([playing])
        del self.running[name]
        self.released.append(name)

    async def _play(self, agent: RelayClient, part: Part) -> None:
        try:
            async for message in agent.messages():
                await part(message)
        finally:
            await agent.close(1)


def play(daemon: DaemonProcess, scene: Callable[[StandIn], Coroutine[Any, Any, None]]) -> None:
    """Afterwards every agent that was started is released."""

    async def main() -> None:
        relay = StandIn("Lead", daemon)
        async with relay, asyncio.timeout(DEADLINE_S):
            await scene(relay)
            assert (sorted(relay.released), relay.running) == (sorted(relay.started), {})

    asyncio.run(main())
