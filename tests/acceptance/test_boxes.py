"""`boxes.toml` is held to the tests that there are: every point has some, and each of those exists."""

from __future__ import annotations

import ast
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agent_relay.events.types import EVENT_TYPES

ROOT = Path(__file__).parents[2]
BOXES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("boxes.toml").read_text("utf-8"))
SOURCES: dict[str, str] = BOXES["sources"]
LISTS: dict[str, list[dict[str, Any]]] = {name: found for name, found in BOXES.items() if name != "sources"}
POINTS = {"events": 10, "http": 12, "sse": 9, "patterns": 9, "openapi": 8, "costs": 8}
ALL = [(f"{name}-{place}", box) for name, boxes in LISTS.items() for place, box in enumerate(boxes, 1)]
NAMED = {test for _, box in ALL for test in box.get("tests", [])} | set(SOURCES.values())


@cache
def proofs_in(file: str) -> dict[str, str]:
    """The tests of a file, each with what it says about itself."""
    path = ROOT / file
    if not path.is_file():
        return {}
    functions = [
        node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {node.name: ast.get_docstring(node) or "" for node in functions if node.name.startswith("test_")}


def is_there(node_id: str) -> bool:
    file, _, name = node_id.partition("::")
    return name in proofs_in(file)


def test_every_list_is_whole() -> None:
    assert {name: len(boxes) for name, boxes in LISTS.items()} == POINTS


@pytest.mark.parametrize(("box"), [box for _, box in ALL], ids=[name for name, _ in ALL])
def test_every_point_is_proven_or_says_what_it_waits_for(box: dict[str, Any]) -> None:
    assert set(box) <= {"requirement", "differs", "tests", "waits_for"}
    assert box["requirement"].endswith(".")
    assert box.get("differs", ".").endswith(".")
    assert bool(box.get("tests")) != ("waits_for" in box)
    assert [node_id for node_id in box.get("tests", []) if not is_there(node_id)] == []


def test_nothing_waits_for_what_is_there() -> None:
    """As soon as the room is built, its list needs tests."""
    waiting = {box["waits_for"] for _, box in ALL if "waits_for" in box}
    assert [room for room in waiting if (ROOT / "src" / "agent_relay" / room).exists()] == []


def test_every_type_of_event_has_a_source() -> None:
    assert SOURCES.keys() == EVENT_TYPES.keys()
    assert [test for test in SOURCES.values() if not is_there(test)] == []


def test_what_is_written_for_a_list_is_in_it_and_says_what_it_is_about() -> None:
    here = {
        f"tests/acceptance/{path.name}::{name}": words
        for path in Path(__file__).parent.glob("test_*.py")
        if path.name != Path(__file__).name
        for name, words in proofs_in(f"tests/acceptance/{path.name}").items()
    }
    assert here.keys() - NAMED == set()
    assert [name for name, words in here.items() if not words.endswith(".")] == []


@pytest.mark.parametrize("node_id", ["tests/acceptance/test_boxes.py::test_no_such", "tests/no_such.py::test_x", "", "tests::"])
def test_a_test_that_is_not_there_is_found_out(node_id: str) -> None:
    assert not is_there(node_id)
