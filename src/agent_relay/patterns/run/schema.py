"""The JSON Schema of run files, as it is published: `agent-relay run --schema`, docs/api/run.schema.json."""

from __future__ import annotations

from typing import Any

PATTERNS = ("map", "pipeline", "fan_out", "supervise", "debate", "vote")
_NAME = r"^[A-Za-z][A-Za-z0-9_.-]{0,47}$"
_ID = r"^[A-Za-z][A-Za-z0-9_-]{0,47}$"


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _object(description: str, required: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object", "description": description, "required": required, "properties": properties,
        "additionalProperties": False,
    }  # fmt: skip


def _duration(description: str) -> dict[str, Any]:
    return {
        "description": f"{description}: seconds, or a text such as 30s, 5m or 1h.",
        "oneOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^\d{1,9}\s*(ms|s|m|h|d)$"}],
    }


def _count(description: str, least: int = 0, most: int = 1_000) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most, "description": description}


_AGENT: dict[str, Any] = {
    "cli": _text("The CLI of the agents: claude, codex, …, or a program that the setting spawn_allow allows."),
    "timeout": _duration("How long each attempt may take (fan_out: the whole step)"),
    "retries": _count("How often a failed task is tried again, each time with a new agent.", most=100),
    "cwd": _text("The agents' working directory, relative to the project."),
    "backend": {"enum": ["auto", "tmux", "pty"], "description": "Where the agents run."},
    "transport": {"enum": ["terminal", "acp"], "description": "`acp`: by the Agent Client Protocol, which the CLI must speak."},
    "permission_mode": _text("A permission mode of the CLI."),
    "environment": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Variables for the agents."},
}
_SCHEMA = {"type": "object", "description": "A JSON Schema that each result must match; it is then JSON, and not text."}
_TASK = _object(
    "An agent and its task.",
    ["name"],
    {
        "name": _text("The beginning of the agent's name.", pattern=_NAME),
        "cli": _text("Its CLI; by default that of the step, or of `agents`."),
        "task": _text("What it is to do."),
    },
)
_TASKS = {"type": "array", "minItems": 1, "maxItems": 1_000, "items": {"$ref": "#/$defs/task"}}


def _pattern(description: str, required: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    return _object(description, required, {**properties, **_AGENT})


_BODIES: dict[str, dict[str, Any]] = {
    "map": _pattern(
        "One agent for each item, and one more to combine the results if `reduce` is given.",
        ["task", "items"],
        {
            "task": _text("What to do with each item; {{item}} is replaced, or follows the task."),
            "items": {
                "description": "The items: a list, or a reference to one, such as {{vars.files}}.",
                "oneOf": [{"type": "array", "maxItems": 10_000}, {"type": "string", "pattern": r"^\s*\{\{.*\}\}\s*$"}],
            },
            "max_workers": _count("Agents at once; by default as many as there are items, but no more than 10.", 1, 100),
            "reduce": _text("The task of one more agent, which gets all the results."),
            "schema": _SCHEMA,
            "name": _text("The beginning of the agents' names; by default Worker.", pattern=_NAME),
        },
    ),
    "pipeline": _pattern(
        "One agent after the other, each with what the one before gave.",
        ["stages"],
        {"input": _text("The input of the first stage."), "stages": _TASKS},
    ),
    "fan_out": _pattern(
        "Several agents at the same time.",
        ["tasks"],
        {
            "tasks": _TASKS,
            "wait_for": {
                "description": "How many must answer.",
                "oneOf": [{"enum": ["all", "any"]}, {"type": "integer", "minimum": 1}],
            },
            "schema": _SCHEMA,
        },
    ),
    "supervise": _pattern(
        "Several agents at the same time, watched and started again.",
        ["tasks"],
        {
            "tasks": _TASKS,
            "max_restarts": _count("How often an agent is replaced.", most=100),
            "idle": _duration("How long an agent may be idle without a result"),
            "escalate_to": _text("The agent or person who is asked when a task has failed too often."),
            "escalation_timeout": _duration("How long to wait for that decision"),
            "schema": _SCHEMA,
        },
    ),
    "debate": _pattern(
        "Sides that answer each other in rounds, and a judge.",
        ["question", "sides", "judge"],
        {
            "question": _text("What is debated."),
            "sides": {**_TASKS, "minItems": 2},
            "judge": {"$ref": "#/$defs/task"},
            "rounds": _count("How many rounds; 2 by default.", 1, 20),
        },
    ),
    "vote": _pattern(
        "Agents that choose one of the options.",
        ["question", "voters"],
        {
            "question": _text("What is voted on."),
            "voters": _TASKS,
            "options": {"type": "array", "minItems": 2, "items": {"type": "string"}, "description": "By default yes and no."},
            "rule": {
                "description": "Which option is chosen.",
                "oneOf": [{"enum": ["majority", "plurality", "unanimous"]}, {"type": "integer", "minimum": 1}],
            },
        },
    ),
}

RUN_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A run of Agent Relay",
    **_object(
        "Patterns that `agent-relay run` carries out, one step after the other.",
        ["steps"],
        {
            "name": _text("What it is called; by default as the file.", pattern=_ID),
            "description": _text("For people."),
            "vars": {
                "type": "object",
                "propertyNames": {"pattern": _ID},
                "description": "Variables and their defaults; null: a value must be given with --var.",
            },
            "agents": _object("Defaults for the agents of every step.", [], _AGENT),
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": 200,
                "items": {"$ref": "#/$defs/step"},
            },
            "output": _text("What is printed at the end; by default the output of the last step."),
        },
    ),
    "$defs": {
        "task": _TASK,
        "step": {
            **_object(
                "One pattern.",
                ["id"],
                {
                    "id": _text("The name that later steps use: {{steps.ID.output}}.", pattern=_ID),
                    "on_failure": {
                        "enum": ["stop", "continue"],
                        "description": "What happens if something in this step has no result; stop by default.",
                    },
                    **{name: {"$ref": f"#/$defs/{name}"} for name in PATTERNS},
                },
            ),
            "oneOf": [{"required": [name]} for name in PATTERNS],
        },
        **_BODIES,
    },
}
