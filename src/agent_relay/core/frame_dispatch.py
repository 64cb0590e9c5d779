"""Frames of clients, each passed to the part whose business it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, assert_never

from agent_relay.core.consensus.proposals import COMMANDS as PROPOSAL_COMMANDS
from agent_relay.core.dead_letters import COMMANDS as LETTER_COMMANDS
from agent_relay.core.erasure import COMMANDS as ERASE_COMMANDS
from agent_relay.core.excluded_hosts import COMMANDS as HOST_COMMANDS
from agent_relay.core.membership import COMMANDS as MEMBER_COMMANDS
from agent_relay.core.rights import RETRY
from agent_relay.core.teams.rules import COMMANDS as TEAM_COMMANDS
from agent_relay.core.topic_lines import COMMANDS as TOPIC_COMMANDS
from agent_relay.protocol import envelope as e
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import EVENTS_TOPIC, fold_name
from agent_relay.protocol.states import CloseReason

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.consensus.proposals import Proposals
    from agent_relay.core.context import Context
    from agent_relay.core.controls import Controls
    from agent_relay.core.correlation import Correlations
    from agent_relay.core.dead_letters import DeadLetters
    from agent_relay.core.delivery import Ledger
    from agent_relay.core.erasure import Erasure
    from agent_relay.core.excluded_hosts import ExcludedHosts
    from agent_relay.core.lookups.queries import Queries
    from agent_relay.core.membership import Membership
    from agent_relay.core.peer import Peer
    from agent_relay.core.reports import Reports
    from agent_relay.core.rights import Rights
    from agent_relay.core.sending import Sending
    from agent_relay.core.spawned.orders import Spawning
    from agent_relay.core.teams.rules import TeamRules
    from agent_relay.core.topic_lines import TopicLines
    from agent_relay.core.watchers import Watchers

# Other users of the machine, whom `allowed_uids` lets in, write to agents and read what was written to them. Nothing that acts in
# the owner's name is theirs, and no report that makes the owner's budgets or the owner act.
_ONLY_OWNER = (e.Control, e.Spawn, e.Release, e.Propose, e.Vote)
_REPORTS = frozenset({"tokens.used", "permission.requested", "question.requested"})


class FrameDispatch:
    """Of peers whose handshake is over. `end` closes a connection."""

    def __init__(
        self, context: Context, sending: Sending, ledger: Ledger, correlations: Correlations, membership: Membership,
        reports: Reports, controls: Controls, queries: Queries, dead_letters: DeadLetters, spawning: Spawning, watchers: Watchers,
        erasure: Erasure, rights: Rights, end: Callable[[Peer, CloseReason], None], excluded: ExcludedHosts,
        rules: TeamRules,
        proposals: Proposals,
        topic_lines: TopicLines,
    ) -> None:  # fmt: skip
        self._context = context
        self._sending = sending
        self._ledger = ledger
        self._correlations = correlations
        self._membership = membership
        self._reports = reports
        self._controls = controls
        self._queries = queries
        self._dead_letters = dead_letters
        self._spawning = spawning
        self._watchers = watchers
        self._rights = rights
        self._erasure = erasure
        self._end = end
        self._excluded = excluded
        self._rules = rules
        self._proposals = proposals
        self._topic_lines = topic_lines

    def act(self, peer: Peer, agent: Agent, frame: e.ClientFrame) -> None:
        if peer.guest and not self._may(peer, frame):
            return
        match frame:
            case e.Send():
                if self._context.stopping:
                    self._sending.refuse_new(peer, agent, frame.id, stopping_error())
                else:
                    self._sending.receive(peer, agent, frame)
            case e.Ack():
                self._ledger.acknowledge(agent, [frame.payload])
            case e.Nack():
                self._ledger.refuse(agent, frame.payload)
            case e.Subscribe() if frame.payload.topic != EVENTS_TOPIC:
                self._membership.subscribe(peer, agent, frame)
            case e.Unsubscribe() if frame.payload.topic != EVENTS_TOPIC:
                self._membership.unsubscribe(peer, agent, frame)
            case e.ChannelJoin():
                self._membership.join(peer, agent, frame)
            case e.ChannelLeave():
                self._membership.leave(peer, agent, frame)
            case e.Propose() | e.Vote() if self._context.stopping:
                peer.say_nack(stopping_error(), frame.id)
            case e.Propose():
                self._proposals.propose(peer, agent, frame)
            case e.Vote():
                self._proposals.vote(peer, agent, frame)
            case e.AgentEvent():
                self._reports.receive(peer, agent, frame)
            case e.Cancel():
                self._correlations.cancel(agent, frame.payload.correlationId)
                peer.say("ACK", {"ack_id": frame.id, "stage": "cancelled", "correlationId": frame.payload.correlationId})
            case _:
                self._act_for_anyone(peer, frame)

    def act_for_observer(self, peer: Peer, frame: e.ClientFrame) -> None:
        if not peer.guest or self._may(peer, frame):
            self._act_for_anyone(peer, frame)

    def _may(self, peer: Peer, frame: e.ClientFrame) -> bool:
        try:
            check_guest(peer.agent, frame)
        except RelayError as error:
            peer.say_error(error, frame.id)
            return False
        return True

    def _act_for_anyone(self, peer: Peer, frame: e.ClientFrame) -> None:
        match frame:
            case e.Ping():
                peer.say("PONG", {"nonce": frame.payload.nonce})
            case e.Pong():
                pass  # it was heard: that is all a PONG is for
            case e.Bye():
                self._end(peer, CloseReason.CLIENT_BYE)
            case e.Subscribe() if frame.payload.topic == EVENTS_TOPIC:
                self._watchers.subscribe(peer, frame)
            case e.Unsubscribe() if frame.payload.topic == EVENTS_TOPIC:
                self._watchers.unsubscribe(peer, frame)
            case e.ListAgents():
                self._queries.list_agents(peer, frame)
            case e.History() if frame.payload.view == "events":
                self._watchers.look_back(peer, frame)
            case e.History() if frame.payload.view == "proposals":
                self._proposals.history(peer, frame)
            case e.History():
                self._queries.history.answer(peer, frame)
            case e.Control():
                if frame.payload.command in LETTER_COMMANDS:
                    self._letter(peer, frame)
                elif frame.payload.command in ERASE_COMMANDS:
                    self._erasure.receive(peer, frame)
                elif frame.payload.command in HOST_COMMANDS:
                    self._excluded.receive(peer, frame)
                elif frame.payload.command in TEAM_COMMANDS:
                    self._rules.receive(peer, frame)
                elif frame.payload.command in TOPIC_COMMANDS:
                    self._topic_lines.receive(peer, frame)
                elif frame.payload.command in MEMBER_COMMANDS:
                    self._membership.control(peer, frame)
                elif frame.payload.command in PROPOSAL_COMMANDS:
                    self._proposals.control(peer, frame)
                else:
                    self._controls.receive(peer, frame)
            case e.Hello() | e.Resume():
                peer.say_error(RelayError(ErrorCode.INVALID_FORMAT, "The handshake is already complete.", field="type"), frame.id)
            case e.Spawn() | e.Release():
                if self._context.stopping:
                    peer.say_error(stopping_error(), frame.id)
                else:
                    self._spawning.receive(peer, frame)
            case e.Propose() | e.Vote():
                peer.say_nack(RelayError(ErrorCode.PERMISSION_DENIED, "Observers cannot propose or vote."), frame.id)
            case e.Send():
                peer.say_nack(RelayError(ErrorCode.PERMISSION_DENIED, "Observers cannot send messages."), frame.id)
            case e.AgentEvent():
                peer.say_error(RelayError(ErrorCode.PERMISSION_DENIED, "Observers cannot send reports."), frame.id)
            case e.Ack() | e.Nack() | e.Cancel() | e.Subscribe() | e.Unsubscribe() | e.ChannelJoin() | e.ChannelLeave():
                peer.say_error(RelayError(ErrorCode.PERMISSION_DENIED, "Observers have no messages."), frame.id)
            case _:
                assert_never(frame)

    def _letter(self, peer: Peer, frame: e.Control) -> None:
        try:
            self._rights.check(self._rights.caller_of(peer), RETRY)
        except RelayError as error:
            peer.say_error(error, frame.id)
        else:
            self._dead_letters.receive(peer, frame)


def stopping_error() -> RelayError:
    return RelayError(ErrorCode.SERVICE_UNAVAILABLE, "The daemon is stopping.", retry_after_ms=1_000)


# --- guests ----------------------------------------------------------------------------------------------------------


def check_guest(agent: Agent | None, frame: e.ClientFrame) -> None:
    """Raises RelayError for what a guest may not do. A guest's history is narrowed to what was said with its own agent."""
    match frame:
        case e.History():
            _narrow(agent, frame)
        case e.Subscribe() if frame.payload.topic == EVENTS_TOPIC:
            raise _denied("Only the daemon's own user may follow events.")
        case e.AgentEvent() if frame.payload.type in _REPORTS:
            raise _denied("Agents of another user cannot report permissions, questions or costs here.")
        case _ if isinstance(frame, _ONLY_OWNER):
            raise _denied(
                "Only the daemon's own user may control, start and stop agents, answer their requests, propose and vote."
            )


def _narrow(agent: Agent | None, frame: e.History) -> None:
    asked = frame.payload
    if agent is None or asked.view != "messages" or fold_name(asked.with_ or agent.name) != agent.key:
        raise _denied("Agents of another user only see their own messages: connect as one and ask for `messages`.")
    asked.with_ = agent.name


def _denied(sentence: str) -> RelayError:
    return RelayError(ErrorCode.PERMISSION_DENIED, sentence, reason="other_user")
