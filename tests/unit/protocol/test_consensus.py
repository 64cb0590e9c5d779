"""The rules: what each asks for, what ends early, and that an early end is never wrong."""

from __future__ import annotations

import random
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.consensus import Choice, Outcome, Quorum, Rule, Tally, count_votes, decide, parse_quorum

A, R, N = Choice.APPROVE, Choice.REJECT, Choice.ABSTAIN
APPROVED, REJECTED = Outcome.APPROVED, Outcome.REJECTED


def outcome(rule: Rule, votes: str, quorum: str | None = None, weights: tuple[int, ...] = ()) -> Outcome | None:
    """Of participants that said `a`, `r`, `n` (abstain) or nothing (`.`)."""
    names = [f"p{place}" for place in range(len(votes))]
    counted = dict(zip(names, weights or (1,) * len(names), strict=True))
    said = {name: {"a": A, "r": R, "n": N}[letter] for name, letter in zip(names, votes, strict=True) if letter != "."}
    return decide(rule, None if quorum is None else parse_quorum(quorum), counted, said)


# --- each rule in examples ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ("aa.", APPROVED), ("a..", None), ("a.", None), ("a", APPROVED), ("r", REJECTED),
        ("ar", REJECTED),  # a tie is not more than half
        ("aarr", REJECTED), ("aaarr", APPROVED), ("rr..", REJECTED), ("rr...", None),
        ("an", APPROVED), ("arn", REJECTED), ("aan.", APPROVED), ("an.", None), ("nn", REJECTED), ("n.", None), ("...", None),
    ],
)  # fmt: skip
def test_a_majority_is_more_than_half_of_those_who_do_not_abstain(votes: str, expected: Outcome | None) -> None:
    assert outcome(Rule.MAJORITY, votes) is expected


@pytest.mark.parametrize(
    ("votes", "expected"),
    [("aaa", APPROVED), ("aa.", None), ("r..", REJECTED), ("aar", REJECTED), ("aan", APPROVED), ("nnn", REJECTED), ("nn.", None)],
)
def test_unanimous_is_everybody_who_does_not_abstain(votes: str, expected: Outcome | None) -> None:
    assert outcome(Rule.UNANIMOUS, votes) is expected


@pytest.mark.parametrize(
    ("votes", "quorum", "expected"),
    [
        ("aa...", "2", APPROVED), ("a....", "2", None), ("arrrr", "2", REJECTED), ("arrr.", "2", None), ("ann", "2", REJECTED),
        ("aaa..", "60%", APPROVED), ("aa...", "60%", None), ("rrr..", "60%", REJECTED), ("aarn.", "60%", None),
        ("aarnn", "60%", APPROVED),  # of the three that are left
        ("aa", "100%", APPROVED), ("...", "1%", None), ("nn", "1%", REJECTED), ("a..", "1%", APPROVED),
    ],
)  # fmt: skip
def test_a_quorum_is_a_number_or_a_share_of_approvals(votes: str, quorum: str, expected: Outcome | None) -> None:
    assert outcome(Rule.QUORUM, votes, quorum) is expected


@pytest.mark.parametrize(
    ("votes", "weights", "quorum", "expected"),
    [
        ("a..", (3, 1, 1), None, APPROVED), ("ar", (1, 1), None, REJECTED), ("arr", (2, 1, 1), None, REJECTED),
        ("arr", (3, 1, 1), None, APPROVED), ("n.r", (5, 1, 1), None, REJECTED), ("n.a", (5, 2, 1), None, None),
        ("a.", (3, 4), "4", None), ("aa", (3, 4), "7", APPROVED), ("a.", (3, 4), "60%", None), ("ra", (3, 4), "60%", REJECTED),
    ],
)  # fmt: skip
def test_weights_count_in_place_of_heads(
    votes: str, weights: tuple[int, ...], quorum: str | None, expected: Outcome | None
) -> None:
    assert outcome(Rule.WEIGHTED, votes, quorum, weights) is expected


def test_nobody_left_to_vote_approves_nothing() -> None:
    for rule in Rule:
        assert decide(rule, Quorum(1) if rule is Rule.QUORUM else None, {}, {}) is REJECTED


def test_votes_of_others_are_not_counted() -> None:
    assert count_votes({"a": 2, "b": 1}, {"a": A, "x": R}) == Tally(2, 0, 0, 1)


# --- quorums as they are written -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"), [("3", Quorum(3)), ("60%", Quorum(60, is_share=True)), ("7 %", Quorum(7, is_share=True))]
)
def test_a_quorum_is_read_and_written(text: str, expected: Quorum) -> None:
    assert parse_quorum(text) == expected
    assert parse_quorum(str(expected)) == expected


