"""A supervisor: agents that are watched, started again when they end or do nothing, and given up only when somebody agrees."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from agent_relay.events.costs import Breakdown
from agent_relay.patterns.crew import NOTHING_USED, TIMEOUT_S, Crew, RunOptions
from agent_relay.patterns.ends import side_by_side
from agent_relay.patterns.health import Health
from agent_relay.patterns.results import Schema
from agent_relay.patterns.tasks import AgentFailed, Answer, OnProgress, Task, check_positive, read_task
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.client import RelayClient

IDLE_S = 60.0
ESCALATION_S = 600.0
RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Escalation:
    """A task that failed too often, and what was decided about it."""

    task: str
    to: str
    error: str
    decision: str  # the answer; empty: none came


@dataclass(frozen=True, slots=True)
class SupervisorResult:
    """Every task is in `completed` or in `failed`."""

    completed: tuple[Answer, ...]  # in the order they came
    failed: tuple[AgentFailed, ...]
    escalations: tuple[Escalation, ...]
    restarts: int
    duration_s: float
    usage: Breakdown = NOTHING_USED  # tokens of all its agents, and what they cost


async def supervise(
    relay: RelayClient,
    *,
    tasks: Iterable[Task | Mapping[str, Any]],
    max_restarts: int = 3,
    idle: float = IDLE_S,
    escalate_to: str | None = None,
    escalation_timeout: float = ESCALATION_S,
    schema: Schema | None = None,
    timeout: float = TIMEOUT_S,  # noqa: ASYNC109 - of each start of an agent
    on_progress: OnProgress | None = None,
    **options: Unpack[RunOptions],
) -> SupervisorResult:
    """Runs the tasks at the same time and watches their agents. One that ends, exceeds `timeout`, or is idle for `idle` seconds
    without a result even after a reminder, is replaced by a new one, up to `max_restarts` times.

    Then `escalate_to`, an agent or a person, is asked: if the answer begins with `retry`, the task gets as many starts again;
    otherwise, or without an answer within `escalation_timeout` seconds, it has failed. Nothing is raised for that.
    """
    for field, value in (("timeout", timeout), ("idle", idle), ("escalation_timeout", escalation_timeout)):
        check_positive(field, value)
    given = [read_task(task) for task in tasks]
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    escalations: list[Escalation] = []
    async with Crew(relay, len(given), on_progress, options, "supervise") as crew, Health(relay, idle) as health:

        async def keep_alive(task: Task) -> None:
            while True:
                try:
                    await crew.ask(task, timeout, max_restarts, schema, health=health)
                    return
                except AgentFailed as error:
                    if escalate_to is None:
                        return
                    crew.say("escalated", task, error.agent, error.attempts, error.message)
                    asked = await _escalate(relay, escalate_to, error, escalation_timeout)
                    escalations.append(asked)
                    if not asked.decision.strip().lower().startswith(RETRY):
                        return
                    crew.failures.remove(error)

        async with side_by_side([keep_alive(task) for task in given]) as running:
            await asyncio.gather(*running)
    return SupervisorResult(
        tuple(crew.answers), tuple(crew.failures), tuple(escalations), max(0, crew.started - len(given)),
        loop.time() - begun_s, crew.usage,
    )  # fmt: skip


async def _escalate(relay: RelayClient, to: str, error: AgentFailed, timeout_s: float) -> Escalation:
    text = (
        f"{error.task} has failed {error.attempts} times. The last time: {error.message} "
        f"Answer `{RETRY}` to start it again; anything else gives it up."
    )
    try:
        decision = (await relay.request(to, text, timeout_s)).body
    except RelayError:
        decision = ""
    return Escalation(error.task, to, error.message, decision)
