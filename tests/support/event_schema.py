"""Recorded events held against the published JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from agent_relay.events.schema import DRAFT
from agent_relay.events.types import EVENT_TYPES

SCHEMA = Path(__file__).parents[2] / "docs" / "api" / "events.schema.json"
_MOST = 500  # of one scene; a load of messages is the same event over and over


@lru_cache
def _published() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA.read_text("utf-8"))
    return found


@lru_cache
def _validator(type_: str) -> Any:
    """For one type (KeyError: there is none): with all of them, an error would say nothing but that none fits."""
    reference = f"#/$defs/{EVENT_TYPES[type_].__name__}"
    return Draft202012Validator({"$schema": DRAFT, "$ref": reference, "$defs": _published()["$defs"]})


def find_faults(event: dict[str, Any]) -> list[str]:
    type_ = event.get("type")
    try:
        validator = _validator(type_)
    except (KeyError, TypeError):
        return [f"there is no event {type_!r}"]
    return [f"{type_} {list(error.path)}: {error.message}" for error in validator.iter_errors(event)]


def find_recorded_faults(lines: Iterable[str]) -> list[str]:
    """The last events of a file. Lines that are no JSON are left out: some tests damage a file on purpose."""
    faults = []
    for line in list(lines)[-_MOST:]:
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            faults += find_faults(event)
    return faults


def check_recorded(state_dir: Path) -> None:
    """Raises AssertionError that names the first faults."""
    path = state_dir / "events.jsonl"
    if path.is_file():
        faults = find_recorded_faults(path.read_text("utf-8", errors="replace").splitlines())
        assert not faults, f"events that the published schema refuses: {faults[:5]}"
