"""Proposals: PROPOSE and VOTE, the deadline, and what is kept of them.

Each proposal is a document of the store, so a restart, a crash and another host of the cluster find it as it was left. A change
counts at once, and nobody is told of it before it is durable. The deadline is a time of day in the document and a moment of the
steady clock while the daemon runs: a wall clock that jumps ends nothing.

Notices follow the document. The document says whether the last one is stored; the next daemon sends what is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from agent_relay.core.backpressure import Backpressure
from agent_relay.core.consensus.checks import ProposalChecks, over_error
from agent_relay.core.consensus.notices import ProposalNotices, explain_outcome
from agent_relay.core.context import Context
from agent_relay.core.rate import check_rate
from agent_relay.core.registry import Registry
from agent_relay.core.rights import Rights
from agent_relay.core.sending import Sending
from agent_relay.protocol.consensus import Outcome
from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name, show
from agent_relay.protocol.proposals import MAX_REASON, Proposal
from agent_relay.protocol.short_ids import AMBIGUOUS, read_short_id, stands_for

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope, payloads

DOCUMENTS = "proposal/"  # and the id
COMMANDS = frozenset({"withdraw_proposal"})
MOST_OPEN = 100
MOST_OPEN_OF_ONE = 20  # so that no agent can take all the places
MOST_RESOLVED = 200  # beyond that the oldest go; the events and the messages tell of them for longer
_LOOK_MS = 1_000  # how often departures are looked for, and notices that could not be stored are sent again
_NEVER = 1 << 62
_LIST_BYTES = 512 * 1024  # of one answer, which must fit a frame

Keep = Callable[[str, bytes, Callable[[], None] | None], None]  # the document, its content, and what to do once it is durable


class Entry(Struct):
    """A proposal as it is kept."""

    proposal: Proposal
    request_id: str = ""  # of the PROPOSE: said again, it is the same proposal
    is_told: bool = False  # the notice of how it stands is stored


class Proposals:
    def __init__(
        self, context: Context, registry: Registry, sending: Sending, backpressure: Backpressure, rights: Rights, keep: Keep,
        documents: Mapping[str, bytes],
    ) -> None:  # fmt: skip
        self._context = context
        self._registry = registry
        self._backpressure = backpressure
        self._keep = keep
        self._check_rules = sending.check_rules
        self._checks = ProposalChecks(context, registry, rights)
        self._notices = ProposalNotices(context, registry, sending)
        self._entries: dict[str, Entry] = {}  # by id, the oldest first
        self._deadlines: dict[str, int] = {}  # of the open ones, by the steady clock
        self._due_at = _NEVER
        self._looked_at = context.steady_ms
        self._unsaid: list[Entry] = []  # of which somebody must still be told
        self._restore(documents)

    def _restore(self, documents: Mapping[str, bytes]) -> None:
        for name, content in sorted(documents.items()):  # ids sort by time
            if not name.startswith(DOCUMENTS):
                continue
            try:
                entry = msgspec.json.decode(content, type=Entry)
            except msgspec.MsgspecError as error:
                self._context.log.note("proposal_unreadable", name=name, error=str(error))
                continue
            self._entries[entry.proposal.proposal_id] = entry
            if entry.proposal.outcome is None:
                self._set_deadline(entry.proposal)
            if not entry.is_told:
                self._unsaid.append(entry)

    # --- what clients say -------------------------------------------------------------------------------------------------

    def propose(self, peer: Peer, agent: Agent, frame: envelope.Propose) -> None:
        try:
            if peer.allowance is not None:
                check_rate(self._context, peer.allowance)
            entry = self._find_repeated(agent, frame.id)
            is_new = entry is None
            if entry is None:
                entry = self._open(agent, frame)
        except RelayError as error:
            peer.say_nack(error, frame.id)
            return
        known = entry

        def durable() -> None:
            if is_new:
                self._announce(known)
            self._answer(peer, frame.id, "proposed", known)

        self._save(entry, durable)

    def vote(self, peer: Peer, agent: Agent, frame: envelope.Vote) -> None:
        try:
            if peer.allowance is not None:
                check_rate(self._context, peer.allowance)
            entry = self.find(frame.payload.proposalId, "payload.proposalId")
            voter = self._checks.check_voter(entry.proposal, agent)
            cast = self._checks.read_vote(entry.proposal, voter, frame.payload)
        except RelayError as error:
            peer.say_nack(error, frame.id)
            return
        proposal = entry.proposal
        is_decided = False
        if cast is not None:
            proposal.votes[voter] = cast
            is_decided = self._decide(entry)

        def durable() -> None:
            if cast is not None:
                self._notices.publish_vote(proposal, voter, cast)
                self._context.log.note("voted", agent=voter, proposal=proposal.proposal_id, vote=cast.vote.value)
            if is_decided:
                self._announce(entry)
            self._answer(peer, frame.id, "voted", entry)

        self._save(entry, durable)

    def control(self, peer: Peer, frame: envelope.Control) -> None:
        """`withdraw_proposal`, by its proposer or the owner."""
        try:
            entry = self.find(frame.payload.id or "", "payload.id")
            proposal, by = entry.proposal, self._checks.check_withdrawal(peer, entry.proposal)
            is_new = proposal.outcome is None
            if is_new:
                reason = (frame.payload.text or "").strip()[:MAX_REASON]
                self._end(entry, Outcome.WITHDRAWN, explain_outcome(proposal, Outcome.WITHDRAWN, by, reason))
            elif proposal.outcome is not Outcome.WITHDRAWN:
                raise over_error(proposal)
        except RelayError as error:
            peer.say_nack(error, frame.id)
            return

        def durable() -> None:
            if is_new:
                self._announce(entry)
            self._answer(peer, frame.id, "withdrawn", entry)

        self._save(entry, durable)

    def history(self, peer: Peer, frame: envelope.History) -> None:
        """The view `proposals`: the newest first."""
        asked = frame.payload
        try:
            found, cursor = self._list(asked)
        except RelayError as error:
            peer.say_error(error, frame.id)
            return
        shown = [msgspec.to_builtins(proposal) for proposal in found]
        peer.say("HISTORY_RESULT", {"proposals": shown, "next_cursor": cursor, "reply_to": frame.id})

    def _list(self, asked: payloads.HistoryPayload) -> tuple[list[Proposal], str | None]:
        if asked.id is not None:
            return [self.find(asked.id, "payload.id").proposal], None
        taken: list[Proposal] = []
        room = _LIST_BYTES
        for entry in reversed(self._entries.values()):
            proposal = entry.proposal
            if (asked.pending and proposal.outcome is not None) or (asked.cursor and proposal.proposal_id >= asked.cursor):
                continue
            room -= len(encode_json(proposal))
            if taken and (room < 0 or len(taken) >= asked.limit):
                return taken, taken[-1].proposal_id
            taken.append(proposal)
        return taken, None

    def list_all(self, *, is_open: bool) -> list[Proposal]:
        """The newest first."""
        found = (entry.proposal for entry in reversed(self._entries.values()))
        return [proposal for proposal in found if not is_open or proposal.outcome is None]

    def find(self, id_: str, field: str) -> Entry:
        """By its id, or by its short one; raises RelayError."""
        entry = self._entries.get(id_.strip())
        if entry is not None:
            return entry
        short = read_short_id(id_)
        found = [each for known, each in self._entries.items() if short is not None and stands_for(short, known)]
        if len(found) == 1:
            return found[0]
        if found:
            raise RelayError(ErrorCode.INVALID_FORMAT, AMBIGUOUS, field=field, ids=[each.proposal.proposal_id for each in found])
        sentence = f"There is no proposal {show(id_, 80)}. `agent-relay proposals --all` lists them."
        raise RelayError(ErrorCode.ROUTE_NOT_FOUND, sentence, field=field)

    # --- opening one ------------------------------------------------------------------------------------------------------

    def _find_repeated(self, agent: Agent, request_id: str) -> Entry | None:
        return next(
            (
                entry
                for entry in reversed(self._entries.values())
                if entry.request_id == request_id and entry.proposal.proposed_by == agent.name
            ),
            None,
        )

    def _open(self, agent: Agent, frame: envelope.Propose) -> Entry:
        own = sum(self._entries[id_].proposal.proposed_by == agent.name for id_ in self._deadlines)
        if len(self._deadlines) >= MOST_OPEN or own >= MOST_OPEN_OF_ONE:
            whose, most = (f"{agent.name} has", MOST_OPEN_OF_ONE) if own >= MOST_OPEN_OF_ONE else ("There are", MOST_OPEN)
            sentence = f"{whose} {most} open proposals, which is the most there can be. Wait until one ends, or withdraw one."
            raise RelayError(ErrorCode.AGENT_BUSY, sentence, retry_after_ms=_LOOK_MS, reason="too_many_proposals")
        proposal, participants = self._checks.make(agent, frame.payload)
        self._check_rules(agent, participants)
        for participant in participants:
            if self._backpressure.depth(participant, 1) > self._backpressure.capacity:
                raise self._backpressure.full_error(participant)
        entry = self._entries[proposal.proposal_id] = Entry(proposal, frame.id)
        self._set_deadline(proposal)
        self._context.log.note("proposed", agent=agent.name, proposal=proposal.proposal_id)
        return entry

    # --- what becomes of them -------------------------------------------------------------------------------------------------

    def clock_says(self, now: int) -> None:
        if now >= self._due_at:
            for id_ in [id_ for id_, deadline in self._deadlines.items() if now >= deadline]:
                entry = self._entries[id_]
                self._end(entry, Outcome.TIMEOUT, explain_outcome(entry.proposal, Outcome.TIMEOUT))
                self._conclude(entry)
        if now - self._looked_at >= _LOOK_MS:
            self._looked_at = now
            self._look_for_departures()
            unsaid, self._unsaid = self._unsaid, []
            for entry in unsaid:
                self._announce(entry)

    def _look_for_departures(self) -> None:
        for entry in [self._entries[id_] for id_ in self._deadlines]:
            proposal = entry.proposal
            gone = [name for name in proposal.missing if self._is_gone(name)]
            if gone:
                proposal.departed += gone
                if self._decide(entry):
                    self._conclude(entry)
                else:
                    self._save(entry)

    def _is_gone(self, name: str) -> bool:
        agent = self._registry.find(name)
        return agent is None or agent.hidden

    def forget(self, name: str) -> None:
        """Everything of that agent goes: its proposals, and its part in those of others."""
        key = fold_name(name)
        for entry in list(self._entries.values()):
            proposal = entry.proposal
            if fold_name(proposal.proposed_by) == key:
                if proposal.outcome is None:
                    sentence = "Whoever proposed it was forgotten."
                    self._end(entry, Outcome.WITHDRAWN, sentence)
                    self._notices.tell_outcome(proposal)
                self._drop(entry)
            elif any(fold_name(each) == key for each in proposal.participants):
                _erase(proposal, key)
                if proposal.outcome is None and self._decide(entry):
                    self._conclude(entry)
                else:
                    self._save(entry)

    def _decide(self, entry: Entry) -> bool:
        """Whether that ended it."""
        outcome = entry.proposal.decide()
        if outcome is not None:
            self._end(entry, outcome, explain_outcome(entry.proposal, outcome))
        return outcome is not None

    def _end(self, entry: Entry, outcome: Outcome, resolution: str) -> None:
        """Counts at once; `_announce` tells of it."""
        proposal = entry.proposal
        proposal.outcome, proposal.resolution, proposal.resolved_at = outcome, resolution, self._context.wall_ms
        entry.is_told = False
        del self._deadlines[proposal.proposal_id]
        self._due_at = min(self._deadlines.values(), default=_NEVER)

    def _conclude(self, entry: Entry) -> None:
        self._save(entry, lambda: self._announce(entry))

    def _announce(self, entry: Entry) -> None:
        """It is durable: that it was proposed, or how it ended."""
        proposal = entry.proposal
        if proposal.proposal_id not in self._entries:
            return  # forgotten meanwhile
        outcome = proposal.outcome

        def stored(is_stored: bool) -> None:
            if proposal.outcome is not outcome or proposal.proposal_id not in self._entries:
                return  # it has ended since, and another notice tells of that
            if is_stored:
                entry.is_told = True
                self._save(entry)
            else:
                self._unsaid.append(entry)

        if outcome is None:
            self._notices.publish_proposed(proposal)
            self._notices.send_proposal(proposal, stored)
            return
        self._context.log.note("resolved", proposal=proposal.proposal_id, outcome=outcome.value)
        self._notices.publish_resolved(proposal)
        self._notices.tell_outcome(proposal)
        self._notices.send_outcome(proposal, stored)
        self._drop_old()

    def _set_deadline(self, proposal: Proposal) -> None:
        left = max(0, proposal.expires_at - self._context.wall_ms)
        deadline = self._deadlines[proposal.proposal_id] = self._context.steady_ms + left
        self._due_at = min(self._due_at, deadline)

    # --- what is kept ---------------------------------------------------------------------------------------------------------

    def _answer(self, peer: Peer, request_id: str, stage: str, entry: Entry) -> None:
        peer.say("ACK", {"ack_id": request_id, "stage": stage, "proposal": msgspec.to_builtins(entry.proposal)})

    def _save(self, entry: Entry, then: Callable[[], None] | None = None) -> None:
        self._keep(DOCUMENTS + entry.proposal.proposal_id, encode_json(entry), then)

    def _drop_old(self) -> None:
        over = [entry for entry in self._entries.values() if entry.proposal.outcome is not None and entry.is_told]
        for entry in over[: max(0, len(over) - MOST_RESOLVED)]:
            self._drop(entry)

    def _drop(self, entry: Entry) -> None:
        del self._entries[entry.proposal.proposal_id]
        self._keep(DOCUMENTS + entry.proposal.proposal_id, b"", None)


def _erase(proposal: Proposal, key: str) -> None:
    def others(names: Iterable[str]) -> list[str]:
        return [name for name in names if fold_name(name) != key]

    proposal.participants, proposal.departed = others(proposal.participants), others(proposal.departed)
    proposal.votes = {name: proposal.votes[name] for name in others(proposal.votes)}
    proposal.weights = {name: proposal.weights[name] for name in others(proposal.weights)}
