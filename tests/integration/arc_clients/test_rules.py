"""`rules.toml` is held to the tests that there are, and to both of the other implementations."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.test_boxes import is_there, proofs_in

RULES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("rules.toml").read_text("utf-8"))["rules"]
FOLDERS = {"websockets": "tests/integration/arc", "node": "tests/integration/arc_clients"}


def find(client: str, test: str) -> str:
    """The whole name of a test."""
    file, _, name = test.partition("::")
    return test if client == "inside" else f"{FOLDERS[client]}/test_{file}.py::{name}"


@pytest.mark.parametrize("rule", RULES, ids=[str(place) for place, _ in enumerate(RULES, 1)])
def test_every_rule_is_held_by_tests_that_there_are(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"rule", "websockets", "node", "inside"}
    assert rule["websockets"]
    assert rule.get("node") or "Hooks" in rule["rule"]  # which are the daemon's own, and the same for every client
    clients = {client: tests for client, tests in rule.items() if client != "rule"}
    assert [test for client, tests in clients.items() for test in tests if not is_there(find(client, test))] == []


def test_every_test_with_node_holds_a_rule() -> None:
    named = {find("node", test) for rule in RULES for test in rule.get("node", [])}
    files = [f"{FOLDERS['node']}/{name}.py" for name in ("test_node", "test_node_rules")]
    assert {f"{file}::{test}" for file in files for test in proofs_in(file)} - named == set()


def test_a_test_that_is_not_there_is_found_out() -> None:
    assert not is_there(find("node", "node::test_no_such"))
