"""Proposals in words, and who is still to vote."""

from __future__ import annotations

import pytest

from agent_relay.protocol.consensus import Choice, Outcome, Rule, Tally
from agent_relay.protocol.proposals import CastVote, Proposal, describe_rule, describe_tally


def propose(rule: Rule = Rule.MAJORITY, quorum: str | None = None, weights: dict[str, int] | None = None) -> Proposal:
    return Proposal("prop_1", "T", "Ann", ["Bob", "Cyd", "Dan"], rule, 0, 1, quorum=quorum, weights=weights or {})


@pytest.mark.parametrize(
    ("proposal", "sentence"),
    [
        (propose(), "more than half of 3 must approve"),
        (propose(Rule.UNANIMOUS), "all 3 must approve"),
        (propose(Rule.QUORUM, "2"), "2 of 3 must approve"),
        (propose(Rule.QUORUM, "60%"), "60% of 3 must approve"),
        (propose(Rule.WEIGHTED, weights={"Bob": 3}), "more than half of the weight of 5 must approve"),
        (propose(Rule.WEIGHTED, "4", {"Bob": 3}), "4 of the weight of 5 must approve"),
    ],
)
def test_a_rule_is_a_sentence(proposal: Proposal, sentence: str) -> None:
    assert describe_rule(proposal) == sentence


@pytest.mark.parametrize("rule", list(Rule))
def test_one_participant_is_all_of_them(rule: Rule) -> None:
    proposal = propose(rule)
    proposal.participants = ["Bob"]
    assert describe_rule(proposal) == "the one participant must approve"


def test_the_departed_are_neither_awaited_nor_counted() -> None:
    proposal = propose(Rule.WEIGHTED, weights={"Bob": 3})
    proposal.votes["Bob"] = CastVote(Choice.ABSTAIN, 5)
    assert proposal.missing == ["Cyd", "Dan"]
    assert describe_tally(proposal) == "0 approve, 0 reject, 3 abstain, 2 have not voted (weights)"
    proposal.departed.append("Cyd")
    assert (proposal.missing, proposal.tally()) == (["Dan"], Tally(0, 0, 3, 1))
    assert proposal.decide() is None
    proposal.votes["Dan"] = CastVote(Choice.APPROVE, 6)
    assert proposal.decide() is Outcome.APPROVED
    assert describe_tally(propose()) == "0 approve, 0 reject, 3 have not voted"
