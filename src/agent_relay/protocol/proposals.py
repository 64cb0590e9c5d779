"""A proposal as it is stored, sent and shown: the one shape that it keeps from the daemon to the page."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from agent_relay.protocol.consensus import Choice, Outcome, Rule, Tally, count_votes, decide, parse_quorum

PREFIX = "prop_"
MAX_TITLE, MAX_BODY, MAX_REASON = 200, 20_000, 1_000  # characters
MAX_PARTICIPANTS = 100
MAX_WEIGHT = 1_000
DEFAULT_TIMEOUT_MS = 300_000
MAX_TIMEOUT_MS = 30 * 86_400_000  # messages are kept for as long


class CastVote(Struct, omit_defaults=True):
    vote: Choice
    at: int  # milliseconds since 1970
    reason: str | None = None
    heard: Literal["screen"] | None = None  # read off the voter's screen; else it is the voter's own word for sure


class Proposal(Struct, rename="camel"):
    """Names are as their agents spell them. `weights` is empty where everybody counts alike. `departed` were participants when
    it was proposed, and left the relay without a vote. `resolution` says in a sentence how it ended."""

    proposal_id: str
    title: str
    proposed_by: str
    participants: list[str]
    consensus_type: Rule
    proposed_at: int  # milliseconds since 1970, as all of these
    expires_at: int
    description: str = ""
    quorum: str | None = None  # `3`, or `60%`
    weights: dict[str, int] = {}
    votes: dict[str, CastVote] = {}
    departed: list[str] = []
    outcome: Outcome | None = None  # None: it is open
    resolved_at: int | None = None
    resolution: str = ""

    @property
    def missing(self) -> list[str]:
        """Those whose vote is awaited."""
        return [name for name in self.participants if name not in self.votes and name not in self.departed]

    def decide(self) -> Outcome | None:
        quorum = parse_quorum(self.quorum) if self.quorum is not None else None
        return decide(self.consensus_type, quorum, self._electorate(), self._choices())

    def tally(self) -> Tally:
        return count_votes(self._electorate(), self._choices())

    def _electorate(self) -> dict[str, int]:
        return {name: self.weights.get(name, 1) for name in self.participants if name not in self.departed}

    def _choices(self) -> dict[str, Choice]:
        return {name: cast.vote for name, cast in self.votes.items()}


def describe_rule(proposal: Proposal) -> str:
    """`more than half of 3 must approve`."""
    count, quorum = len(proposal.participants), proposal.quorum
    weight = sum(proposal.weights.get(name, 1) for name in proposal.participants)
    if count == 1 and not weight > 1:
        return "the one participant must approve"
    everybody = f"the weight of {weight}" if proposal.weights else f"{count}"
    if quorum is not None:
        return f"{quorum} of {everybody} must approve"
    if proposal.consensus_type is Rule.UNANIMOUS:
        return f"all {count} must approve"
    return f"more than half of {everybody} must approve"


def describe_tally(proposal: Proposal) -> str:
    """`2 approve, 1 reject, 1 has not voted`: participants, or weights where they differ."""
    tally = proposal.tally()
    parts = [f"{tally.approve} approve", f"{tally.reject} reject"]
    if tally.abstain:
        parts.append(f"{tally.abstain} abstain")
    if tally.missing:
        parts.append(f"{tally.missing} {'has' if tally.missing == 1 else 'have'} not voted")
    return ", ".join(parts) + (" (weights)" if proposal.weights else "")
