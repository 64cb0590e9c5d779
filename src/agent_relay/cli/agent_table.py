"""Agents as a table; the columns that matter least go first where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_relay.cli.formats import count, format_span
from agent_relay.cli.hold_notes import show_holds
from agent_relay.cli.message_view import now_ms
from agent_relay.cli.person import YOU, is_you
from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Column, Part, Screen
from agent_relay.protocol.visible_text import reveal

if TYPE_CHECKING:
    from agent_relay.sdk.views import AgentInfo

_COLUMNS = (
    Column("name"),
    Column("state"),
    Column("waiting", right=True),
    Column("last seen", optional=True),
    Column("cli", optional=True),
    Column("task", optional=True),
)
# Only where an agent has something to say there.
_MORE_COLUMNS = (Column("door", optional=True), Column("note", optional=True))
_STYLES = {"idle": "green", "working": "cyan", "waiting": "yellow", "offline": "dim"}
_SHOWN_TASK = 40
_SHOWN_NOTE = 60
_NAMED = 3  # offline agents that messages wait for


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
    rows = [[*_row(agent, now), _door(agent), _note(agent)] for agent in agents]
    columns = (*_COLUMNS, *_MORE_COLUMNS)
    said = [i for i in range(len(columns)) if i < len(_COLUMNS) or any(row[i] for row in rows)]
    screen.table([columns[i] for i in said], [[row[i] for i in said] for row in rows])
    show_holds(screen, agents)


def _row(agent: AgentInfo, now: int) -> list[Part]:
    # Both what is on the wire unacknowledged and what is behind it waits for this agent.
    waiting = agent.queue_depth + agent.inflight
    seen = "now" if agent.connected else f"{format_span(max(0, now - agent.last_seen_at))} ago"
    task = clean_line(str(agent.meta.get("task") or ""))
    return [
        (_name(agent.name), "bold"),
        (clean_line(agent.state) + (", paused" if agent.paused else ""), _STYLES.get(agent.state, "")),
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


def _note(agent: AgentInfo) -> str:
    """Its open requests, what it waits for, and why its door is not a better one. Why its messages wait stands below."""
    notes = [
        _asks(agent),
        f"waits for {reveal(agent.waiting_for)}" if agent.waiting_for else "",
        agent.door_note or "",
    ]
    return _shorten(clean_line("; ".join(filter(None, notes))), _SHOWN_NOTE)


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
