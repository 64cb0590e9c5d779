"""The runner of a plan: its steps one after the other, each with the results of those before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agent_relay.events.costs import Breakdown
from agent_relay.events.prices import Prices
from agent_relay.patterns.crew import NOTHING_USED
from agent_relay.patterns.run.journal import Journal
from agent_relay.patterns.run.plan import Plan, Step
from agent_relay.patterns.run.references import resolve
from agent_relay.patterns.run.steps import StepOutcome, carry_out
from agent_relay.patterns.tasks import Progress
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.results import write_value


@dataclass(frozen=True, slots=True)
class StepChange:
    """A step has begun or ended; `kept`: in an earlier attempt."""

    step: str
    pattern: str
    status: Literal["begun", "done", "kept", "failed"]
    failures: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepProgress:
    step: str
    progress: Progress


OnChange: TypeAlias = Callable[[StepChange | StepProgress], None]


@dataclass(slots=True)
class RunResult:
    """`failed_step` is where it ended, with the sentences of what has no result; the empty text: it has succeeded."""

    steps: dict[str, dict[str, Any]] = field(default_factory=dict)
    failed_step: str = ""
    failures: tuple[str, ...] = ()
    output: str = ""
    usage: Breakdown = NOTHING_USED


async def run_plan(relay: RelayClient, plan: Plan, journal: Journal, on_change: OnChange, prices: Prices) -> RunResult:
    """Nothing is raised for a step that fails. When the same plan is run again, that step goes on with what it already has."""
    found = RunResult()
    scope: dict[str, Any] = {"vars": dict(plan.variables), "steps": found.steps}
    for step in plan.steps:
        kept = journal.step_value(step.id)
        if kept is not None:
            found.steps[step.id] = kept
            found.usage = _add(found.usage, kept.get("usage"))
            on_change(StepChange(step.id, step.pattern, "kept"))
            continue
        on_change(StepChange(step.id, step.pattern, "begun"))
        outcome = await _run_step(relay, step, scope, journal, on_change, prices)
        if isinstance(outcome, StepOutcome):
            found.steps[step.id] = outcome.value
            found.usage = _add(found.usage, outcome.value.get("usage"))
        failures = outcome.failures if isinstance(outcome, StepOutcome) else (outcome.message,)
        if failures and not (step.goes_on and isinstance(outcome, StepOutcome)):
            on_change(StepChange(step.id, step.pattern, "failed", failures))
            found.failed_step, found.failures = step.id, failures
            return found
        journal.keep_step(step.id, found.steps[step.id])
        on_change(StepChange(step.id, step.pattern, "done", failures))
    found.output = write_value(resolve(plan.output, scope))
    return found


async def _run_step(
    relay: RelayClient, step: Step, scope: dict[str, Any], journal: Journal, on_change: OnChange, prices: Prices
) -> StepOutcome | RelayError:  # fmt: skip
    def hear(progress: Progress) -> None:
        on_change(StepProgress(step.id, progress))

    try:
        body = resolve(dict(step.body), scope)
        return await carry_out(relay, step, body, {"memory": journal.memory_of(step.id), "prices": prices}, hear)
    except RelayError as error:
        return error


def _add(one: Breakdown, more: Any) -> Breakdown:
    """`more` as a step's value has it: a breakdown in JSON."""
    if not isinstance(more, dict):
        return one
    costs = [one.estimated_cost_usd, more.get("estimatedCostUsd")]
    known = [cost for cost in costs if cost is not None]
    return Breakdown(
        one.input_tokens + more["inputTokens"], one.output_tokens + more["outputTokens"],
        one.cache_read_tokens + more["cacheReadTokens"], one.cache_write_tokens + more["cacheWriteTokens"],
        one.total_tokens + more["totalTokens"], one.unpriced_tokens + more["unpricedTokens"], sum(known) if known else None,
    )  # fmt: skip
