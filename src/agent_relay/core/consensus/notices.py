"""Notices of proposals: what their participants and their proposer are sent, as messages, frames and events.

The proposal itself is a message from its proposer, so that a reply to it reaches whoever proposed it. How it ended is the
relay's to say. Both are sent under an id made of the proposal's, so that saying it again after a crash is still one message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_relay.core.agents import Agent
from agent_relay.core.context import Context
from agent_relay.core.registry import Registry
from agent_relay.core.sending import Sending
from agent_relay.core.voice import find_voice
from agent_relay.events import types as t
from agent_relay.protocol.consensus import Outcome
from agent_relay.protocol.proposals import CastVote, Proposal, describe_rule, describe_tally
from agent_relay.protocol.short_ids import short_id

if TYPE_CHECKING:
    from agent_relay.events.types import Event

PROPOSAL_KIND, OUTCOME_KIND = "proposal", "consensus"
_CAPABILITY = "consensus"
_HEADLINES = {
    Outcome.APPROVED: "was approved",
    Outcome.REJECTED: "was rejected",
    Outcome.TIMEOUT: "ended without a decision",
    Outcome.WITHDRAWN: "was withdrawn",
}


class ProposalNotices:
    def __init__(self, context: Context, registry: Registry, sending: Sending) -> None:
        self._context = context
        self._registry = registry
        self._sending = sending

    # --- messages -------------------------------------------------------------------------------------------------------

    def send_proposal(self, proposal: Proposal, stored: Callable[[bool], None]) -> None:
        """To its participants; its proposer knows it."""
        proposer = self._registry.find(proposal.proposed_by)
        others = [agent for agent in self._find(proposal.participants) if agent is not proposer]
        if proposer is None or not others:
            stored(True)
            return
        payload = _payload(PROPOSAL_KIND, describe_proposal(proposal), proposal)
        self._sending.post(proposer, others, payload, f"proposal-{proposal.proposal_id}", stored)

    def send_outcome(self, proposal: Proposal, stored: Callable[[bool], None]) -> None:
        """To its participants and its proposer."""
        recipients = self._find(dict.fromkeys([proposal.proposed_by, *proposal.participants]))
        if not recipients:
            stored(True)
            return
        payload = _payload(OUTCOME_KIND, describe_outcome(proposal), proposal)
        proposer = self._registry.find(proposal.proposed_by)
        # For the loop guard it is the proposer who speaks: agents that only answer each other's proposals are a loop, too.
        voice = find_voice(self._context, self._registry, self._sending)
        self._sending.post(voice, recipients, payload, f"consensus-{proposal.proposal_id}", stored, spoken_by=proposer)

    def _find(self, names: Any) -> list[Agent]:
        found = (self._registry.find(name) for name in names)
        return [agent for agent in found if agent is not None and not agent.hidden]

    # --- frames and events ----------------------------------------------------------------------------------------------

    def tell_outcome(self, proposal: Proposal) -> None:
        """CONSENSUS, to those of them that are connected and know the frame."""
        votes = {name: cast.vote.value for name, cast in proposal.votes.items()}
        said = {
            "proposalId": proposal.proposal_id, "outcome": proposal.outcome, "votes": votes, "resolution": proposal.resolution,
        }  # fmt: skip
        for agent in self._find(dict.fromkeys([proposal.proposed_by, *proposal.participants])):
            if agent.peer is not None and agent.peer.active and _CAPABILITY in agent.traits.capabilities:
                agent.peer.say("CONSENSUS", said)

    def publish_proposed(self, proposal: Proposal) -> None:
        self._publish(
            proposal.proposed_by,
            lambda session_id: t.ConsensusProposed(
                session_id=session_id, proposal_id=proposal.proposal_id, title=proposal.title, proposed_by=proposal.proposed_by,
                participants=tuple(proposal.participants), consensus_type=proposal.consensus_type.value,
                description=proposal.description or None, quorum=proposal.quorum, weights=proposal.weights or None,
                expires_at=proposal.expires_at,
            ),
        )  # fmt: skip

    def publish_vote(self, proposal: Proposal, voter: str, cast: CastVote) -> None:
        self._publish(
            voter,
            lambda session_id: t.ConsensusVote(
                session_id=session_id, proposal_id=proposal.proposal_id, voter=voter, vote=cast.vote.value, reason=cast.reason
            ),
        )

    def publish_resolved(self, proposal: Proposal) -> None:
        outcome = proposal.outcome
        assert outcome is not None
        self._publish(
            proposal.proposed_by,
            lambda session_id: t.ConsensusResolved(
                session_id=session_id, proposal_id=proposal.proposal_id, outcome=outcome.value,
                votes={name: cast.vote.value for name, cast in proposal.votes.items()},
                reasons={name: cast.reason for name, cast in proposal.votes.items() if cast.reason} or None,
                resolution=proposal.resolution,
            ),
        )  # fmt: skip

    def _publish(self, name: str, make: Callable[[str], Event]) -> None:
        if self._context.events is None:
            return
        agent = self._registry.find(name)
        session_id = agent.session_id if agent is not None else ""
        self._context.events.publish(make(session_id), agent=name, session_id=session_id, at_ms=self._context.wall_ms)


def _payload(kind: str, body: str, proposal: Proposal) -> dict[str, Any]:
    data = {"proposalId": proposal.proposal_id, "title": proposal.title}
    more = {"outcome": proposal.outcome.value} if proposal.outcome is not None else {"expiresAt": proposal.expires_at}
    return {"kind": kind, "body": body, "data": data | more}


def describe_proposal(proposal: Proposal) -> str:
    """The text for those who vote. Its example names all choices at once, so nobody can read it as a vote."""
    shown = short_id(proposal.proposal_id)
    until = _span(proposal.expires_at - proposal.proposed_at)
    parts = [f"Proposal {shown}: {proposal.title}"]
    if proposal.description:
        parts.append(proposal.description)
    parts.append(
        f"Your vote is asked for within {until}; {describe_rule(proposal)} ({', '.join(proposal.participants)}). Begin a line "
        f"with `->relay:vote {shown} approve|reject|abstain` (choose one) and your reason, or run: agent-relay vote {shown} "
        "approve|reject|abstain --reason '…'"
    )
    return "\n\n".join(parts)


def describe_outcome(proposal: Proposal) -> str:
    assert proposal.outcome is not None
    lines = [f"Proposal {short_id(proposal.proposal_id)} {_HEADLINES[proposal.outcome]}: {proposal.title}", proposal.resolution]
    for name, cast in proposal.votes.items():
        lines.append(f"- {name}: {cast.vote.value}" + (f" ({cast.reason})" if cast.reason else ""))
    return "\n".join(lines)


def explain_outcome(proposal: Proposal, outcome: Outcome, by: str = "", reason: str = "") -> str:
    """The sentence that a proposal ends with."""
    tally = describe_tally(proposal)
    if outcome is Outcome.WITHDRAWN:
        return f"{by} withdrew it" + (f": {reason}" if reason else ".")
    if outcome is Outcome.TIMEOUT:
        return f"Its time was over before it was decided: {tally}."
    return f"{tally[0].upper()}{tally[1:]}; {describe_rule(proposal)}."


def _span(milliseconds: int) -> str:
    for unit_ms, unit in ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1_000, "second")):
        if milliseconds >= unit_ms:
            count = round(milliseconds / unit_ms)
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return "a second"
