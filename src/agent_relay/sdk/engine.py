"""The parts of a client put together, and each frame of the daemon brought to the part that waits for it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from agent_relay.protocol.encode import encode_envelope
from agent_relay.protocol.envelope import (
    AgentEvent,
    Agents,
    Busy,
    Consensus,
    Control,
    DaemonFrame,
    Deliver,
    Error,
    HistoryResult,
    Nack,
    Receipt,
    ReleaseResult,
    SpawnResult,
)
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import AgentEventPayload, BusyPayload, ControlPayload
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.decisions import Decisions
from agent_relay.sdk.errors import read_error
from agent_relay.sdk.events import EventFeeds
from agent_relay.sdk.ids import wall_ms
from agent_relay.sdk.inbox import Inbox, ReplySender
from agent_relay.sdk.outbox import Outbox
from agent_relay.sdk.pace import Pace
from agent_relay.sdk.queries import Queries
from agent_relay.sdk.sending import Sender
from agent_relay.sdk.session import Greeting, Session

_log = logging.getLogger("agent_relay.sdk")
_ABOUT_MESSAGES = {"stored", "delivered"}
_STATE = "agent.state"
T = TypeVar("T")


class Reports:
    """Reports of a client about itself: said once, not answered, and dropped where nobody hears it.

    Its state is the exception: the daemon forgets it with the connection, so the newest one is said again on the next.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._state: dict[str, Any] | None = None

    def say(self, kind: str, fields: dict[str, Any]) -> None:
        frame = self._encode(kind, fields)
        self._session.check_size(frame)
        if kind == _STATE:
            self._state = fields
        self._session.write(frame)

    def on_ready(self) -> None:
        if self._state is not None:
            self._session.write(self._encode(_STATE, self._state))

    def _encode(self, kind: str, fields: dict[str, Any]) -> bytes:
        payload = {"type": kind, "fields": fields}
        try:
            return encode_envelope("AGENT_EVENT", self._session.ids.next("r_"), wall_ms(), payload)
        except (TypeError, ValueError, RecursionError) as error:
            raise RelayError(ErrorCode.INVALID_FORMAT, f"The report cannot be written as JSON: {error}.") from None


class Listener(Protocol):
    """A listener to what happens beside messages."""

    on_state: Callable[[ClientState], None] | None
    on_busy: Callable[[BusyPayload], None] | None
    on_control: Callable[[ControlPayload], None] | None
    on_event: Callable[[AgentEventPayload], None] | None


class Engine:
    def __init__(
        self,
        socket: str,
        greeting: Greeting,
        listener: Listener,
        send_reply: ReplySender,
        *,
        backoff: Backoff,
        attempts: int | None,
        connect_timeout: float,
        slow_down: float,
    ) -> None:
        self.session = Session(socket, greeting, self, backoff=backoff, attempts=attempts, connect_timeout=connect_timeout)
        self.outbox = Outbox(self.session)
        self.queries = Queries(self.session)
        self.events = EventFeeds(self.queries)
        self.reports = Reports(self.session)
        self.inbox = Inbox(self.session, send_reply)
        self.pace = Pace(slow_down)
        self.decisions = Decisions()
        self.sender = Sender(self.session, self.outbox, self.queries, self.inbox.questions, backoff, self.pace)
        self._listener = listener

    # --- what the session says ------------------------------------------------------------------------------------

    def on_ready(self) -> None:
        self.pace.clear()  # a daemon that came back says again who is busy
        self.reports.on_ready()
        self.outbox.on_ready()
        self.queries.on_ready()
        self.decisions.on_ready()

    def on_closed(self, error: RelayError | None) -> None:
        self.pace.clear()
        self.outbox.on_closed(error)
        self.queries.on_closed(error)
        self.events.on_closed(error)
        self.inbox.on_closed(error)
        self.decisions.on_closed()

    def on_state(self, state: ClientState) -> None:
        if state is ClientState.BACKOFF:
            self.queries.on_lost()
            self.events.on_lost()
        _tell(self._listener.on_state, state)

    def on_frame(self, frame: DaemonFrame) -> None:
        match frame:
            case Deliver():
                self.inbox.on_deliver(frame)
            case Receipt(payload=said):
                if said.stage in _ABOUT_MESSAGES:
                    self.outbox.on_receipt(said)
                else:
                    self.queries.resolve(said.ack_id, said)
            case Nack(payload=said):
                if not self.queries.fail(said.nack_id, read_error(said)):
                    self.outbox.on_nack(said)
            case Error(payload=said):
                self._on_error(said.reply_to, read_error(said))
            case (
                Agents(payload=said) | HistoryResult(payload=said) | SpawnResult(payload=said) | ReleaseResult(payload=said)
            ):  # fmt: skip
                self.queries.resolve(said.reply_to, said)
            case Busy(payload=said):
                self.pace.note(said)
                _tell(self._listener.on_busy, said)
            case Consensus(payload=said):
                self.decisions.on_consensus(said.proposalId)
            case Control(payload=said):
                _tell(self._listener.on_control, said)
            case AgentEvent(payload=said):
                if said.subscription is None:
                    _tell(self._listener.on_event, said)
                else:
                    self.events.on_event(said)
            case _:
                pass  # parts of the protocol this client takes no part in

    def _on_error(self, about: str | None, error: RelayError) -> None:
        if about is None or not (
            self.queries.fail(about, error) or self.outbox.refuse(about, error) or self.events.fail(about, error)
        ):
            _log.warning("the daemon reports an error: %s: %s", error.code, error.message)


def _tell(callback: Callable[[T], None] | None, value: T) -> None:
    """A listener that fails must not end the connection."""
    if callback is not None:
        try:
            callback(value)
        except Exception:  # noqa: BLE001 - it may raise whatever it likes
            _log.exception("a callback failed")