@pytest.mark.parametrize("text", ["", "0", "0%", "101%", "-1", "2.5", "half", "1e3", "٣", "10000000", "60%%"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="a number of approvals"):
        parse_quorum(text)


# --- properties ----------------------------------------------------------------------------------------------------------

Ballot: TypeAlias = tuple[Rule, Quorum | None, dict[str, int], list[tuple[str, Choice]]]
CHOICES = st.sampled_from(list(Choice))


@st.composite
def ballots(draw: st.DrawFn) -> Ballot:
    """A rule, participants with weights, and one vote of each, in some order."""
    rule = draw(st.sampled_from(list(Rule)))
    count = draw(st.integers(1, 8))
    weights = {f"p{place}": draw(st.integers(1, 9)) if rule is Rule.WEIGHTED else 1 for place in range(count)}
    share = st.integers(1, 100).map(lambda percent: Quorum(percent, is_share=True))
    number = st.integers(1, sum(weights.values())).map(Quorum)
    with_quorum = rule is Rule.QUORUM or (rule is Rule.WEIGHTED and draw(st.booleans()))
    quorum = draw(st.one_of(share, number)) if with_quorum else None
    votes = draw(st.permutations([(name, draw(CHOICES)) for name in weights]))
    return rule, quorum, weights, votes


@given(ballots())
def test_all_votes_always_decide(ballot: Ballot) -> None:
    rule, quorum, weights, votes = ballot
    assert decide(rule, quorum, weights, dict(votes)) in {APPROVED, REJECTED}


@given(ballots())
def test_an_early_end_never_contradicts_the_outcome_with_all_votes_in(
    ballot: Ballot,
) -> None:
    rule, quorum, weights, votes = ballot
    final = decide(rule, quorum, weights, dict(votes))
    for count in range(len(votes)):
        assert decide(rule, quorum, weights, dict(votes[:count])) in {None, final}


@given(ballots(), st.integers(0, 7))
def test_an_early_end_holds_when_those_who_have_not_voted_depart(ballot: Ballot, count: int) -> None:
    rule, quorum, weights, votes = ballot
    said = dict(votes[:count])
    early = decide(rule, quorum, weights, said)
    present = {name: weight for name, weight in weights.items() if name in said}
    final = decide(rule, quorum, present, said)
    assert final is not None
    assert early in {None, final}


@given(ballots(), st.randoms(use_true_random=False))
def test_the_order_of_votes_does_not_matter(ballot: Ballot, chance: random.Random) -> None:
    rule, quorum, weights, votes = ballot
    for count in range(len(votes) + 1):
        some = votes[:count]
        mixed = chance.sample(some, len(some))
        assert decide(rule, quorum, weights, dict(mixed)) is decide(rule, quorum, weights, dict(some))


@given(ballots())
def test_an_end_is_as_early_as_it_can_be(ballot: Ballot) -> None:
    """While it is open, the missing votes could still make it either."""
    rule, quorum, weights, votes = ballot
    for count in range(len(votes)):
        said = dict(votes[:count])
        if decide(rule, quorum, weights, said) is None:
            rest = [name for name, _ in votes[count:]]
            assert decide(rule, quorum, weights, said | dict.fromkeys(rest, A)) is APPROVED
            assert decide(rule, quorum, weights, said | dict.fromkeys(rest, R)) is REJECTED


@given(ballots())
def test_one_more_approval_never_turns_it_down(
    ballot: Ballot,
) -> None:
    rule, quorum, weights, votes = ballot
    said = dict(votes)
    if decide(rule, quorum, weights, said) is APPROVED:
        for name in said:
            assert decide(rule, quorum, weights, said | {name: A}) is APPROVED


@given(ballots())
def test_with_all_votes_in_it_is_what_the_rule_says_in_words(ballot: Ballot) -> None:
    rule, quorum, weights, votes = ballot
    approve = sum(weights[name] for name, choice in votes if choice is A)
    reject = sum(weights[name] for name, choice in votes if choice is R)
    if quorum is None:
        is_approved = reject == 0 if rule is Rule.UNANIMOUS else approve > reject
    else:
        is_approved = 100 * approve >= quorum.number * (approve + reject) if quorum.is_share else approve >= quorum.number
    expected = APPROVED if is_approved and approve else REJECTED
    assert decide(rule, quorum, weights, dict(votes)) is expected


@given(ballots())
def test_while_nobody_has_voted_nothing_is_decided(ballot: Ballot) -> None:
    rule, quorum, weights, _ = ballot
    assert decide(rule, quorum, weights, {}) is None


@given(ballots())
def test_nothing_is_approved_that_nobody_approved(ballot: Ballot) -> None:
    rule, quorum, weights, votes = ballot
    said = {name: N if choice is A else choice for name, choice in votes}
    assert decide(rule, quorum, weights, said) is REJECTED


@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 3))
def test_a_tie_is_rejected_whoever_abstains(halves: list[int], others: int) -> None:
    """For every approval there is a rejection of the same weight."""
    for rule in (Rule.MAJORITY, Rule.WEIGHTED):
        weights = [1] * len(halves) if rule is Rule.MAJORITY else halves
        said = {f"{side}{place}": choice for side, choice in (("a", A), ("r", R)) for place in range(len(halves))}
        said |= {f"n{place}": N for place in range(others)}
        counted = {name: 1 if name.startswith("n") else weights[int(name[1:])] for name in said}
        assert decide(rule, None, counted, said) is REJECTED
