"""Agents that the daemon starts: what the core asks of whoever runs their wrappers, and what it is told.

A wrapper is a process of its own that outlives the daemon, connects by itself and comes back by itself. `SessionRow` is what
the next daemon must know to find it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct


class SessionStatus(StrEnum):
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"  # it was released, and its program has not ended yet
    ENDED = "ended"


class EndReason(StrEnum):
    COMPLETED = "completed"  # the program ended with status 0
    RELEASED = "released"
    CRASHED = "crashed"  # it ended with another status, or nobody can say how


class SessionRow(Struct, omit_defaults=True):
    id: str
    name: str
    cli: str
    cwd: str  # empty: the project's folder
    backend: str
    spawned_by: str
    started_at: int
    status: SessionStatus = SessionStatus.STARTING
    request_id: str = ""  # of the SPAWN, so that a repeated one is the same
    permission_mode: str | None = None  # as the CLI calls it; None: what its own settings say
    sandbox: dict[str, str] | None = None  # the rules of the wall around it; empty: those of the settings
    task: str | None = None
    is_task_sent: bool = False
    pid: int = 0  # of the wrapper; 0: not known yet
    pid_started: str = ""  # tells the process from a later one with the same number
    released_by: str = ""
    release_id: str = ""  # of the RELEASE
    release_note: str = ""
    ended_at: int | None = None
    reason: EndReason | None = None
    exit_code: int | None = None
    is_ephemeral: bool = False  # its name goes when it ends, with what waits for it
    is_failed: bool = False  # it never ran


class AgentService(Protocol):
    """Nothing here waits. What comes of it is told to the listener, later and in a turn of its own."""

    def start(self, session: SessionRow, environment: Mapping[str, str]) -> None:
        """Raises RelayError where the program or the folder is not there; fills in the folder."""
        ...

    def adopt(self, session: SessionRow) -> None:
        """Watches a wrapper that another daemon started; one that is gone is told as ended."""
        ...

    def stop(self, session: SessionRow, *, force: bool) -> None:
        """Asks the wrapper to end, or ends it."""
        ...

    def save(self, sessions: Sequence[SessionRow]) -> None:
        """Keeps these, in place of those before, for the next daemon."""
        ...


class AgentListener(Protocol):
    def launched(self, session_id: str, pid: int, pid_started: str) -> None:
        """There is a wrapper; its program may still fail to start."""
        ...

    def running(self, session_id: str) -> None: ...

    def failed(self, session_id: str, sentence: str) -> None:
        """It never ran; the sentence says why."""
        ...

    def ended(self, session_id: str, exit_code: int | None) -> None:
        """None: nobody can say how."""
        ...
