"""A fan-out: several agents side by side, and an end when all, one or so many of them have answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, Unpack

from agent_relay.events.costs import Breakdown
from agent_relay.patterns.crew import NOTHING_USED, TIMEOUT_S, Crew, RunOptions
from agent_relay.patterns.ends import side_by_side
from agent_relay.patterns.results import Schema
from agent_relay.patterns.tasks import AgentFailed, Answer, OnProgress, Task, check_positive, check_unique_names, read_task
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient

WaitFor: TypeAlias = Literal["all", "any"] | int

_LONGER_S = 60.0  # the time of one agent ends after that of the whole, so that it is pending then, and has not failed


@dataclass(frozen=True, slots=True)
class FanOutResult:
    """Every task is in one of the three."""

    completed: tuple[Answer, ...]  # in the order they came; more than were waited for, where others came at the same time
    failed: tuple[AgentFailed, ...]
    pending: tuple[str, ...]  # names of tasks that were not waited for any longer
    duration_s: float
    usage: Breakdown = NOTHING_USED  # tokens of all its agents, and what they cost


async def fan_out(
    relay: RelayClient,
    *,
    tasks: Iterable[Task | Mapping[str, Any]],
    wait_for: WaitFor = "all",
    retries: int = 0,
    schema: Schema | None = None,
    timeout: float = TIMEOUT_S,  # noqa: ASYNC109 - of the whole, which then ends with what there is
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> FanOutResult:
    """Runs the tasks at the same time, each with an agent of its own, until enough of them are answered: `"all"`, `"any"`
    (one), or a number.

    It also ends when no more answers can come, and after `timeout` seconds. Nothing is raised for a task that failed.
    With `schema`, each result must be JSON that matches it.
    """
    check_positive("timeout", timeout)
    given = [read_task(task) for task in tasks]
    needed = _needed(wait_for, given)
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    async with Crew(relay, len(given), on_progress, options, "fan_out") as crew:
        works = [crew.ask(task, timeout + _LONGER_S, retries, schema) for task in given]
        async with side_by_side(works) as running:
            pending = set(running)
            while pending and len(crew.answers) < needed and loop.time() < begun_s + timeout:
                left_s = begun_s + timeout - loop.time()
                done, pending = await asyncio.wait(pending, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
                _check(done)
    settled = {answer.name for answer in crew.answers} | {failure.task for failure in crew.failures}
    left = tuple(task.name for task in given if task.name not in settled)
    return FanOutResult(tuple(crew.answers), tuple(crew.failures), left, loop.time() - begun_s, crew.usage)


def _check(done: set[asyncio.Task[Answer]]) -> None:
    """Raises what is no failure of an agent."""
    for task in done:
        error = task.exception()
        if error is not None and not isinstance(error, AgentFailed):
            raise error


def _needed(wait_for: WaitFor, tasks: list[Task]) -> int:
    check_unique_names("tasks", tasks)
    match wait_for:
        case "all":
            return len(tasks)
        case "any":
            return 1
        case int() if 0 < wait_for <= len(tasks):
            return wait_for
        case _:
            sentence = '`wait_for` must be "all", "any" or a number from 1 to the number of tasks.'
            raise RelayError(ErrorCode.INVALID_FORMAT, sentence, field="wait_for")
