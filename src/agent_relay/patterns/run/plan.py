"""The plan of a run: a file that was checked against the schema, with its variables, before anything is started."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import msgspec

from agent_relay.patterns.results import EXTRA
from agent_relay.patterns.run.document import Document, read_document
from agent_relay.patterns.run.references import references_in
from agent_relay.patterns.run.schema import PATTERNS, RUN_SCHEMA
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import did_you_mean

_TASK_LISTS = {"pipeline": "stages", "fan_out": "tasks", "supervise": "tasks", "debate": "sides", "vote": "voters"}
_MAX_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Step:
    id: str
    pattern: str
    body: Mapping[str, Any]  # with the defaults of `agents`
    goes_on: bool  # also where something has no result


@dataclass(frozen=True, slots=True)
class Plan:
    name: str
    variables: Mapping[str, Any]
    steps: tuple[Step, ...]
    output: str
    digest: str  # the same for the same file and variables


def read_plan(text: str, file: str, name: str, given: Mapping[str, str]) -> Plan:
    """`given` are the values of variables, as texts. Raises RelayError for the first mistake."""
    document = read_document(text, file)
    _check_shape(document)
    content = document.value
    variables = _settle(document, content.get("vars") or {}, given)
    steps = tuple(_read_step(document, place, content.get("agents") or {}) for place in range(len(content["steps"])))
    _check_references(document, variables)
    output = content.get("output", f"{{{{steps.{steps[-1].id}.output}}}}")
    whole = msgspec.json.encode([content, dict(variables)], order="sorted")
    return Plan(content.get("name", name), variables, steps, output, hashlib.sha256(whole).hexdigest())


def _check_shape(document: Document) -> None:
    try:
        jsonschema = import_module("jsonschema")
    except ImportError:
        raise RelayError(
            ErrorCode.FEATURE_UNSUPPORTED, f"`run` needs the package jsonschema: {EXTRA}.", reason="not_installed"
        ) from None
    if not isinstance(document.value, dict):
        raise document.error((), "A run file is a map with `steps`.")
    validator = jsonschema.Draft202012Validator(RUN_SCHEMA)
    steps = document.value.get("steps")
    for place, step in enumerate(steps if isinstance(steps, list) else []):
        if isinstance(step, dict) and (named := [key for key in step if key in PATTERNS]) != named[:1]:
            raise document.error(("steps", place, named[1]), f"A step has one pattern, and this one has {' and '.join(named)}.")
    errors = list(validator.iter_errors(document.value))
    errors.sort(key=lambda error: (error.validator != "additionalProperties", document.line_of(error.absolute_path)))
    for error in errors:  # the first; a key that is misspelled explains the one that is missing
        raise document.error(_place_of(error), _explain(error))


def _place_of(error: Any) -> list[str | int]:
    path = list(error.absolute_path)
    if error.validator == "additionalProperties":
        return [*path, *_unknown_keys(error)[:1]]
    return path


def _unknown_keys(error: Any) -> list[str]:
    return [key for key in error.instance if key not in error.schema.get("properties", {})]


def _explain(error: Any) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    match error.validator:
        case "additionalProperties":
            key = _unknown_keys(error)[0]
            known = sorted(error.schema["properties"])
            near = did_you_mean(key, known)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
            return f"Unknown key {key}: {hint}"
        case "required":
            missing = next(name for name in error.validator_value if name not in error.instance)
            return f"{where or 'The file'} needs `{missing}`."
        case "oneOf" if "id" in error.schema.get("properties", {}):
            return f"A step needs one of {', '.join(PATTERNS)}."
        case "oneOf":
            return (
                f"`{error.absolute_path[-1]}` cannot be {_show(error.instance)}. {error.schema.get('description', '')}".rstrip()
            )
        case _:
            return f"{where}: {error.message[:_MAX_SHOWN]}."


def _show(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:80]


def _settle(document: Document, declared: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    for name in given:
        if name not in declared:
            near = did_you_mean(name, sorted(declared))
            hint = f" Did you mean {near[0]}?" if near else ""
            raise RelayError(ErrorCode.INVALID_FORMAT, f"{document.file} has no variable {name}.{hint}", field="--var")
    values = {name: _read_value(name, default, given[name]) if name in given else default for name, default in declared.items()}
    for name, value in values.items():
        if value is None:
            raise document.error(("vars", name), f"The variable {name} has no value: give it with --var {name}=VALUE.")
    return values


def _read_value(name: str, default: Any, text: str) -> Any:
    """As text where the default is one, or none; otherwise as JSON."""
    if default is None or isinstance(default, str):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise RelayError(
            ErrorCode.INVALID_FORMAT, f"The variable {name} must be JSON, like its default: {error}.", field="--var"
        ) from None


def _read_step(document: Document, place: int, defaults: Mapping[str, Any]) -> Step:
    raw = document.value["steps"][place]
    before = [step["id"] for step in document.value["steps"][:place]]
    if raw["id"] in before:
        raise document.error(("steps", place, "id"), f"There are two steps {raw['id']}; each needs an id of its own.")
    pattern = next(name for name in PATTERNS if name in raw)
    body = {**defaults, **raw[pattern]}
    for path, task in _tasks_of(pattern, body):
        if "cli" not in task and "cli" not in body:
            raise document.error(
                ("steps", place, pattern, *path), "There is no `cli`: give it here, in the step, or under `agents`."
            )
    return Step(raw["id"], pattern, body, raw.get("on_failure") == "continue")


def _tasks_of(pattern: str, body: Mapping[str, Any]) -> list[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    if pattern == "map":
        return [((), {})]
    field = _TASK_LISTS[pattern]
    tasks: list[tuple[tuple[str | int, ...], Mapping[str, Any]]] = [
        ((field, place), task) for place, task in enumerate(body[field])
    ]
    return [*tasks, (("judge",), body["judge"])] if pattern == "debate" else tasks


def _check_references(document: Document, variables: Mapping[str, Any]) -> None:
    """Of steps, only earlier ones; of the whole, all."""
    ids = [step["id"] for step in document.value["steps"]]
    parts = [(("steps", place), step, ids[:place]) for place, step in enumerate(document.value["steps"])]
    for root, part, known in [*parts, (("output",), document.value.get("output"), ids)]:
        for path, reference in references_in(part, root):
            kind, name, *_ = reference.split(".")
            if name in (variables if kind == "vars" else known):
                continue
            if kind == "steps" and name in ids:
                raise document.error(
                    path, f"{{{{{reference}}}}} is of a step that has not run yet; only earlier ones have results."
                )
            near = did_you_mean(name, sorted(variables if kind == "vars" else known))
            hint = f" Did you mean {kind}.{near[0]}?" if near else ""
            what = "variable" if kind == "vars" else "step"
            raise document.error(path, f"{{{{{reference}}}}}: there is no {what} {name}.{hint}")
