"""A vote: several agents are asked the same question, and their choices are counted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Unpack

from agent_relay.events.costs import Breakdown
from agent_relay.patterns.crew import NOTHING_USED, TIMEOUT_S, Crew, RunOptions
from agent_relay.patterns.ends import side_by_side
from agent_relay.patterns.results import Reader, read_json
from agent_relay.patterns.tasks import AgentFailed, OnProgress, Task, check_positive, check_unique_names, read_task
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient

Rule: TypeAlias = Literal["majority", "plurality", "unanimous"] | int


@dataclass(frozen=True, slots=True)
class Ballot:
    voter: str
    agent: str
    choice: str
    reason: str


@dataclass(frozen=True, slots=True)
class VoteResult:
    choice: str | None  # None: no option has enough votes
    counts: Mapping[str, int]  # of every option
    ballots: tuple[Ballot, ...]  # in the order of the voters
    failed: tuple[AgentFailed, ...]  # voters without a vote
    duration_s: float
    usage: Breakdown = NOTHING_USED  # tokens of all its agents, and what they cost


async def vote(
    relay: RelayClient,
    *,
    question: str,
    voters: Iterable[Task | Mapping[str, Any]],
    options: Sequence[str] = ("yes", "no"),
    rule: Rule = "majority",
    retries: int = 1,
    timeout: float = TIMEOUT_S,  # noqa: ASYNC109 - of each attempt
    on_progress: OnProgress | None = None,
    **run_options: Unpack[RunOptions],
) -> VoteResult:
    """Asks each voter, whose `task` may say from which point of view, to choose one of the options. They do not see each other's.

    `rule` says which option is chosen: the one of more than half of all voters (`"majority"`), the one with most votes
    (`"plurality"`), the one that every voter chose (`"unanimous"`), or the one with at least that number of votes. A voter that
    failed counts as a voter without a vote. Two options that both have enough are a tie, and none is chosen.
    """
    check_positive("timeout", timeout)
    given = [read_task(voter) for voter in voters]
    check_unique_names("voters", given)
    needed = _count_needed(rule, len(given))
    if len(options) < 2 or len({option.casefold() for option in options}) < len(options):
        raise RelayError(ErrorCode.INVALID_FORMAT, "A vote needs at least two different options.", field="options")
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    async with Crew(relay, len(given), on_progress, run_options, "vote") as crew:

        async def cast(voter: Task) -> Ballot | None:
            choices = ", ".join(f'"{option}"' for option in options)
            text = (
                f"{question}\n\n{voter.task}\n\nVote for one of {choices}. Your result is JSON: "
                '{"choice": OPTION, "reason": TEXT}.'
            )
            try:
                answer = await crew.ask(Task(voter.name, voter.cli, text), timeout, retries, reader=_ballot_reader(options))
            except AgentFailed:
                return None
            choice, reason = answer.value
            return Ballot(voter.name, answer.agent, choice, reason)

        async with side_by_side([cast(voter) for voter in given]) as running:
            ballots = tuple(ballot for ballot in await asyncio.gather(*running) if ballot is not None)
    found = Counter(ballot.choice for ballot in ballots)
    counts = {option: found[option] for option in options}
    chosen = _choose(counts, needed)
    return VoteResult(chosen, counts, ballots, tuple(crew.failures), loop.time() - begun_s, crew.usage)


def _count_needed(rule: Rule, voters: int) -> int:
    match rule:
        case "majority":
            return voters // 2 + 1
        case "plurality":
            return 1
        case "unanimous":
            return max(voters, 1)
        case int() if 0 < rule <= voters and not isinstance(rule, bool):
            return rule
        case _:
            sentence = '`rule` must be "majority", "plurality", "unanimous" or a number from 1 to the number of voters.'
            raise RelayError(ErrorCode.INVALID_FORMAT, sentence, field="rule")


def _choose(counts: Mapping[str, int], needed: int) -> str | None:
    most = max(counts.values())
    first = [option for option, count in counts.items() if count == most]
    return first[0] if most >= needed and len(first) == 1 else None


def _ballot_reader(options: Sequence[str]) -> Reader:
    known = {option.casefold(): option for option in options}

    def read(text: str) -> tuple[str, str]:
        if text.strip().casefold() in known:
            return known[text.strip().casefold()], ""
        found = read_json(text)
        choice = found.get("choice") if isinstance(found, dict) else None
        if not isinstance(choice, str) or choice.strip().casefold() not in known:
            raise ValueError(f'It must be a JSON object whose "choice" is one of {", ".join(options)}.')
        return known[choice.strip().casefold()], str(found.get("reason") or "")

    return read
