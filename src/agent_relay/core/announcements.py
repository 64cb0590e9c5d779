"""Events that the core announces. Without a sink nothing is made: each of these returns at once.

Messages are many: of those only references are put together here, and what is written is made where it is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from agent_relay.events import types as t
from agent_relay.events.drafts import Draft, Exchange, Handover
from agent_relay.ports.agents import EndReason, SessionRow, SessionStatus
from agent_relay.protocol.encode import read_tail
from agent_relay.protocol.names import CHANNEL_MARK
from agent_relay.protocol.requests import QuestionRequest
from agent_relay.protocol.ulid import number_of

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.context import Context
    from agent_relay.core.messages import Delivery, Message
    from agent_relay.core.requests import PendingRequest
    from agent_relay.core.spawned.counts import SessionCounts
    from agent_relay.ports.store import MessageRow

HIDDEN_VALUE = "set"  # of a variable in `session.started`: it may be a secret, and events are kept
TRANSIENT = "transient"  # in the `meta` of a HELLO
_RESOLUTIONS: dict[str, t.Resolution] = {"approved": "approved", "denied": "denied"}


def publish(context: Context, agent: Agent, event: t.Event) -> None:
    if context.events is not None:
        context.events.publish(event, agent=agent.name, session_id=agent.session_id, at_ms=context.wall_ms)


def publish_exchanged(context: Context, messages: list[Message]) -> None:
    """They are durable."""
    if context.events is None:
        return
    drafts: list[Draft] = []
    for message in messages:
        drafts.append(describe_exchange(message.row, message.sender.session_id, message.body))
        message.body = ""
    context.events.record(drafts)


def describe_exchange(row: MessageRow, session_id: str, body: str) -> Exchange:
    target = row.target
    channel = row.topic or (target if target[:1] == CHANNEL_MARK else None)
    return Exchange(
        0, row.ts, session_id, row.sender, session_id, row.id, row.sender, target, row.kind, body, row.thread, channel
    )  # fmt: skip


def derive_exchange(row: MessageRow, sender: Agent | None) -> Exchange:
    """Of a stored message, as it was told when it was stored or should have been. Of the sender's sessions only the newest is
    known: one that began after the message is not the one it was sent in."""
    session_id = sender.session_id if sender is not None else ""
    try:
        began_later = number_of(session_id.removeprefix("ses_")) > row.number
    except ValueError:  # it has none, or one that is not of our making
        began_later = False
    session_id = "" if began_later else session_id
    body = read_tail(row.tail)["payload"].get("body")
    return describe_exchange(row, session_id, body if isinstance(body, str) else "")


def publish_delivered(context: Context, deliveries: list[Delivery], door: str | None = None, evidence: str | None = None) -> None:
    """Their recipients have acknowledged them. Without a door there is no evidence either. A shadow is no recipient."""
    if context.events is None or not deliveries:
        return
    now, wall_ms = context.steady_ms, context.wall_ms
    drafts: list[Draft] = []
    for delivery in deliveries:
        if delivery.is_copy:
            continue
        message, recipient = delivery.message, delivery.recipient
        name = recipient.name
        drafts.append(
            Handover(
                0, wall_ms, recipient.session_id, name, message.row.id, name, delivery.attempts, now - message.accepted, door,
                evidence,
            )
        )  # fmt: skip
    context.events.record(drafts)


def publish_state(context: Context, agent: Agent) -> None:
    """The state it reports, or the one that has to be assumed of one that says nothing. One that only comes to say something and
    leave is nobody to watch."""
    if context.events is None:
        return
    said = agent.report
    if said is None:
        if agent.traits.meta.get(TRANSIENT) is True:
            return
        publish(context, agent, t.AgentState(state="idle" if agent.connected else "offline"))
    else:
        event = t.AgentState(
            state=said.state, waiting_for=said.waiting_for, door=said.door, door_note=said.door_note, paused=said.paused,
            paused_by=said.paused_by, hold=said.hold,
        )  # fmt: skip
        publish(context, agent, event)


def publish_request(context: Context, request: PendingRequest, change: str, by: str, answer: str) -> None:
    """A permission or a question is asked for (`requested`), or is over."""
    if context.events is not None:
        publish(context, request.agent, _describe(request, change, by, answer, context.wall_ms))


def _describe(request: PendingRequest, change: str, by: str, answer: str, now_ms: int) -> t.Event:
    asked, session_id = request.asked, request.agent.session_id
    if isinstance(asked, QuestionRequest):
        if change != "requested":
            return t.QuestionResolved(session_id=session_id, question_id=request.id, answer=answer, resolved_by=by)
        return t.QuestionRequested(
            session_id=session_id, question_id=request.id, question=asked.question, options=asked.options or None,
            default_answer=asked.default_answer,
        )  # fmt: skip
    if change != "requested":
        # Of a dialog that nobody can say the end of, it is only known that nobody approved it in time.
        resolution = _RESOLUTIONS.get(change, "timeout")
        return t.PermissionResolved(
            session_id=session_id, request_id=request.id, resolution=resolution, resolved_by=by, resolved_at=now_ms,
            reason=answer or None,
        )  # fmt: skip
    return t.PermissionRequested(
        session_id=session_id, request_id=request.id, tool=asked.tool, command=asked.command, file_path=asked.file_path,
        description=asked.description, risk_level=cast("t.Risk", request.risk),
    )  # fmt: skip


def publish_session(context: Context, counts: SessionCounts, session: SessionRow) -> None:
    """It has begun to run, or it has ended."""
    has_ended = session.status is SessionStatus.ENDED
    summary = counts.finish(session) if has_ended else None
    if context.events is None:
        return
    for event in _session_ended(session, summary) if has_ended else _session_started(session):
        context.events.publish(event, agent=session.name, session_id=session.id, at_ms=context.wall_ms)


def _session_started(session: SessionRow) -> tuple[t.Event, ...]:
    agent = t.AgentInfo(name=session.name, cli=session.cli, model=session.known_model or session.model, version=session.version)
    environment = dict.fromkeys(session.variables, HIDDEN_VALUE) if session.variables else None
    return (
        t.SessionStarted(
            session_id=session.id, agent=agent, started_at=session.started_at,
            config=t.SessionConfig(
                permission_mode=session.permission_mode, working_directory=session.cwd, environment=environment
            ),
        ),
        t.AgentSpawned(
            session_id=session.id, agent_name=session.name, cli=session.cli, spawned_by=session.spawned_by, task=session.task,
            role=session.role,
        ),
    )  # fmt: skip


def _session_ended(session: SessionRow, summary: t.SessionSummary | None) -> tuple[t.Event, ...]:
    reason = session.reason or EndReason.CRASHED
    ended = t.SessionEnded(session_id=session.id, ended_at=session.ended_at or 0, reason=reason.value, summary=summary)
    if reason is not EndReason.RELEASED:
        return (ended,)
    released = t.AgentReleased(
        session_id=session.id, agent_name=session.name, released_by=session.released_by, reason=session.release_note
    )
    return (released, ended)
