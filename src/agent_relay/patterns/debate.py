"""A debate: sides that answer each other in rounds, and a judge who decides."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from agent_relay.events.costs import Breakdown
from agent_relay.patterns.crew import NOTHING_USED, TIMEOUT_S, Crew, RunOptions
from agent_relay.patterns.ends import side_by_side
from agent_relay.patterns.results import Reader, read_json
from agent_relay.patterns.tasks import AgentFailed, OnProgress, Task, check_positive, check_unique_names, read_task
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import fold_name
from agent_relay.sdk.client import RelayClient

_FEWEST_SIDES = 2


@dataclass(frozen=True, slots=True)
class Statement:
    round: int  # from 1 on
    side: str
    agent: str
    text: str


@dataclass(frozen=True, slots=True)
class DebateResult:
    verdict: str
    winner: str | None  # a side; None: the judge could not decide
    statements: tuple[Statement, ...]  # round by round, in the order of the sides
    failed: tuple[AgentFailed, ...]  # sides that said nothing in a round
    duration_s: float
    usage: Breakdown = NOTHING_USED  # tokens of all its agents, and what they cost


class DebateFailed(AgentFailed):
    """There is no verdict. `statements` has what was said."""

    def __init__(self, error: AgentFailed, statements: Sequence[Statement]) -> None:
        super().__init__(error.task, error.agent, error.attempts, error)
        self.statements = tuple(statements)


async def debate(
    relay: RelayClient,
    *,
    question: str,
    sides: Iterable[Task | Mapping[str, Any]],
    judge: Task | Mapping[str, Any],
    rounds: int = 2,
    retries: int = 1,
    timeout: float = TIMEOUT_S,  # noqa: ASYNC109 - of each attempt
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> DebateResult:
    """Each side argues its `task` (its position) in every round, at the same time as the others and knowing what was said in the
    rounds before. Then the judge, whose `task` says what to judge by, names the winner and the reasons.

    A side that fails in a round says nothing in it. Raises DebateFailed without a verdict.
    """
    check_positive("timeout", timeout)
    check_positive("rounds", rounds)
    given = [read_task(side) for side in sides]
    referee = read_task(judge)
    check_unique_names("sides", [*given, referee])
    if len(given) < _FEWEST_SIDES:
        raise RelayError(ErrorCode.INVALID_FORMAT, "A debate needs at least two sides.", field="sides")
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    said: list[Statement] = []
    async with Crew(relay, len(given) * rounds + 1, on_progress, options, "debate") as crew:

        async def speak(side: Task, number: int, before: str) -> Statement | None:
            text = f"{question}\n\nIn this debate you are {side.name}. Your position: {side.task}\n\n{before}"
            try:
                answer = await crew.ask(Task(side.name, side.cli, text), timeout, retries)
            except AgentFailed:
                return None
            return Statement(number, side.name, answer.agent, answer.text)

        for number in range(1, rounds + 1):
            before = f"{_tell(said)}This is round {number} of {rounds}. Give your statement."
            async with side_by_side([speak(side, number, before) for side in given]) as running:
                said += [statement for statement in await asyncio.gather(*running) if statement is not None]
        text = (
            f"{question}\n\nYou are the judge of this debate. {referee.task}\n\n{_tell(said)}Decide. Your result is JSON: "
            '{"winner": NAME, "verdict": TEXT}, with null for the winner if nobody wins.'
        )
        failed = tuple(crew.failures)
        try:
            judged = await crew.ask(Task(referee.name, referee.cli, text), timeout, retries, reader=_verdict_reader(given))
        except AgentFailed as error:
            raise DebateFailed(error, said) from error
    winner, verdict = judged.value
    return DebateResult(verdict, winner, tuple(said), failed, loop.time() - begun_s, crew.usage)


def _tell(said: Sequence[Statement]) -> str:
    return "".join(f"Round {each.round}, {each.side}:\n{each.text}\n\n" for each in said)


def _verdict_reader(sides: Sequence[Task]) -> Reader:
    names = {fold_name(side.name): side.name for side in sides}

    def read(text: str) -> tuple[str | None, str]:
        found = read_json(text)
        if not isinstance(found, dict) or not isinstance(found.get("verdict"), str) or "winner" not in found:
            raise ValueError('It must be a JSON object with "winner" and "verdict".')
        winner = found["winner"]
        if winner is not None and (not isinstance(winner, str) or fold_name(winner) not in names):
            raise ValueError(f"The winner must be null or one of {', '.join(names.values())}.")
        return (None if winner is None else names[fold_name(winner)]), found["verdict"]

    return read
