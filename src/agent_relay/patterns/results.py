"""Results as agents give them: text, or JSON that is checked before it counts.

A `Reader` makes a value of the text, and raises ValueError with a sentence for the agent where it cannot; the agent is then asked
once more. JSON Schemas are checked by the package jsonschema, which is not installed with the relay itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import msgspec

from agent_relay.protocol.errors import ErrorCode, RelayError

Schema: TypeAlias = Mapping[str, Any]
Reader: TypeAlias = Callable[[str], Any]

EXTRA = "pip install 'agent-relay[run]'"
_FENCE = re.compile(r"\s*```[\w-]*\n(.*)\n\s*```\s*", re.DOTALL)
_MAX_SHOWN = 300


class BadResult(RelayError):  # noqa: N818 - named by the condition
    """An agent gave a result that is not what was asked for, twice."""


def read_json(text: str) -> Any:
    """Raises ValueError. A code fence around it is forgiven: many models cannot do without."""
    fenced = _FENCE.fullmatch(text)
    try:
        return msgspec.json.decode(fenced[1] if fenced else text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"It is not JSON: {error}.") from None


def make_reader(schema: Schema) -> Reader:
    """Raises RelayError for what is no JSON Schema, or where the package is not installed."""
    jsonschema, referencing = _load_jsonschema()
    registry = referencing.Registry()  # an empty one: nothing is ever fetched
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise RelayError(ErrorCode.INVALID_FORMAT, f"`schema` is not a JSON Schema: {error.message}.", field="schema") from None
    validator = kind(schema, registry=registry)

    def read(text: str) -> Any:
        value = read_json(text)
        error = next(iter(validator.iter_errors(value)), None)
        if error is not None:
            raise ValueError(f"At {error.json_path}: {error.message[:_MAX_SHOWN]}.")
        return value

    return read


def _load_jsonschema() -> tuple[Any, Any]:
    try:
        return import_module("jsonschema"), import_module("referencing")
    except ImportError:
        raise RelayError(
            ErrorCode.FEATURE_UNSUPPORTED, f"A schema needs the package jsonschema: {EXTRA}.", reason="not_installed"
        ) from None
