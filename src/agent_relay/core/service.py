"""`ports.RelayService`: the relay as whoever serves people sees it.

What can be read is read from the core's own parts. Commands are given by an observer inside the process, and the owner's messages
are sent by the owner (`core.owner`): so both are checked as those of any client are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from agent_relay.core.frame_dispatch import stopping_error
from agent_relay.core.inside_peer import InsidePeer, Said
from agent_relay.core.owner import Owner
from agent_relay.core.owner_message import OwnerMessage, Payload
from agent_relay.core.relay import Relay
from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.service import (
    SERVICE_NAME,
    AgentFacts,
    ConversationFacts,
    DataCounts,
    MessageLife,
    MessagePage,
    Outgoing,
    Promise,
    Requeued,
    Sent,
    ServerFacts,
    SessionFacts,
    Started,
    Step,
    StoredMessage,
    Turns,
)
from agent_relay.protocol import envelope as e
from agent_relay.protocol import payloads as p
from agent_relay.protocol.channels import ChannelFacts, gather_channels
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, show
from agent_relay.protocol.proposals import Proposal
from agent_relay.protocol.requests import OpenRequest
from agent_relay.protocol.states import CloseReason

T = TypeVar("T")

_CONVERSATIONS = 1_000


class Service:
    def __init__(self, relay: Relay, turns: Turns, uid: int, owner_token: str | None = None) -> None:
        self._relay = relay
        self._turns = turns
        self._uid = uid
        self._count = 0
        self._owner = Owner(relay, turns, uid, relay.context.limits.owner, owner_token, self._next_id)
        self._observer: InsidePeer | None = None
        self._waited_for: set[OwnerMessage] = set()

    @property
    def name(self) -> str:
        return self._owner.name

    def start(self) -> Awaitable[None]:
        """Returns when the owner is there under the names that were used before."""
        promise: Promise[None] = self._promise()
        self._owner.start(lambda: _keep(promise, None))
        return promise

    def clock_says(self) -> None:
        """Several times a second, in a turn."""
        now = self._relay.context.steady_ms
        self._owner.clock_says(now)
        for sending in [each for each in self._waited_for if each.deadline is not None and now >= each.deadline]:
            sending.give_up()

    def close(self) -> None:
        self._turns.begin_turn()
        if self._observer is not None:
            self._relay.disconnected(self._observer, CloseReason.CLIENT_BYE)
            self._observer.close(CloseReason.CLIENT_BYE)
        self._owner.close()

    # --- looking --------------------------------------------------------------------------------------------------------------

    def server(self) -> ServerFacts:
        self._turns.begin_turn()
        return msgspec.convert(self._relay.queries.server(), ServerFacts)

    def agents(self) -> list[AgentFacts]:
        self._turns.begin_turn()
        return self._relay.queries.agents()

    def agent(self, name: str) -> AgentFacts:
        self._turns.begin_turn()
        found = self._relay.registry.find(name)
        if found is None or found.hidden:
            raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"There is no agent {show(name, 80)}.", name=name[:80])
        return self._relay.queries.describe(found)

    def requests(self, agent: str | None = None) -> list[OpenRequest]:
        name = None if agent is None else self.agent(agent).name
        found = [request for request in self._relay.requests.all() if name is None or request.agent.name == name]
        return [request.describe() for request in sorted(found, key=lambda request: request.agent.key)]

    def proposals(self, *, is_open: bool) -> list[Proposal]:
        self._turns.begin_turn()
        return self._relay.proposals.list_all(is_open=is_open)

    def proposal(self, proposal_id: str) -> Proposal:
        self._turns.begin_turn()
        return self._relay.proposals.find(proposal_id, "id").proposal

    def sessions(self) -> list[SessionFacts]:
        return msgspec.convert(self._relay.spawning.describe(), list[SessionFacts])

    def messages(self, asked: p.HistoryPayload) -> Awaitable[MessagePage]:
        return self._look(asked, lambda said: msgspec.convert(said, MessagePage))

    def conversations(self, limit: int) -> Awaitable[list[ConversationFacts]]:
        asked = p.HistoryPayload(view="conversations", limit=limit)
        return self._look(asked, lambda said: msgspec.convert(said["conversations"], list[ConversationFacts]))

    def message(self, message_id: str) -> Awaitable[MessageLife]:
        return self._look(p.HistoryPayload(view="message", id=message_id), _read_life)

    def dead_letters(self, limit: int) -> Awaitable[list[StoredMessage]]:
        asked = p.HistoryPayload(view="dead_letters", limit=limit)
        return self._look(asked, lambda said: msgspec.convert(said["messages"], list[StoredMessage]))

    def channels(self) -> Awaitable[list[ChannelFacts]]:
        asked = p.HistoryPayload(view="conversations", limit=_CONVERSATIONS)
        return self._look(
            asked, lambda said: gather_channels(self._members(), said["conversations"], self._relay.topic_lines.describe())
        )

    def _members(self) -> list[dict[str, Any]]:
        return [{"name": agent.name, "channels": agent.channels} for agent in self._relay.queries.agents()]

    def _look(self, asked: p.HistoryPayload, read: Callable[[Payload], T]) -> Awaitable[T]:
        return self._order(e.History, asked, OWNER, read)

    # --- acting ---------------------------------------------------------------------------------------------------------------

    def retry(self, message_id: str, caller: Caller = OWNER) -> Awaitable[Requeued]:
        asked = p.ControlPayload("retry_dead_letter", id=message_id)
        return self._order(e.Control, asked, caller, lambda said: Requeued(said["message_id"], said["by"]))

    def dismiss(self, message_id: str, caller: Caller = OWNER) -> Awaitable[None]:
        return self._order(e.Control, p.ControlPayload("dismiss_dead_letter", id=message_id), caller, _nothing)

    def control(
        self, agent: str, command: str, text: str | None = None, for_ms: int | None = None, caller: Caller = OWNER
    ) -> Awaitable[None]:  # fmt: skip
        return self._order(e.Control, p.ControlPayload(command, agent, text, for_ms=for_ms), caller, _nothing)

    def answer(
        self, agent: str, request_id: str, command: str, text: str, caller: Caller = OWNER, option: str | None = None
    ) -> Awaitable[None]:
        return self._order(e.Control, p.ControlPayload(command, agent, text, request_id, option=option), caller, _nothing)

    def count_data(self, agent: str) -> Awaitable[DataCounts]:
        return self._order(e.Control, p.ControlPayload("count_data", agent), OWNER, _read_counts)

    def forget(self, agent: str) -> Awaitable[DataCounts]:
        return self._order(e.Control, p.ControlPayload("forget", agent), OWNER, _read_counts)

    def set_topic_line(self, channel: str, line: str, caller: Caller = OWNER) -> Awaitable[str]:
        asked = p.ControlPayload("set_topic_line", channel=channel, text=line)
        return self._order(e.Control, asked, caller, lambda said: str(said["channel"]))

    def change_membership(
        self, command: str, channel: str, agent: str | None, at_leisure: bool | None = None, caller: Caller = OWNER
    ) -> Awaitable[str]:
        if agent is None:
            is_join = command == "join"
            kind, asked_for = (
                (e.ChannelJoin, p.JoinPayload(channel, at_leisure)) if is_join else (e.ChannelLeave, p.Channel(channel))
            )
            return self._order_as_owner(kind, asked_for, OWNER, lambda _, sender: sender)
        asked = p.ControlPayload(command, agent, channel=channel, at_leisure=at_leisure)
        return self._order(e.Control, asked, caller, lambda said: str(said.get("by") or agent))

    def propose(self, asked: p.ProposePayload, caller: Caller = OWNER) -> Awaitable[Proposal]:
        return self._order_as_owner(e.Propose, asked, caller, _read_proposal)

    def vote(self, proposal_id: str, vote: str, reason: str | None, caller: Caller = OWNER) -> Awaitable[Proposal]:
        return self._order_as_owner(e.Vote, p.VotePayload(proposal_id, vote, reason), caller, _read_proposal)

    def withdraw(self, proposal_id: str, reason: str | None, caller: Caller = OWNER) -> Awaitable[Proposal]:
        asked = p.ControlPayload("withdraw_proposal", id=proposal_id, text=reason)
        return self._order(e.Control, asked, caller, lambda said: _read_proposal(said, ""))

    def spawn(self, asked: p.SpawnPayload, caller: Caller = OWNER) -> Awaitable[Started]:
        check_agent_name(asked.name)
        # Its first message, the task, is from the owner.
        return self._order_as_owner(e.Spawn, asked, caller, lambda said, _: Started(said["name"], said["session_id"]))

    def release(self, name: str, reason: str | None, caller: Caller = OWNER) -> Awaitable[None]:
        return self._order_as_owner(e.Release, p.ReleasePayload(name, reason), caller, lambda *_: None)

    def send(self, message: Outgoing, key: str | None = None) -> Awaitable[Sent]:
        promise: Promise[Sent] = self._promise()

        def over(sending: OwnerMessage, outcome: Sent | RelayError) -> None:
            self._waited_for.discard(sending)
            _keep(promise, outcome)

        sending = OwnerMessage(self._relay, message, key or self._next_id(), key, self._read_payload, over)
        self._waited_for.add(sending)
        promise.add_done_callback(lambda _: self._given_up(sending))
        self._owner.choose(sending.post)
        return promise

    def _given_up(self, sending: OwnerMessage) -> None:
        """Whoever asked has it, or hung up."""
        if sending in self._waited_for:
            self._waited_for.discard(sending)
            self._turns.begin_turn()
            sending.give_up()

    def _read_payload(self, message_id: str, done: Callable[[Payload | RelayError], None]) -> None:
        def hear(said: Said) -> None:
            done(said["messages"][0]["payload"] if isinstance(said, dict) else _error_in(said))

        self._say(self._observing(), e.History, p.HistoryPayload(view="message", id=message_id), OWNER, hear)

    # --- speaking to the relay --------------------------------------------------------------------------------------------------

    def _order(self, kind: Any, payload: Any, caller: Caller, read: Callable[[Payload], T]) -> Awaitable[T]:
        promise: Promise[T] = self._promise()
        self._say(self._observing(), kind, payload, caller, lambda said: _keep(promise, _read(said, read)))
        return promise

    def _order_as_owner(self, kind: Any, payload: Any, caller: Caller, read: Callable[[Payload, str], T]) -> Awaitable[T]:
        """`read` is given the name that the owner has right now, too."""
        promise: Promise[T] = self._promise()

        def chosen(peer: InsidePeer | RelayError) -> None:
            if isinstance(peer, RelayError):
                _keep(promise, peer)
                return
            name = peer.agent.name if peer.agent is not None else self.name
            self._say(
                peer, kind, payload, caller, lambda said: _keep(promise, _read(said, lambda found: read(found, name)))
            )  # fmt: skip

        self._owner.choose(chosen)
        return promise

    def _promise(self) -> Promise[Any]:
        self._turns.begin_turn()
        return self._turns.promise()

    def _say(self, peer: InsidePeer, kind: Any, payload: Any, caller: Caller, hear: Callable[[Said], None]) -> None:
        id_ = self._next_id()
        peer.expect(id_, hear)
        peer.speaks_for = caller
        try:
            self._relay.heard(peer, kind(v=2, id=id_, ts=self._relay.context.wall_ms, payload=payload))
        except BaseException:
            peer.forget(id_)
            raise
        finally:
            peer.speaks_for = OWNER

    def _observing(self) -> InsidePeer:
        """One that looks and controls, has no name and gets no messages. Raises RelayError."""
        if self._observer is None or not self._observer.active:
            peer = self._observer = InsidePeer(self._relay.context, self._uid)
            self._relay.admit(peer)
            refused: list[Said] = []
            self._say(peer, e.Hello, p.HelloPayload(SERVICE_NAME, SERVICE_NAME, 2, mode="observer"), OWNER, refused.append)
            if not peer.active:
                raise _error_in(refused[0]) if refused else stopping_error()
        return self._observer

    def _next_id(self) -> str:
        """Never again the same, over restarts too, since SENDs are known by it; and none that a client can give."""
        self._count += 1
        return f"i {self._relay.context.wall_ms:x} {self._count:x}"


def _keep(promise: Promise[T], outcome: T | RelayError) -> None:
    if promise.done():
        return  # whoever asked has hung up
    if isinstance(outcome, RelayError):
        promise.set_exception(outcome)
    else:
        promise.set_result(outcome)


def _read(said: Said, read: Callable[[Payload], T]) -> T | RelayError:
    return read(said) if isinstance(said, dict) else _error_in(said)


def _error_in(said: Said) -> RelayError:
    return said if isinstance(said, RelayError) else RelayError(ErrorCode.INTERNAL_ERROR)


def _read_life(said: Payload) -> MessageLife:
    message = msgspec.convert(said["messages"][0], StoredMessage)
    return MessageLife(message, msgspec.convert(said["trail"], list[Step]))


def _read_proposal(said: Payload, _name: str) -> Proposal:
    return msgspec.convert(said["proposal"], Proposal)


def _read_counts(said: Payload) -> DataCounts:
    return msgspec.convert(said["responseData"], DataCounts)


def _nothing(said: Payload) -> None:
    del said
