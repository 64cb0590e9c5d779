"""The beginning and the end of agents that the daemon started, told as events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.events import types as t
from agent_relay.ports.agents import EndReason, SessionRow, SessionStatus

if TYPE_CHECKING:
    from agent_relay.core.context import Context


def publish_session(context: Context, session: SessionRow) -> None:
    """It has begun to run, or it has ended."""
    if context.events is None:
        return
    for event in _ended(session) if session.status is SessionStatus.ENDED else _started(session):
        context.events.publish(event, agent=session.name, session_id=session.id, at_ms=context.wall_ms)


def _started(session: SessionRow) -> tuple[t.Event, ...]:
    return (
        t.SessionStarted(
            session_id=session.id, agent=t.AgentInfo(name=session.name, cli=session.cli), started_at=session.started_at,
            config=t.SessionConfig(permission_mode=session.permission_mode, working_directory=session.cwd),
        ),
        t.AgentSpawned(
            session_id=session.id, agent_name=session.name, cli=session.cli, spawned_by=session.spawned_by, task=session.task
        ),
    )  # fmt: skip


def _ended(session: SessionRow) -> tuple[t.Event, ...]:
    reason = session.reason or EndReason.CRASHED
    ended = t.SessionEnded(session_id=session.id, ended_at=session.ended_at or 0, reason=reason.value)
    if reason is not EndReason.RELEASED:
        return (ended,)
    released = t.AgentReleased(
        session_id=session.id, agent_name=session.name, released_by=session.released_by, reason=session.release_note
    )
    return (released, ended)
