"""AGENT_EVENT: what an agent says about itself and about the messages it was given.

A report is not answered unless it is wrong. One about a message becomes a step of that message's trail, and steps only move
forward: which one was the last is remembered for the newest messages reported on, so a repeated or an earlier one adds
nothing. (After a restart of the daemon, or many thousands of messages later, a repetition would add its step once more.)

A message that is still on the wire is found in its recipient's mailbox. Any other is looked up in the store, one question at a
time: everything that is reported meanwhile is the next question.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from agent_relay.core.announcements import publish, publish_state
from agent_relay.core.context import Context
from agent_relay.core.journal import Journal
from agent_relay.core.rate import check_rate
from agent_relay.core.requests import Requests
from agent_relay.core.spawned.counts import SessionCounts
from agent_relay.events.codec import build_event
from agent_relay.events.types import REPORTABLE
from agent_relay.ports.store import MessageRow, MessageStore, Page, StoreError
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.holds import Hold, describe_hold, encode_waits
from agent_relay.protocol.names import fold_name, show
from agent_relay.protocol.reports import (
    REPORTS,
    HandedReport,
    InputReport,
    PermissionResolvedReport,
    ProcessReport,
    QuestionResolvedReport,
    ReadReport,
    ReceivedReport,
    RequestFailedReport,
    StateReport,
    WaitsReport,
    encode_seen,
    read_report,
)
from agent_relay.protocol.requests import PermissionRequest, QuestionRequest
from agent_relay.protocol.ulid import number_of

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery
    from agent_relay.core.peer import Peer
    from agent_relay.core.streams import Stream
    from agent_relay.protocol import envelope

OnInput = Callable[["Agent"], None]

_RANKS = {"received": 1, "waits": 2, "handed": 3, "read": 4}  # before the last the message is acknowledged
_REMEMBERED = 20_000  # messages; some 3 MB
_LOOKED_UP_AT_ONCE = 256
_MAX_WAITING = 10_000  # reports for the store; more than that is refused: nobody reads so fast
_RETRY_MS = 1_000
_FIELD = "payload.fields.messageId"


class _Claim(NamedTuple):
    """A report about a message that has to be looked up."""

    peer: Peer
    agent: Agent
    request_id: str
    message_id: str
    number: int
    event: str
    detail: str
    at: int


class Reports:
    def __init__(
        self, context: Context, store: MessageStore, journal: Journal, requests: Requests, on_input: list[OnInput],
        counts: SessionCounts,
    ) -> None:  # fmt: skip
        self._counts = counts
        self._requests = requests
        self._context = context
        self._store = store
        self._journal = journal
        self._on_input = on_input
        self._last_steps: dict[tuple[int, str], int] = {}  # (message, recipient) → the rank of its last reported step
        self._waiting: list[_Claim] = []
        self._looking = False

    def receive(self, peer: Peer, agent: Agent, frame: envelope.AgentEvent) -> None:
        try:
            if peer.allowance is not None:
                check_rate(self._context, peer.allowance)
            self._take(peer, agent, frame)
        except RelayError as error:
            peer.say_error(error, frame.id)

    def _take(self, peer: Peer, agent: Agent, frame: envelope.AgentEvent) -> None:
        said = frame.payload
        if said.type in REPORTABLE and said.type not in REPORTS:
            mine = {"sessionId": agent.session_id, "agentName": agent.name}  # nobody reports of another
            event = build_event(said.type, said.fields | mine, "payload.fields")
            publish(self._context, agent, event)
            self._counts.note(agent.session_id, event)
            return
        match read_report(said):
            case StateReport() as state:
                before, agent.report = agent.report, state
                if state != before:
                    publish_state(self._context, agent)
            case ReceivedReport(message_id=message_id):
                self._take_step(peer, agent, frame.id, message_id, "received", "")
            case WaitsReport() as waits:
                self._tell_sender(agent, waits.message_id, waits.hold)
                self._take_step(peer, agent, frame.id, waits.message_id, "waits", encode_waits(waits.hold))
            case HandedReport(message_id=message_id, door=door, evidence=evidence):
                self._take_step(peer, agent, frame.id, message_id, "handed", encode_seen(door, evidence))
            case ReadReport(message_id=message_id, evidence=evidence):
                self._take_step(peer, agent, frame.id, message_id, "read", encode_seen(None, evidence))
            case PermissionRequest() | QuestionRequest() as asked:
                self._requests.asked(agent, asked)
            case PermissionResolvedReport() | QuestionResolvedReport() as resolved:
                self._requests.resolved(agent, resolved)
            case RequestFailedReport() as failed:
                self._requests.failed(agent, failed)
            case InputReport():
                for hook in self._on_input:
                    hook(agent)
            case ProcessReport(pid=pid):
                if not peer.takes_control:
                    raise RelayError(ErrorCode.PERMISSION_DENIED, "Only an agent's wrapper may report its program.")
                peer.connection.runs(agent.name, pid)

    def _tell_sender(self, agent: Agent, message_id: str, hold: Hold) -> None:
        """Once, and only where it is here: whoever comes back asks for the trail."""
        delivery = _find_on_the_wire(agent, message_id)
        sender = None if delivery is None else delivery.message.sender
        if sender is None or sender.peer is None or not sender.peer.active:
            return
        why = describe_hold(hold, agent.name).text
        text = f"Your message to {agent.name} is waiting and has not reached it: {why}. It is not lost, but somebody should look."
        fields = {"messageId": message_id, "to": agent.name, "reason": hold.reason, "text": text}
        sender.peer.say("AGENT_EVENT", {"type": "message.waits", "fields": fields})

    # --- steps of messages --------------------------------------------------------------------------------------------

    def _take_step(self, peer: Peer, agent: Agent, request_id: str, message_id: str, event: str, detail: str) -> None:
        try:
            number = number_of(message_id.removeprefix("msg_"))
        except ValueError:
            raise RelayError(ErrorCode.INVALID_FORMAT, "A message's id is `msg_` and 26 characters.", field=_FIELD) from None
        if self._is_behind(number, agent, event):
            return
        delivery = _find_on_the_wire(agent, message_id)
        if delivery is not None:
            self._note(agent, number, delivery.stream, delivery.seq, event, detail, self._context.wall_ms)
            return
        if len(self._waiting) >= _MAX_WAITING:
            raise RelayError(ErrorCode.RATE_LIMITED, "Too many reports wait to be looked up.", retry_after_ms=_RETRY_MS)
        claim = _Claim(
            peer=peer, agent=agent, request_id=request_id, message_id=message_id, number=number, event=event, detail=detail,
            at=self._context.wall_ms,
        )  # fmt: skip
        self._waiting.append(claim)
        self._look_up()

    def _look_up(self) -> None:
        if self._looking or not self._waiting:
            return
        claims, self._waiting = self._waiting[:_LOOKED_UP_AT_ONCE], self._waiting[_LOOKED_UP_AT_ONCE:]

        def found(page: Page | StoreError) -> None:
            self._looking = False
            rows = {} if isinstance(page, StoreError) else {row.id: row for row in page.messages}
            for claim in claims:
                try:
                    if isinstance(page, StoreError):
                        raise RelayError(
                            ErrorCode.SERVICE_UNAVAILABLE, f"The store could not be read ({page}).", retry_after_ms=_RETRY_MS
                        )
                    is_dead = self._journal.is_dead(
                        claim.number, claim.agent.key, stored=(claim.number, claim.agent.key) in page.dead
                    )
                    self._judge(claim, rows.get(claim.message_id), is_dead=is_dead)
                except RelayError as error:
                    claim.peer.say_error(error, claim.request_id)
            self._look_up()

        self._looking = True
        self._store.fetch([claim.number for claim in claims], found)

    def _judge(self, claim: _Claim, row: MessageRow | None, *, is_dead: bool) -> None:
        agent = claim.agent
        seq = None if row is None else next((seq for name, seq in row.recipients if fold_name(name) == agent.key), None)
        stream = None if row is None else agent.streams.get((row.topic, fold_name(row.sender)))
        # What became a dead letter never arrived, as its sender was told.
        if seq is None or stream is None or seq > stream.wire_seq or is_dead:
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"No message {show(claim.message_id)} was delivered to {agent.name}.", field=_FIELD
            )
        if claim.event != "read" and stream.is_done(seq):
            return  # it is further than that
        self._note(agent, claim.number, stream, seq, claim.event, claim.detail, claim.at)

    def _note(self, agent: Agent, number: int, stream: Stream, seq: int, event: str, detail: str, at: int) -> None:
        if self._is_behind(number, agent, event):
            return  # the same was reported twice before the store had answered
        self._journal.note(stream, seq, event, detail, at)
        key = (number, agent.key)
        self._last_steps.pop(key, None)
        self._last_steps[key] = _RANKS[event]
        if len(self._last_steps) > _REMEMBERED:
            del self._last_steps[next(iter(self._last_steps))]

    def _is_behind(self, number: int, agent: Agent, event: str) -> bool:
        return self._last_steps.get((number, agent.key), 0) >= _RANKS[event]


def _find_on_the_wire(agent: Agent, message_id: str) -> Delivery | None:
    return next(
        (
            delivery
            for delivery in agent.mailbox.inflight.values()
            if delivery.message.row.id == message_id and not delivery.replay
        ),
        None,
    )
