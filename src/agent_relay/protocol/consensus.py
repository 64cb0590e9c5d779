"""The rules by which participants decide a proposal. Pure: weights and votes in, an outcome out.

Whoever abstains is taken out of the count, and so is whoever has departed. Of the weight that is left, the approvals must reach
what the rule asks for:

    majority, weighted   more than half; a tie is not enough
    unanimous            all of it
    quorum               at least a number, or at least a share of it

Nothing is approved that nobody approved. A proposal ends as soon as the votes that are still missing could not change the
outcome: it is approved if it would be even if all of them rejected it, and rejected if it would be even if all of them
approved it. No other votes could be better or worse for it, so these two are all that has to be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

MAX_QUORUM = 1_000_000  # more than any count of participants and any sum of weights
_COUNT = re.compile(r"[0-9]{1,7}", re.ASCII)
_SHARE = re.compile(r"([0-9]{1,3}) ?%", re.ASCII)


class Rule(StrEnum):
    MAJORITY = "majority"
    UNANIMOUS = "unanimous"
    QUORUM = "quorum"
    WEIGHTED = "weighted"


class Choice(StrEnum):
    APPROVE = "approve"
    REJECT = "reject"
    ABSTAIN = "abstain"


class Outcome(StrEnum):
    APPROVED = "approved"
    REJECTED = "rejected"
    TIMEOUT = "timeout"
    WITHDRAWN = "withdrawn"


class Quorum(NamedTuple):
    """The approvals that are needed: a number of them, or a share of all that count, in percent."""

    number: int
    is_share: bool = False

    def __str__(self) -> str:
        return f"{self.number}%" if self.is_share else str(self.number)


def parse_quorum(text: str) -> Quorum:
    """`3`, or `60%`; raises ValueError."""
    share = _SHARE.fullmatch(text)
    if share is not None and 1 <= int(share[1]) <= 100:
        return Quorum(int(share[1]), is_share=True)
    if _COUNT.fullmatch(text) is not None and 1 <= int(text) <= MAX_QUORUM:
        return Quorum(int(text))
    raise ValueError("a number of approvals such as 3, or a share from 1% to 100%")


class Tally(NamedTuple):
    """The weight behind each choice, and the weight that has not voted."""

    approve: int
    reject: int
    abstain: int
    missing: int


def count_votes(weights: Mapping[str, int], votes: Mapping[str, Choice]) -> Tally:
    """`weights` has everybody who counts; votes of others are ignored."""
    sums = dict.fromkeys(Choice, 0)
    missing = 0
    for name, weight in weights.items():
        choice = votes.get(name)
        if choice is None:
            missing += weight
        else:
            sums[choice] += weight
    return Tally(sums[Choice.APPROVE], sums[Choice.REJECT], sums[Choice.ABSTAIN], missing)


def decide(
    rule: Rule, quorum: Quorum | None, weights: Mapping[str, int], votes: Mapping[str, Choice]
) -> Outcome | None:  # fmt: skip
    """The outcome as soon as it is certain; None: it depends on votes that are missing."""
    tally = count_votes(weights, votes)
    electorate = tally.approve + tally.reject + tally.missing
    if _passes(rule, quorum, tally.approve, electorate):
        return Outcome.APPROVED
    if not _passes(rule, quorum, tally.approve + tally.missing, electorate):
        return Outcome.REJECTED
    return None


def _passes(rule: Rule, quorum: Quorum | None, approvals: int, electorate: int) -> bool:
    if not approvals:
        return False
    if quorum is not None:
        return approvals * 100 >= quorum.number * electorate if quorum.is_share else approvals >= quorum.number
    if rule is Rule.UNANIMOUS:
        return approvals == electorate
    return approvals * 2 > electorate
