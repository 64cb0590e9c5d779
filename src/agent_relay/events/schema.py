"""The JSON Schema of every event, made from the structs that the events are written from.

A recorded event always has its envelope, so the schema requires it, although a struct is made without one. Fields that it does
not know are allowed: later versions may add some.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agent_relay.events.types import EVENT_TYPES

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ENVELOPE = ("type", "_seq", "_ts", "_sessionId", "_agentName")
_AT_LEAST = {"_seq": 1, "_ts": 1}


def make_event_schema() -> dict[str, Any]:
    """One document: any event at the top, each type under `$defs` by the name of its struct."""
    kinds = tuple(EVENT_TYPES.values())
    references, definitions = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    for kind in kinds:
        _require_envelope(definitions[kind.__name__])
    return {
        "$schema": DRAFT,
        "title": "An event of Agent Relay",
        "description": "One line of events.jsonl, of `agent-relay events --json`, and of the event streams.",
        "type": "object",
        "oneOf": list(references),
        "$defs": definitions,
    }


def _require_envelope(definition: dict[str, Any]) -> None:
    definition["required"] = [*_ENVELOPE, *(name for name in definition["required"] if name not in _ENVELOPE)]
    for name, least in _AT_LEAST.items():
        definition["properties"][name] = {"type": "integer", "minimum": least}
