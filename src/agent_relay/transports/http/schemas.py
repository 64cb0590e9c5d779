"""The schemas of the types, as generators of clients need them: what is always there is said to be, and what need not be is not.

msgspec describes what it reads, and there a field with a default may be missing. What we write is another matter: an answer has
all of its fields, and an event all but those that say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from agent_relay.events.types import AnyEvent, Event

Json = dict[str, Any]

REFERENCE = "#/components/schemas/{name}"
_ENVELOPE = {field.encode_name for field in msgspec.structs.fields(Event)}


def describe_types(answers: Iterable[Any], bodies: Iterable[Any]) -> tuple[dict[int, Json], Json]:
    """The schema of each type by its `id`, and the components they refer to."""
    bodies = list(bodies)
    kinds = list({id(kind): kind for kind in [*answers, *bodies]}.values())
    schemas, components = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    events, read = _names([AnyEvent]), _names(bodies)
    for name, schema in components.items():
        if name in events:
            schema["required"] = [field for field in schema["properties"] if field in {*schema["required"], *_ENVELOPE}]
        elif name not in read:
            schema["required"] = list(schema["properties"])
        _plain(schema)
    return {id(kind): _open(schema) for kind, schema in zip(kinds, schemas, strict=True)}, dict(sorted(components.items()))


def _names(kinds: list[Any]) -> set[str]:
    return set(msgspec.json.schema_components(kinds, ref_template=REFERENCE)[1])


def _plain(schema: Json) -> None:
    """A default becomes a sentence: generators take it for a promise that the field is there."""
    for name, each in schema["properties"].items():
        default = each.pop("default", None)
        if default is not None and name not in schema["required"]:
            each["description"] = f"{each.get('description', '')} Without it: {msgspec.json.encode(default).decode()}.".lstrip()
        _open(each)


def _open(schema: Json) -> Json:
    """An object of which nothing is known may hold anything, and words to choose from are text: generators need to be told."""
    if schema.get("type") == "object" and not schema.keys() & {"properties", "additionalProperties"}:
        schema["additionalProperties"] = True
    if "prefixItems" in schema:  # which hardly any generator reads: a list of what its places may hold
        kinds = {_key(part): part for part in schema.pop("prefixItems")}
        schema["items"] = next(iter(kinds.values())) if len(kinds) == 1 else {"anyOf": list(kinds.values())}
    if "enum" in schema and all(isinstance(word, str) for word in schema["enum"]):
        schema["type"] = "string"
    for part in [*schema.get("anyOf", []), schema.get("items"), schema.get("additionalProperties")]:
        if isinstance(part, dict):
            _open(part)
    return schema


def _key(schema: Json) -> bytes:
    return msgspec.json.encode(schema, order="deterministic")
