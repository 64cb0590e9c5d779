"""The agent that an editor sees: one of the relay's, chosen by name or, where the editor has a choice of modes, by that.

The editor starts us, on standard input and output. Who speaks to the agents is the person; `connect` makes that connection.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, cast

from acp import PROTOCOL_VERSION, Agent, RequestError, run_agent
from acp.schema import (
    AgentCapabilities,
    Implementation,
    InitializeResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    SessionMode,
    SessionModeState,
    SetSessionModeResponse,
)
from msgspec import Struct

from agent_relay.acp.turn import Turn
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.names import did_you_mean, fold_name
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.views import AgentInfo
from agent_relay.version import __version__


class _Session(Struct, eq=False):
    to: str  # the agent that its prompts are for
    turn: Turn | None = None


class EditorAgent:
    """`name`: of the agent that prompts are for; empty: the editor's choice, and the first one that is connected until then."""

    def __init__(self, connect: Callable[[], Awaitable[RelayClient]], name: str = "") -> None:
        self._connect = connect
        self._name = name
        self._relay: RelayClient | None = None
        self._connecting = asyncio.Lock()
        self._sessions: dict[str, _Session] = {}
        self._editor: Any = None

    def on_connect(self, editor: Any) -> None:
        self._editor = editor

    async def close(self) -> None:
        if self._relay is not None:
            await self._relay.close()

    async def _reach(self) -> RelayClient:
        async with self._connecting:
            if self._relay is None:
                try:
                    self._relay = await self._connect()
                except Exception as error:  # noqa: BLE001 - whatever the reason, the editor shows it
                    raise _refuse(str(error)) from None
            return self._relay

    # --- the protocol ------------------------------------------------------------------------------------------------------

    async def initialize(self, protocol_version: int, **more: Any) -> InitializeResponse:
        del protocol_version, more  # there is one version, and an editor that has another one ends here
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=False, prompt_capabilities=PromptCapabilities(embedded_context=True)
            ),
            agent_info=Implementation(name="agent-relay", title="Agent Relay", version=__version__),
        )

    async def new_session(self, cwd: str, **more: Any) -> NewSessionResponse:
        del cwd, more  # the agents have their own folders
        relay = await self._reach()
        agents = await self._find_agents(relay)
        chosen = self._choose(agents)
        id_ = f"relay-{secrets.token_hex(8)}"
        self._sessions[id_] = _Session(chosen)
        modes = [SessionMode(id=agent.name, name=agent.name, description=_describe(agent)) for agent in agents]
        return NewSessionResponse(session_id=id_, modes=SessionModeState(available_modes=modes, current_mode_id=chosen))

    async def _find_agents(self, relay: RelayClient) -> list[AgentInfo]:
        """Those that can be given something to do: the relay runs them, and they are connected, or were named."""
        view = await relay.agents()
        named = fold_name(self._name)
        return [
            agent
            for agent in view.agents
            if fold_name(agent.name) == named or (agent.connected and agent.door and not self._name)
        ]

    def _choose(self, agents: list[AgentInfo]) -> str:
        if agents:
            return agents[0].name
        if not self._name:
            raise _refuse("No agent runs in this project. Start one: agent-relay spawn Bob gemini")
        raise _refuse(f"There is no agent {self._name}; `agent-relay agents` lists them.")

    async def set_session_mode(self, session_id: str, mode_id: str, **more: Any) -> SetSessionModeResponse:
        del more
        session = self._find(session_id)
        known = [agent.name for agent in await self._find_agents(await self._reach())]
        if mode_id not in known:
            near = did_you_mean(mode_id, known)
            raise _refuse(f"There is no agent {mode_id}{f'; did you mean {near[0]}?' if near else '.'}")
        session.to = mode_id
        return SetSessionModeResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **more: Any) -> PromptResponse:
        del more
        session = self._find(session_id)
        if session.turn is not None:
            raise _refuse("The last prompt is still being answered; cancel it first.")
        turn = session.turn = Turn(await self._reach(), self._editor, session_id, session.to)
        try:
            return PromptResponse(stop_reason="end_turn" if await turn.run(prompt) else "cancelled")
        except RelayError as error:
            raise _refuse(error.message) from None
        finally:
            session.turn = None

    async def cancel(self, session_id: str, **more: Any) -> None:
        del more
        session = self._sessions.get(session_id)
        if session is not None and session.turn is not None:
            await session.turn.cancel()

    def _find(self, session_id: str) -> _Session:
        session = self._sessions.get(session_id)
        if session is None:
            raise RequestError.resource_not_found(session_id)
        return session


async def serve(connect: Callable[[], Awaitable[RelayClient]], name: str = "") -> None:
    """Until the editor closes our input."""
    agent = EditorAgent(connect, name)
    try:
        await run_agent(cast("Agent", agent))
    finally:
        await agent.close()


def _describe(agent: AgentInfo) -> str:
    return f"{agent.cli or 'an agent'}, {agent.state}"


def _refuse(sentence: str) -> RequestError:
    return RequestError(-32603, sentence, {"details": sentence})
