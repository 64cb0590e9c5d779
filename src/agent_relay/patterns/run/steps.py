"""Steps of a plan, carried out by the patterns; what came of each is JSON, for later steps, for the journal and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from agent_relay.patterns.crew import TIMEOUT_S, RunOptions
from agent_relay.patterns.debate import debate
from agent_relay.patterns.fan_out import fan_out
from agent_relay.patterns.map_reduce import map_reduce
from agent_relay.patterns.pipeline import pipeline
from agent_relay.patterns.run.plan import Step
from agent_relay.patterns.supervisor import ESCALATION_S, IDLE_S, supervise
from agent_relay.patterns.tasks import AgentFailed, Answer, OnProgress, Task
from agent_relay.patterns.templates import Template
from agent_relay.patterns.vote import vote
from agent_relay.protocol.durations import parse_duration_ms
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient

_OPTIONS = ("cwd", "backend", "transport", "permission_mode", "environment")
_ITEM = "\n\nWork on: {{item}}"


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """`value` is what later steps may refer to; always with `output`, a text, and `usage`."""

    value: dict[str, Any]
    failures: tuple[str, ...] = ()  # sentences: what has no result


async def carry_out(
    relay: RelayClient, step: Step, body: Mapping[str, Any], options: RunOptions, on_progress: OnProgress
) -> StepOutcome:  # fmt: skip
    """`body` is that of the step with its references replaced. Raises RelayError where there is no result at all."""
    for name in _OPTIONS:
        if name in body:
            value = body[name]
            options[name] = str(value) if isinstance(value, str) else value  # type: ignore[literal-required]
    run = {
        "map": _map, "pipeline": _pipeline, "fan_out": _fan_out, "supervise": _supervise, "debate": _debate, "vote": _vote,
    }[step.pattern]  # fmt: skip
    return await run(relay, body, options, on_progress)


async def _map(relay: RelayClient, body: Mapping[str, Any], options: RunOptions, on_progress: OnProgress) -> StepOutcome:
    items = body["items"]
    if not isinstance(items, list):
        raise RelayError(ErrorCode.INVALID_FORMAT, "`items` must be a list, and the reference is none.", field="items")
    given = body["task"]
    task = Template(given if isinstance(given, str) else _text_of(given))
    found = await map_reduce(
        relay, task="", items=[_text_of(item) for item in items], worker_cli=_text_of(body["cli"]),
        max_workers=body.get("max_workers"), retries=body.get("retries", 1), timeout=_seconds(body, "timeout", TIMEOUT_S),
        template=task if "item" in task.slots else task.followed_by(_ITEM), reduce=_optional(body, "reduce"),
        schema=body.get("schema"), name=body.get("name", "Worker"), on_progress=on_progress, **options,
    )  # fmt: skip
    failures = [f"{failure.item}: {failure.error.message}" for failure in found.failures]
    if found.reduce_error is not None:
        failures.append(f"The results were not combined: {found.reduce_error.message}")
    results = [
        {"item": each.item, "result": each.result, "value": each.value, "agent": each.agent, "attempts": each.attempts}
        for each in found.results
    ]
    gathered = "\n\n".join(f"{each.item}:\n{each.result}" for each in found.results)
    value = {
        "output": found.output if found.output is not None else gathered, "results": results,
        "values": [each.value for each in found.results],
        "failures": [
            {"item": each.item, "error": each.error.message, "attempts": each.attempts} for each in found.failures
        ],
        "usage": msgspec.to_builtins(found.usage),
    }  # fmt: skip
    return StepOutcome(value, tuple(failures))


async def _pipeline(relay: RelayClient, body: Mapping[str, Any], options: RunOptions, on_progress: OnProgress) -> StepOutcome:
    found = await pipeline(
        relay, stages=_tasks(body, "stages"), input=_text_of(body.get("input", "")), retries=body.get("retries", 0),
        timeout=_seconds(body, "timeout", TIMEOUT_S), on_progress=on_progress, **options,
    )  # fmt: skip
    stages = [{"name": stage.name, "output": stage.output, "agent": stage.agent} for stage in found.stages]
    return StepOutcome({"output": found.output, "stages": stages, "usage": msgspec.to_builtins(found.usage)})


async def _fan_out(relay: RelayClient, body: Mapping[str, Any], options: RunOptions, on_progress: OnProgress) -> StepOutcome:
    wait_for = body.get("wait_for", "all")
    tasks = _tasks(body, "tasks")
    found = await fan_out(
        relay, tasks=tasks, wait_for=wait_for, retries=body.get("retries", 0), schema=body.get("schema"),
        timeout=_seconds(body, "timeout", TIMEOUT_S), on_progress=on_progress, **options,
    )  # fmt: skip
    needed = {"all": len(tasks), "any": 1}.get(wait_for, wait_for)
    value = _answers(found.completed, found.failed) | {"pending": list(found.pending), "usage": msgspec.to_builtins(found.usage)}
    if len(found.completed) >= needed:
        return StepOutcome(value)
    late = [f"{name} did not answer in time." for name in found.pending]
    return StepOutcome(value, (*_sentences(found.failed), *late))


async def _supervise(relay: RelayClient, body: Mapping[str, Any], options: RunOptions, on_progress: OnProgress) -> StepOutcome:
    found = await supervise(
        relay, tasks=_tasks(body, "tasks"), max_restarts=body.get("max_restarts", 3), idle=_seconds(body, "idle", IDLE_S),
        escalate_to=_optional(body, "escalate_to"), escalation_timeout=_seconds(body, "escalation_timeout", ESCALATION_S),
        schema=body.get("schema"), timeout=_seconds(body, "timeout", TIMEOUT_S), on_progress=on_progress, **options,
    )  # fmt: skip
    escalations = [{"task": each.task, "to": each.to, "decision": each.decision} for each in found.escalations]
    more = {"escalations": escalations, "restarts": found.restarts, "usage": msgspec.to_builtins(found.usage)}
    return StepOutcome(_answers(found.completed, found.failed) | more, _sentences(found.failed))


async def _debate(relay: RelayClient, body: Mapping[str, Any], options: RunOptions, on_progress: OnProgress) -> StepOutcome:
    found = await debate(
        relay, question=_text_of(body["question"]), sides=_tasks(body, "sides"), judge=_task(body, body["judge"]),
        rounds=body.get("rounds", 2), retries=body.get("retries", 1), timeout=_seconds(body, "timeout", TIMEOUT_S),
        on_progress=on_progress, **options,
    )  # fmt: skip
    statements = [{"round": each.round, "side": each.side, "text": each.text} for each in found.statements]
    value = {"output": found.verdict, "winner": found.winner, "statements": statements}
    return StepOutcome(value | {"usage": msgspec.to_builtins(found.usage)}, _sentences(found.failed))


async def _vote(relay: RelayClient, body: Mapping[str, Any], options: RunOptions, on_progress: OnProgress) -> StepOutcome:
    found = await vote(
        relay, question=_text_of(body["question"]), voters=_tasks(body, "voters"), options=body.get("options", ["yes", "no"]),
        rule=body.get("rule", "majority"), retries=body.get("retries", 1), timeout=_seconds(body, "timeout", TIMEOUT_S),
        on_progress=on_progress, **options,
    )  # fmt: skip
    ballots = [{"voter": each.voter, "choice": each.choice, "reason": each.reason} for each in found.ballots]
    value = {"output": found.choice or "", "choice": found.choice, "counts": dict(found.counts), "ballots": ballots}
    return StepOutcome(value | {"usage": msgspec.to_builtins(found.usage)}, _sentences(found.failed))


# --- parts of bodies ----------------------------------------------------------------------------------------------------


def _tasks(body: Mapping[str, Any], field: str) -> list[Task]:
    return [_task(body, raw) for raw in body[field]]


def _task(body: Mapping[str, Any], raw: Mapping[str, Any]) -> Task:
    cli = _text_of(raw.get("cli", body.get("cli", "")))
    task = raw.get("task", "")
    return Task(raw["name"], cli, task if isinstance(task, str) else _text_of(task))


def _text_of(value: Any) -> str:
    """Text as plain text: a template of which nothing is to be filled any more is one, too."""
    return str(value) if isinstance(value, str) else msgspec.json.encode(value).decode()


def _optional(body: Mapping[str, Any], field: str) -> str | None:
    return _text_of(body.get(field, "")) or None


def _seconds(body: Mapping[str, Any], field: str, default: float) -> float:
    value = body.get(field, default)
    return parse_duration_ms(value) / 1000 if isinstance(value, str) else float(value)


def _answers(completed: tuple[Answer, ...], failed: tuple[AgentFailed, ...]) -> dict[str, Any]:
    return {
        "output": "\n\n".join(f"{answer.name}:\n{answer.text}" for answer in completed),
        "results": {answer.name: cast("Any", answer.value) for answer in completed},
        "failed": {failure.task: failure.message for failure in failed},
    }


def _sentences(failed: tuple[AgentFailed, ...]) -> tuple[str, ...]:
    return tuple(f"{failure.task}: {failure.message}" for failure in failed)
