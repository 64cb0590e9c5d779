"""The checks of what is said about proposals: who takes part, by which rule, until when; who may vote, and who withdraw one.
What is wrong is refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.core.context import Context
from agent_relay.core.registry import Registry
from agent_relay.core.rights import CONTROL, Rights, is_persons_name
from agent_relay.core.router import Router
from agent_relay.protocol import proposals as limits
from agent_relay.protocol.consensus import Choice, Rule, parse_quorum
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import CHANNEL_MARK, fold_name, show
from agent_relay.protocol.proposals import DEFAULT_TIMEOUT_MS, MAX_REASON, MAX_TIMEOUT_MS, PREFIX, CastVote, Proposal
from agent_relay.protocol.short_ids import short_id

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol.payloads import ProposePayload, VotePayload

_WITH_QUORUM = frozenset({Rule.QUORUM, Rule.WEIGHTED})


class ProposalChecks:
    def __init__(self, context: Context, registry: Registry, rights: Rights) -> None:
        self._context = context
        self._rights = rights
        self._router = Router(registry)

    def make(self, proposer: Agent, asked: ProposePayload) -> tuple[Proposal, list[Agent]]:
        """The proposal, and who takes part in it. Raises RelayError."""
        title = " ".join(asked.title.split())
        _check_text(title, "title", limits.MAX_TITLE, needs_one=True)
        description = (asked.description or "").strip()
        _check_text(description, "description", limits.MAX_BODY)
        rule = _read_rule(asked.consensusType)
        timeout_ms = asked.timeoutMs or DEFAULT_TIMEOUT_MS
        if timeout_ms > MAX_TIMEOUT_MS:
            days = MAX_TIMEOUT_MS // 86_400_000
            raise _wrong("timeoutMs", f"can be at most {MAX_TIMEOUT_MS} ({days} days)")
        participants = self._find_participants(proposer, asked.participants)
        names = [agent.name for agent in participants]
        weights = _read_weights(asked.weights, rule, names)
        now = self._context.wall_ms
        proposal = Proposal(
            PREFIX + self._context.ids.reserve(now)[0], title, proposer.name, names, rule, now, now + timeout_ms, description,
            _read_quorum(asked.quorum, rule, weights, names), weights,
        )  # fmt: skip
        return proposal, participants

    def _find_participants(self, proposer: Agent, asked: list[str]) -> list[Agent]:
        """A channel stands for its members but the proposer, as it does in a message."""
        found: dict[str, Agent] = {}
        for name in asked:
            if name[:1] == CHANNEL_MARK:
                members = self._router.resolve(proposer, name, "")[0]
                found |= {agent.key: agent for agent in members if self._can_vote(agent)}
            else:
                agent = self._router.find(name, "payload.participants")
                if not self._can_vote(agent):
                    sentence = f"{agent.name} cannot vote: only agents of the daemon's own user, on its socket, can."
                    raise RelayError(ErrorCode.INVALID_TARGET, sentence, field="payload.participants", name=agent.name)
                found[agent.key] = agent
            if len(found) > limits.MAX_PARTICIPANTS:
                raise _wrong("participants", f"can be at most {limits.MAX_PARTICIPANTS} agents")
        if not found:
            empty = "names nobody else: a channel stands for its other members" if asked else "is empty: name agents or a channel"
            raise _wrong("participants", empty)
        return list(found.values())

    def _can_vote(self, agent: Agent) -> bool:
        """Names that are registered with a transport have no frame for it, and agents of other users may only write and read."""
        return not agent.is_registered and agent.uid not in self._context.limits.allowed_uids

    # --- votes ----------------------------------------------------------------------------------------------------------

    def check_voter(self, proposal: Proposal, agent: Agent) -> str:
        """The participant that this agent is; a person is one whichever of their names they have right now."""
        spelled = {fold_name(name): name for name in proposal.participants if name not in proposal.departed}
        voter = spelled.get(agent.key)
        if voter is None and is_persons_name(agent.name, self._context.limits.owner):
            voter = spelled.get(fold_name(self._context.limits.owner))
        if voter is None:
            raise RelayError(
                ErrorCode.PERMISSION_DENIED, f"{agent.name} is not a participant of proposal {short_id(proposal.proposal_id)}; "
                f"{', '.join(spelled.values())} may vote.", reason="not_a_participant",
            )  # fmt: skip
        return voter

    def read_vote(self, proposal: Proposal, voter: str, said: VotePayload) -> CastVote | None:
        """None: it was counted before. Raises RelayError."""
        try:
            choice = Choice(said.vote.strip().lower())
        except ValueError:
            known = ", ".join(each.value for each in Choice)
            sentence = f"`vote` cannot be {show(said.vote, 40)}: vote {known}."
            raise RelayError(ErrorCode.INVALID_FORMAT, sentence, field="payload.vote") from None
        reason = (said.reason or "").strip()
        if len(reason) > MAX_REASON:
            sentence = f"`reason` has {len(reason)} characters, and can have at most {MAX_REASON}."
            raise RelayError(ErrorCode.INVALID_FORMAT, sentence, field="payload.reason")
        before = proposal.votes.get(voter)
        if before is not None and (before.vote, before.reason) == (choice, reason or None):
            return None
        if proposal.outcome is not None:
            raise over_error(proposal)
        return CastVote(choice, self._context.wall_ms, reason or None, said.heard)

    def check_withdrawal(self, peer: Peer, proposal: Proposal) -> str:
        """Whoever withdraws it. Raises RelayError."""
        agent = peer.agent
        if agent is not None and agent.key == fold_name(proposal.proposed_by):
            return agent.name
        if agent is not None and not is_persons_name(agent.name, self._context.limits.owner):
            sentence = f"Only {proposal.proposed_by}, who proposed it, or the relay's owner can withdraw it."
            raise RelayError(ErrorCode.PERMISSION_DENIED, sentence, reason="not_the_proposer")
        self._rights.check(self._rights.caller_of(peer), CONTROL)
        return self._context.limits.owner or "The owner"


def _read_rule(text: str) -> Rule:
    try:
        return Rule(text)
    except ValueError:
        known = ", ".join(rule.value for rule in Rule)
        raise _wrong("consensusType", f"cannot be {show(text, 40)}: the rules are {known}") from None


def _read_weights(asked: dict[str, int], rule: Rule, names: list[str]) -> dict[str, int]:
    """Whoever is not named counts once."""
    if not asked:
        return {}
    if rule is not Rule.WEIGHTED:
        raise _wrong("weights", f"is for the rule weighted, and this one is {rule}")
    spelled = {fold_name(name): name for name in names}
    for name, weight in asked.items():
        if fold_name(name) not in spelled:
            raise _wrong("weights", f"names {show(name, 80)}, who is not a participant")
        if weight > limits.MAX_WEIGHT:
            raise _wrong("weights", f"can be at most {limits.MAX_WEIGHT} for one participant")
    return {spelled[fold_name(name)]: weight for name, weight in asked.items()}


def _read_quorum(asked: int | str | None, rule: Rule, weights: dict[str, int], names: list[str]) -> str | None:
    if asked is None:
        if rule is Rule.QUORUM:
            raise _wrong("quorum", "is missing: the rule quorum needs a number of approvals such as 3, or a share such as 60%")
        return None
    if rule not in _WITH_QUORUM:
        raise _wrong("quorum", f"is for the rules quorum and weighted, and this one is {rule}")
    try:
        quorum = parse_quorum(str(asked).strip())
    except ValueError as error:
        raise _wrong("quorum", f"cannot be {show(str(asked), 40)}: use {error}") from None
    most = sum(weights.get(name, 1) for name in names)
    if not quorum.is_share and quorum.number > most:
        raise _wrong("quorum", f"cannot be {quorum}: all participants together count {most}")
    return str(quorum)


def _check_text(text: str, field: str, most: int, *, needs_one: bool = False) -> None:
    if needs_one and not text:
        raise _wrong(field, "is empty: say in a line what is proposed")
    if len(text) > most:
        raise _wrong(field, f"has {len(text)} characters, and can have at most {most}")


def over_error(proposal: Proposal) -> RelayError:
    sentence = f"Proposal {short_id(proposal.proposal_id)} is over: {proposal.outcome}. {proposal.resolution}"
    return RelayError(ErrorCode.REJECTED, sentence, reason="resolved", outcome=str(proposal.outcome))


def _wrong(field: str, problem: str) -> RelayError:
    return RelayError(ErrorCode.INVALID_FORMAT, f"`{field}` {problem}.", field=f"payload.{field}")
