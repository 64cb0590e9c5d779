"""Agents that the daemon starts: what the core asks of whoever runs their wrappers, and what it is told.

A wrapper is a process of its own that outlives the daemon, connects by itself and comes back by itself. `SessionRow` is what
the next daemon must know to find it again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from agent_relay.protocol.hosts import HostFacts


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
    variables: list[str] = []  # names of those it was given
    known_model: str | None = None  # as its wrapper said when it ran
    version: str | None = None  # of its program, likewise
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
    failure: str = ""  # why, where another host said so
    host: str = ""  # of the cluster, where it runs; "": there is no cluster
    asked_on: str = ""  # the host of whoever wanted it
    run: str = ""  # the run it belongs to, and ends with …
    run_by: str = ""  # … whoever runs that …
    run_session: str = ""  # … and in which session
    model: str | None = None  # that was asked for
    role: str | None = None
    team: str | None = None  # the mark of whoever started a whole team with it
    restart_limit: int = 0  # how often it is started again after a crash,
    restarts: int = 0  # and how often it has been
    budget_usd: float | None = None  # it is released once this session has cost so much
    environment: dict[str, str] = {}  # kept only where it may be started again
    transport: str = "terminal"  # or `acp`


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


class HostBook(Protocol):
    """The hosts that agents can be started on."""

    def __call__(self) -> Sequence[HostFacts]: ...
