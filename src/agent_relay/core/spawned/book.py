"""The book of sessions that the daemon began: found by name, saved at each change, and kept for a while after they end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agent_relay.ports.agents import AgentService, SessionRow, SessionStatus
from agent_relay.ports.callers import Caller
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

REMEMBERED = 100  # sessions that have ended
SHOWN_TASK = 200  # characters of a task in a list
BY_HUMAN = "human"
_MAX_WORD = 200  # characters of a model's name or a version


class SessionBook:
    """Written by `Spawning` at every step."""

    def __init__(self) -> None:
        self._service: AgentService | None = None  # saves it; None: this daemon starts no agents
        self._sessions: dict[str, SessionRow] = {}  # by id, the oldest first

    def describe(self) -> list[dict[str, Any]]:
        return [
            {
                "session_id": s.id, "agent": s.name, "cli": s.cli, "cwd": s.cwd, "backend": s.backend, "status": s.status.value,
                "host": s.host, "permission_mode": s.permission_mode, "sandbox": s.sandbox is not None,
                "transport": s.transport,
                "spawned_by": s.spawned_by, "task": s.task[:SHOWN_TASK] if s.task else None, "started_at": s.started_at,
                "pid": s.pid or None, "exit_code": s.exit_code, "run": s.run or None,
                "model": s.model, "role": s.role, "team": s.team, "restarts": s.restarts, "restart_limit": s.restart_limit,
                "budget_usd": s.budget_usd,
                "ended_at": s.ended_at, "reason": s.reason.value if s.reason is not None else None,
            }
            for s in self._sessions.values()
        ]  # fmt: skip

    def _live(self) -> list[SessionRow]:
        return [session for session in self._sessions.values() if session.status is not SessionStatus.ENDED]

    def _live_one(self, name: str) -> SessionRow | None:
        key = fold_name(name)
        return next((session for session in self._live() if fold_name(session.name) == key), None)

    def is_live(self, name: str) -> bool:
        return self._live_one(name) is not None

    def budgets(self) -> dict[str, tuple[str, float]]:
        """By session, of those that run and have one: the agent, and dollars."""
        return {each.id: (each.name, each.budget_usd) for each in self._live() if each.budget_usd is not None}

    def forget(self, name: str) -> None:
        """Of an agent that has none now: its ended sessions, and what it was told to do in them."""
        key = fold_name(name)
        self._drop(session.id for session in self._ended() if fold_name(session.name) == key)

    def forget_old(self, before_ms: int) -> None:
        self._drop(session.id for session in self._ended() if (session.ended_at or 0) < before_ms)

    def _ended(self) -> list[SessionRow]:
        return [session for session in self._sessions.values() if session.status is SessionStatus.ENDED]

    def _drop(self, ids: Iterable[str]) -> None:
        gone = list(ids)
        for id_ in gone:
            del self._sessions[id_]
        if gone:
            self._save()

    def _forget_oldest(self) -> None:
        for session in self._ended()[:-REMEMBERED]:
            del self._sessions[session.id]

    def _save(self) -> None:
        if self._service is not None:
            self._service.save(list(self._sessions.values()))


def name_asker(by: Agent | None, caller: Caller) -> str:
    """For the record. What an agent asks of its wrapper is asked under its own name."""
    is_own = by is not None and caller.agent is not None and fold_name(caller.agent) == by.key
    if by is not None and (caller.agent is None or is_own):
        return by.name
    return caller.name or BY_HUMAN


def agent_in(spawned_by: str) -> str:
    """The agent, by whichever way it asked."""
    return spawned_by.removeprefix("agent:").partition(" via ")[0]


def start_failed(session: SessionRow, sentence: str) -> RelayError:
    return RelayError(
        ErrorCode.SERVICE_UNAVAILABLE, f"{session.name} could not be started. {sentence}", reason="start_failed"
    )  # fmt: skip


def note_program(session: SessionRow, agent: Agent | None) -> None:
    """Model and version of its program, where its wrapper has said them."""
    if agent is not None and agent.session_id == session.id:
        said = (agent.traits.meta.get("model"), agent.traits.meta.get("version"))
        session.known_model, session.version = (word[:_MAX_WORD] if isinstance(word, str) and word else None for word in said)
