"""Map-reduce: one agent for each item, a limited number at a time, and one more to combine the results, where that is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, Unpack

from agent_relay.events.costs import Breakdown
from agent_relay.patterns.crew import NOTHING_USED, TIMEOUT_S, Crew, RunOptions
from agent_relay.patterns.ends import side_by_side
from agent_relay.patterns.results import Schema
from agent_relay.patterns.tasks import AgentFailed, OnProgress, Task, check_positive, read_task
from agent_relay.patterns.templates import fill
from agent_relay.sdk.client import RelayClient

TEMPLATE = "{{task}}\n\nWork on: {{item}}"
MOST_WORKERS = 10  # at once, where nobody says otherwise

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ItemResult(Generic[T]):
    item: T
    result: str
    agent: str
    attempts: int
    duration_s: float
    value: Any = None  # the result as JSON, where a schema was given; else the text


@dataclass(frozen=True, slots=True)
class ItemFailure(Generic[T]):
    item: T
    error: AgentFailed
    attempts: int


@dataclass(frozen=True, slots=True)
class MapReduceResult(Generic[T]):
    """`results` and `failures` are in the order of the items, and every item is in one of them."""

    results: tuple[ItemResult[T], ...]
    failures: tuple[ItemFailure[T], ...]
    output: str | None  # what `reduce` made of the results; None: it was not asked for, had nothing to work on, or failed
    reduce_error: AgentFailed | None
    worker_count: int  # agents that were started, with those of further attempts
    duration_s: float
    usage: Breakdown = NOTHING_USED  # tokens of all its agents, and what they cost


async def map_reduce(
    relay: RelayClient,
    *,
    task: str,
    items: Iterable[T],
    worker_cli: str,
    max_workers: int | None = None,
    retries: int = 1,
    timeout: float = TIMEOUT_S,  # noqa: ASYNC109 - of each attempt, and a failure of its item
    template: str = TEMPLATE,
    reduce: str | None = None,
    schema: Schema | None = None,
    name: str = "Worker",
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> MapReduceResult[T]:
    """Gives each item to an agent of its own, never to more than `max_workers` at once (by default 10), and gathers their
    results.

    What an agent is told is `template`, with `{{task}}` and `{{item}}` replaced. An agent that ends, or does not answer within
    `timeout` seconds, has failed its item, which is tried again `retries` times. Then, with `reduce`, one more agent gets that
    task and all the results. With `schema`, each result must be JSON that matches it; an agent that gave another is asked
    once more. Nothing is raised for an item that failed: it is among the failures.
    """
    if max_workers is not None:
        check_positive("max_workers", max_workers)
    check_positive("timeout", timeout)
    worker = read_task(Task(name, worker_cli, template))
    given = list(items)
    begun_s = asyncio.get_running_loop().time()
    slots = asyncio.Semaphore(max_workers or min(max(len(given), 1), MOST_WORKERS))
    async with Crew(relay, len(given) + (reduce is not None), on_progress, options, "map_reduce") as crew:

        async def work_on(item: T) -> ItemResult[T] | ItemFailure[T]:
            text = fill(worker.task, task=task, item=str(item))
            async with slots:
                try:
                    answer = await crew.ask(Task(worker.name, worker.cli, text), timeout, retries, schema)
                except AgentFailed as error:
                    return ItemFailure(item, error, error.attempts)
            return ItemResult(item, answer.text, answer.agent, answer.attempts, answer.duration_s, answer.value)

        async with side_by_side([work_on(item) for item in given]) as running:
            outcomes = await asyncio.gather(*running)
        results = tuple(outcome for outcome in outcomes if isinstance(outcome, ItemResult))
        failures = tuple(outcome for outcome in outcomes if isinstance(outcome, ItemFailure))
        output, reduce_error = None, None
        if reduce is not None and results:
            whole = Task(worker.name, worker.cli, _describe(reduce, results, failures))
            try:
                output = (await crew.ask(whole, timeout, retries)).text
            except AgentFailed as error:
                reduce_error = error
    duration_s = asyncio.get_running_loop().time() - begun_s
    return MapReduceResult(results, failures, output, reduce_error, crew.started, duration_s, crew.usage)


def _describe(task: str, results: Sequence[ItemResult[T]], failures: Sequence[ItemFailure[T]]) -> str:
    parts = [task, *(f"Result for {found.item}:\n{found.result}" for found in results)]
    parts += [f"There is no result for {failure.item}." for failure in failures]
    return "\n\n".join(parts)
