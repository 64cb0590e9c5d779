"""A pipeline: one agent after the other, each with what the one before gave."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

from agent_relay.events.costs import Breakdown
from agent_relay.patterns.crew import NOTHING_USED, TIMEOUT_S, Crew, RunOptions
from agent_relay.patterns.tasks import AgentFailed, OnProgress, Task, check_positive, read_task
from agent_relay.patterns.templates import Template, fill
from agent_relay.sdk.client import RelayClient

_INPUT = "input"


@dataclass(frozen=True, slots=True)
class StageResult:
    name: str
    agent: str
    input: str
    output: str
    attempts: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class PipelineResult:
    output: str  # of the last stage
    stages: tuple[StageResult, ...]
    duration_s: float
    usage: Breakdown = NOTHING_USED  # tokens of all its agents, and what they cost


class PipelineFailed(AgentFailed):
    """A stage has no result, so those after it were not begun. `stages` has what the ones before gave."""

    def __init__(self, error: AgentFailed, stages: Sequence[StageResult]) -> None:
        super().__init__(error.task, error.agent, error.attempts, error)
        self.stages = tuple(stages)


async def pipeline(
    relay: RelayClient,
    *,
    stages: Iterable[Task | Mapping[str, Any]],
    input: str = "",  # noqa: A002 - what goes in is called so everywhere
    retries: int = 0,
    timeout: float = TIMEOUT_S,  # noqa: ASYNC109 - of each attempt
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> PipelineResult:
    """Runs the stages in their order. `{{input}}` in a stage's task is replaced by what the stage before gave, the first one's by
    `input`; where a task has no `{{input}}`, it follows the task.

    Raises PipelineFailed when a stage has failed for the last time.
    """
    check_positive("timeout", timeout)
    tasks = [read_task(stage) for stage in stages]
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    done: list[StageResult] = []
    passed = input
    async with Crew(relay, len(tasks), on_progress, options, "pipeline") as crew:
        for task in tasks:
            try:
                answer = await crew.ask(Task(task.name, task.cli, _with_input(task.task, passed)), timeout, retries)
            except AgentFailed as error:
                raise PipelineFailed(error, done) from error
            done.append(StageResult(task.name, answer.agent, passed, answer.text, answer.attempts, answer.duration_s))
            passed = answer.text
    return PipelineResult(passed, tuple(done), loop.time() - begun_s, crew.usage)


def _with_input(task: str, given: str) -> str:
    if _INPUT in Template(task).slots:
        return fill(task, input=given)
    return f"{task}\n\n{given}" if given else task
