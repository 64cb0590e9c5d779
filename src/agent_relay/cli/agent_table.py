"""Agents as a table; the columns that matter least go first where the terminal is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_relay.cli.formats import format_span
from agent_relay.cli.message_view import now_ms
from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Column, Part, Screen

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
_STYLES = {"idle": "green", "working": "cyan", "waiting": "yellow", "offline": "dim"}
_SHOWN_TASK = 40


def show_agents(screen: Screen, agents: Sequence[AgentInfo]) -> None:
    now = now_ms()
    screen.table(_COLUMNS, [_row(agent, now) for agent in agents])


def _row(agent: AgentInfo, now: int) -> list[Part]:
    # Both what is on the wire unacknowledged and what is behind it waits for this agent.
    waiting = agent.queue_depth + agent.inflight
    seen = "now" if agent.connected else f"{format_span(max(0, now - agent.last_seen_at))} ago"
    task = clean_line(str(agent.meta.get("task") or ""))
    return [
        (clean_line(agent.name), "bold"),
        (clean_line(agent.state), _STYLES.get(agent.state, "")),
        (f"{waiting:,}", "yellow" if waiting else "dim"),
        (seen, "dim"),
        clean_line(agent.cli or "-"),
        (task if len(task) <= _SHOWN_TASK else task[: _SHOWN_TASK - 1] + "…") or "-",
    ]
