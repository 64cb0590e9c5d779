"""`agents` and `who`: who is connected, and with `--all` everybody the relay knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.reasons import agent_for_programs
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.output.tables import show_left_alone, show_present, show_project

if TYPE_CHECKING:
    from agent_relay.sdk.views import AgentsView

All = Annotated[bool, typer.Option("--all", "-a", help="Also list offline agents.")]


def agents(show_all: All = False, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """List the project's connected agents; with --all, offline ones too.

    With --json, all agents are listed; `connected` tells them apart.
    """
    from agent_relay.cli.wrapper.revival import find_left_alone

    screen = Screen()
    view = _ask(socket, state_dir)
    if as_json:
        project = {"project": view.server.get("project"), "project_name": view.server.get("project_name")}
        screen.json({"agents": [agent_for_programs(agent) for agent in view.agents], "next_cursor": None} | project)
        return 0
    show_project(screen, view.server)
    nobody = "Nobody is connected." if view.agents else "No agent has connected yet."
    show_present(screen, view.agents, nobody, is_all=show_all)
    show_left_alone(screen, find_left_alone(find_place(socket, state_dir)))
    return 0


def who(show_all: All = False, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """List the agents that are connected now."""
    screen = Screen()
    found = _ask(socket, state_dir).agents
    if as_json:
        screen.json({"agents": [agent.raw for agent in found if agent.connected or show_all], "next_cursor": None})
    else:
        show_present(screen, found, "Nobody is connected.", is_all=show_all)
    return 0


def _ask(socket: str | None, state_dir: str | None) -> AgentsView:
    from agent_relay.cli.project.link import ask_agents, run

    return run(ask_agents(find_place(socket, state_dir)))
