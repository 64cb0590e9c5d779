"""The wrappers of this host, in a cluster: started when the seat asks, and watched whoever has the seat.

Each row is kept here, in `sessions.json`, until the seat has heard how it ended. The seat is told the rows as they are, not what
happened to them: whatever was lost on the way, the next telling has it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from agent_relay.core.spawned.checks import check_program
from agent_relay.daemon.config import Config
from agent_relay.daemon.wrapper_processes import WrapperProcesses
from agent_relay.ports.agents import SessionRow, SessionStatus
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import SpawnPayload


class HostAgents:
    """`ports.AgentListener`. `has_news`: the seat should hear of something."""

    def __init__(self, config: Config, host: str, post: Callable[[Callable[[], None]], None]) -> None:
        self._limits = config.limits
        self._host = host
        self.has_news = True
        self._wrappers = WrapperProcesses(config, post, self)
        self._rows = {row.id: row for row in self._wrappers.load()}
        for row in self._rows.values():
            row.host = host
            if row.status is not SessionStatus.ENDED and row.pid:
                self._wrappers.adopt(row)

    @property
    def rows(self) -> list[SessionRow]:
        return list(self._rows.values())

    def forget(self, ended: Sequence[SessionRow]) -> None:
        """The seat has heard of these."""
        for row in ended:
            if row.status is SessionStatus.ENDED:
                self._rows.pop(row.id, None)
        self._save()

    # --- asked by the seat ------------------------------------------------------------------------------------------------

    def start(self, session: SessionRow, environment: Mapping[str, str]) -> None:
        """Once for each id. Fills in the folder and the sandbox. Raises RelayError where this host does not allow it."""
        known = self._rows.get(session.id)
        if known is None:
            asked = SpawnPayload(
                session.name, session.cli, backend=session.backend, environment=dict(environment),
                permission_mode=session.permission_mode, model=session.model, transport=session.transport,
            )  # fmt: skip
            check_program(asked, self._limits)
            if sum(row.status is not SessionStatus.ENDED for row in self._rows.values()) >= self._limits.max_agents:
                raise RelayError(
                    ErrorCode.RATE_LIMITED, f"Host {self._host} runs {self._limits.max_agents} agents, as many as its setting "
                    "max_agents allows; release one.", reason="too_many_agents", setting="max_agents", host=self._host,
                )  # fmt: skip
            known = replace(session, task=None)
            self._wrappers.start(known, environment)
            self._rows[known.id] = known
            self._save()
        session.cwd, session.sandbox = known.cwd, known.sandbox

    def adopt(self, session: SessionRow) -> None:
        """Its wrapper has said its process, which we did not get to know."""
        known = self._rows.get(session.id)
        if known is None:
            known = self._rows[session.id] = replace(session, task=None)
        elif known.pid or known.status is SessionStatus.ENDED:
            return
        known.pid, known.pid_started = session.pid, session.pid_started
        self._wrappers.adopt(known)
        self._save()

    def stop(self, session_id: str, *, force: bool) -> None:
        row = self._rows.get(session_id)
        if row is not None and row.pid and row.status is not SessionStatus.ENDED:
            self._wrappers.stop(row, force=force)

    # --- ports.AgentListener ------------------------------------------------------------------------------------------------

    def launched(self, session_id: str, pid: int, pid_started: str) -> None:
        row = self._rows[session_id]
        row.pid, row.pid_started = pid, pid_started
        self._note()

    def running(self, session_id: str) -> None:
        self._rows[session_id].status = SessionStatus.RUNNING
        self._note()

    def failed(self, session_id: str, sentence: str) -> None:
        row = self._rows[session_id]
        row.status, row.is_failed, row.failure = SessionStatus.ENDED, True, sentence
        self._note()

    def ended(self, session_id: str, exit_code: int | None) -> None:
        row = self._rows[session_id]
        row.status, row.exit_code = SessionStatus.ENDED, exit_code
        self._note()

    def _note(self) -> None:
        self._save()
        self.has_news = True

    def _save(self) -> None:
        self._wrappers.save(self.rows)
