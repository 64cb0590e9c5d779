"""Answers about agents that the daemon starts: the programs there are, the sessions, and how one ended."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class CliView(Struct, rename="camel"):
    """`permission_modes` are those it may be started with; `install`, the command its makers name ("": not known)."""

    name: str
    is_installed: bool
    permission_modes: list[str]
    takes_model: bool
    install: str


class CliList(Struct):
    clis: list[CliView]


class StartedSession(Struct, rename="camel"):
    session_id: str
    agent_name: str
    status: Literal["starting"] = "starting"


class SessionView(Struct, rename="camel"):
    """`offline`: of an agent that the daemon did not start, and that is not connected now."""

    session_id: str
    agent_name: str
    cli: str | None
    status: Literal["starting", "running", "ending", "ended", "offline"]
    started_at: int
    cwd: str | None = None
    backend: str | None = None
    transport: str = "terminal"  # or `acp`, by the Agent Client Protocol
    host: str = ""  # of the cluster; "": there is no cluster
    permission_mode: str | None = None  # None: what its CLI's own settings say
    spawned_by: str | None = None  # None: it connected by itself
    task: str | None = None
    ended_at: int | None = None
    reason: str | None = None
    exit_code: int | None = None


class SessionList(Struct):
    sessions: list[SessionView]
    next_cursor: str | None = None


class Summary(Struct, rename="camel"):
    """`estimated_cost` in US dollars; None where a price is not known."""

    duration: int  # milliseconds
    item_count: int
    files_modified: int
    commands_run: int
    total_tokens: int
    estimated_cost: float | None


class SessionEnd(Struct):
    summary: Summary
    success: bool = True
