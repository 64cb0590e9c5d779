"""`agents` and `who`: everybody the relay knows, and those who are connected now."""

from __future__ import annotations

from agent_relay.cli.agent_table import show_agents
from agent_relay.cli.hold_notes import agent_for_programs
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.screen import Screen


def agents(as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """List every agent the relay knows, connected or not."""
    return _list(as_json, socket, state_dir, connected_only=False)


def who(as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """List the agents that are connected now."""
    return _list(as_json, socket, state_dir, connected_only=True)


def _list(as_json: bool, socket: str | None, state_dir: str | None, *, connected_only: bool) -> int:
    from agent_relay.cli.link import observe, run
    from agent_relay.sdk.views import AgentInfo

    place = find_place(socket, state_dir)

    async def ask() -> list[AgentInfo]:
        async with observe(place) as relay:
            return [agent for agent in (await relay.agents()).agents if agent.connected or not connected_only]

    found = run(ask())
    screen = Screen()
    if as_json:
        screen.json({"agents": [agent_for_programs(agent) for agent in found], "next_cursor": None})
    elif found:
        show_agents(screen, found)
    else:
        screen.line("Nobody is connected." if connected_only else "No agent has connected yet.")
    return 0
