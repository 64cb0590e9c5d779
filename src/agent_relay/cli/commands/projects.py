"""`projects`: every daemon of this user. `ps`: every agent of every project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.formats import format_span
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Column, Part, Screen

if TYPE_CHECKING:
    from agent_relay.cli.project.projects import Project
    from agent_relay.sdk.views import AgentInfo, AgentsView

_COLUMNS = (
    Column("name"), Column("project"), Column("cli"), Column("state"), Column("pid", right=True, optional=True),
    Column("since", optional=True),
)  # fmt: skip
NO_DAEMON = "no daemon"  # it runs, and its relay does not


def projects(as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """List your projects: state of the daemon, connected agents, port and folder.

    A daemon whose directory is outside AGENT_RELAY_HOME is only listed if --state-dir names it.
    """
    from agent_relay.cli.output.tables import show_projects

    found = _list(socket, state_dir)
    screen = Screen()
    if as_json:
        screen.json({"projects": [project.describe() for project in found]})
    elif found:
        show_projects(screen, found)
    else:
        screen.line("There are no projects yet; `agent-relay up` creates one.")
    return 0


def ps(
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Also list offline agents.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """List the connected or running agents of all your projects; with --all, offline ones too."""
    from agent_relay.cli.project.projects import UP

    found = _list(socket, state_dir)
    views = _ask([project for project in found if project.state == UP])
    rows = [row for project in found for row in _rows(project, views.get(project.id)) if row["running"] or show_all]
    screen = Screen()
    if as_json:
        screen.json({"agents": rows})
    elif rows:
        screen.table(_COLUMNS, [_show(row) for row in rows])
    else:
        screen.line("No agents are running." if show_all else "No agents are running; --all also lists offline ones.")
    return 0


def _list(socket: str | None, state_dir: str | None) -> list[Project]:
    from agent_relay.cli.project.projects import list_projects, look_at

    place = find_place(socket, state_dir)
    found = list_projects(place.home)
    if state_dir is not None and all(project.state_dir != place.state_dir for project in found):
        found.append(look_at(place.state_dir, place.socket))
    return found


def _ask(found: list[Project]) -> dict[str, AgentsView]:
    """The answer of each daemon, by the project's id; those that do not answer are left out."""
    import asyncio

    from agent_relay.cli.project.link import ask_agents, run
    from agent_relay.protocol.errors import RelayError

    async def ask(project: Project) -> AgentsView | None:
        try:
            return await ask_agents(project.socket)
        except (RelayError, OSError):
            return None

    async def ask_all() -> list[AgentsView | None]:
        return await asyncio.gather(*map(ask, found))

    views = run(ask_all()) if found else []
    return {project.id: view for project, view in zip(found, views, strict=True) if view is not None}


def _rows(project: Project, view: AgentsView | None) -> list[dict[str, Any]]:
    from agent_relay.cli.wrapper.wrappers import find_wrappers

    about = {"project": project.name, "root": project.root or None}
    known = [] if view is None else [_row(agent) | about for agent in view.agents]
    here = {row["name"].lower() for row in known if row["running"]}
    lost = {wrapper.name.lower(): wrapper for wrapper in find_wrappers(project.state_dir) if wrapper.name.lower() not in here}
    rows = [row for row in known if row["name"].lower() not in lost]
    alone: dict[str, Any] = {"cli": None, "state": NO_DAEMON, "since": None, "running": True}
    return [*rows, *({"name": wrapper.name, "pid": wrapper.pid} | alone | about for wrapper in lost.values())]


def _row(agent: AgentInfo) -> dict[str, Any]:
    pid = agent.meta.get("pid")
    return {
        "name": agent.name, "cli": agent.cli, "state": agent.state,
        "pid": pid if agent.connected and isinstance(pid, int) else None, "since": _began(agent), "running": agent.connected,
    }  # fmt: skip


def _began(agent: AgentInfo) -> int | None:
    """The beginning of its session, which its id tells."""
    from agent_relay.protocol.ulid import number_of, time_of_number

    try:
        return time_of_number(number_of(agent.session_id.removeprefix("ses_")))
    except ValueError:
        return None


def _show(row: dict[str, Any]) -> list[Part]:
    from agent_relay.cli.output.formats import now_ms

    since = "-" if row["since"] is None else f"{format_span(max(0, now_ms() - row['since']))} ago"
    return [
        (clean_line(row["name"]), "bold"), clean_line(row["project"]), clean_line(row["cli"] or "-"), clean_line(row["state"]),
        str(row["pid"] or "-"), (since, "dim"),
    ]  # fmt: skip
