"""Agents and projects as tables; the columns that matter least go first where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_relay.cli.output.formats import count, format_span, now_ms
from agent_relay.cli.output.reasons import show_holds
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Column, Part, Screen
from agent_relay.cli.person import YOU, is_you
from agent_relay.protocol.visible_text import reveal

if TYPE_CHECKING:
    from agent_relay.cli.project.projects import Project
    from agent_relay.sdk.views import AgentInfo

_AGENT_COLUMNS = (
    Column("name"),
    Column("state"),
    Column("waiting", right=True),
    Column("last seen", optional=True),
    Column("cli", optional=True),
    Column("task", optional=True),
)
# Only where an agent has something to say there.
_MORE_COLUMNS = (Column("host", optional=True), Column("door", optional=True))
_AGENT_STYLES = {"idle": "green", "working": "cyan", "waiting": "yellow", "offline": "dim"}
_SHOWN_TASK = 40
_NAMED = 3  # offline agents that messages wait for
_PROJECT_COLUMNS = (
    Column("project"), Column("state"), Column("agents", right=True), Column("port", right=True),
    Column("pid", right=True, optional=True), Column("root"),
)  # fmt: skip
_PROJECT_STYLES = {"up": "green", "stale": "yellow", "down": "dim"}


def show_present(screen: Screen, agents: Sequence[AgentInfo], nobody: str, *, is_all: bool) -> None:
    """Those who are connected, and how many others there are; with `is_all` everybody."""
    shown = [agent for agent in agents if agent.connected or is_all]
    if shown:
        show_agents(screen, shown)
    else:
        screen.line(nobody)
    hidden = [agent for agent in agents if not agent.connected]
    if hidden and not is_all:
        waiting = [agent for agent in hidden if agent.queue_depth + agent.inflight]
        mail = sum(agent.queue_depth + agent.inflight for agent in waiting)
        names = ", ".join(clean_line(agent.name) for agent in waiting[:_NAMED]) + (" …" if len(waiting) > _NAMED else "")
        verb = "waits" if mail == 1 else "wait"
        said = f" ({count(mail, 'message')} {verb} for {names})" if waiting else ""
        screen.line((f"{len(hidden)} offline hidden{said}: --all", "yellow" if waiting else "dim"))


def show_agents(screen: Screen, agents: Sequence[AgentInfo]) -> None:
    now = now_ms()
    rows = [[*_row(agent, now), clean_line(agent.host), _door(agent)] for agent in agents]
    columns = (*_AGENT_COLUMNS, *_MORE_COLUMNS)
    said = [i for i in range(len(columns)) if i < len(_AGENT_COLUMNS) or any(row[i] for row in rows)]
    screen.table([columns[i] for i in said], [[row[i] for i in said] for row in rows])
    _show_notes(screen, agents)
    show_holds(screen, agents)


def show_left_alone(screen: Screen, names: Sequence[str]) -> None:
    for name in map(clean_line, names):
        screen.line(
            (name, "bold"), ("  runs, but its wrapper has died: agent-relay attach " + name + " starts it again", "yellow")
        )


def _row(agent: AgentInfo, now: int) -> list[Part]:
    # Both what is on the wire unacknowledged and what is behind it waits for this agent.
    waiting = agent.queue_depth + agent.inflight
    seen = "now" if agent.connected else f"{format_span(max(0, now - agent.last_seen_at))} ago"
    task = clean_line(str(agent.meta.get("task") or ""))
    return [
        (_name(agent.name), "bold"),
        (clean_line(agent.state) + (", paused" if agent.paused else ""), _AGENT_STYLES.get(agent.state, "")),
        (f"{waiting:,}", "yellow" if waiting else "dim"),
        (seen, "dim"),
        clean_line(agent.cli or "-"),
        _shorten(task, _SHOWN_TASK) or "-",
    ]


def _name(name: str) -> str:
    return f"{clean_line(name)} ({YOU})" if is_you(name) else clean_line(name)


def _door(agent: AgentInfo) -> str:
    """The way messages go into its program."""
    return clean_line(agent.door or "")


def _asks(agent: AgentInfo) -> str:
    return f"asks for {count(len(agent.requests), 'decision')}" if agent.requests else ""


def _show_notes(screen: Screen, agents: Sequence[AgentInfo]) -> None:
    """Whole, however narrow the terminal: what an agent asks is never left out for want of room."""
    noted = [(agent.name, note) for agent in agents if (note := _note(agent))]
    if noted:
        screen.line()
    for name, note in noted:
        screen.line((clean_line(name), "bold"), "  ", note)


def _note(agent: AgentInfo) -> str:
    """Its open requests, what it waits for, and why its door is not a better one. Why its messages wait stands below."""
    notes = [
        _asks(agent),
        f"waits for {reveal(agent.waiting_for)}" if agent.waiting_for else "",
        agent.door_note or "",
    ]
    return clean_line("; ".join(filter(None, notes)))


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# --- projects -----------------------------------------------------------------------------------------------------------


def show_project(screen: Screen, server: Mapping[str, Any]) -> None:
    """As the daemon itself says."""
    root = clean_line(str(server.get("project") or ""))
    if root:
        screen.line((clean_line(str(server.get("project_name") or "")), "bold"), (f"  {root}", "dim"))


def show_projects(screen: Screen, projects: Sequence[Project]) -> None:
    rows: list[list[Part]] = [
        [
            (clean_line(project.name), "bold"),
            (project.state, _PROJECT_STYLES[project.state]),
            f"{project.online} of {project.known}",
            str(project.port or "-"),
            str(project.pid or "-"),
            (clean_line(project.root) or "not known", "" if project.root else "dim"),
        ]
        for project in projects
    ]
    screen.table(_PROJECT_COLUMNS, rows)
    if any(project.state == "stale" for project in projects):
        screen.line(("stale: its daemon was killed or does not answer; agent-relay --project ROOT up, or down", "yellow"))
