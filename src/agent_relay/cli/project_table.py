"""Projects as people see them: the one a command speaks of, and all of them as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Column, Part, Screen

if TYPE_CHECKING:
    from agent_relay.cli.projects import Project

_COLUMNS = (
    Column("project"), Column("state"), Column("agents", right=True), Column("port", right=True),
    Column("pid", right=True, optional=True), Column("root"),
)  # fmt: skip
_STYLES = {"up": "green", "stale": "yellow", "down": "dim"}


def show_project(screen: Screen, server: Mapping[str, Any]) -> None:
    """As the daemon itself says."""
    root = clean_line(str(server.get("project") or ""))
    if root:
        screen.line((clean_line(str(server.get("project_name") or "")), "bold"), (f"  {root}", "dim"))


def show_projects(screen: Screen, projects: Sequence[Project]) -> None:
    rows: list[list[Part]] = [
        [
            (clean_line(project.name), "bold"),
            (project.state, _STYLES[project.state]),
            f"{project.online} of {project.known}",
            str(project.port or "-"),
            str(project.pid or "-"),
            (clean_line(project.root) or "not known", "" if project.root else "dim"),
        ]
        for project in projects
    ]
    screen.table(_COLUMNS, rows)
    if any(project.state == "stale" for project in projects):
        screen.line(("stale: its daemon was killed or does not answer; agent-relay --project ROOT up, or down", "yellow"))
