from __future__ import annotations

from typing import Any

import pytest

from agent_relay.patterns.run.references import references_in, resolve
from agent_relay.patterns.templates import fill
from agent_relay.protocol.errors import RelayError

SCOPE: dict[str, Any] = {
    "vars": {"files": ["a", "b"], "n": 3, "name": "x{{vars.n}}"},
    "steps": {"one": {"output": "said {{item}} {{vars.n}}", "results": [{"value": {"risk": "high"}}]}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{{vars.files}}", ["a", "b"]),
        (" {{ vars.files }} ", ["a", "b"]),
        ("{{vars.files}} and {{vars.n}}", '["a","b"] and 3'),
        ("{{steps.one.results.0.value.risk}}", "high"),
        ("{{vars.name}}!", "x{{vars.n}}!"),
        ("{{item}} {{other.x}} {{vars}}", "{{item}} {{other.x}} {{vars}}"),
        (7, 7),
    ],
)
def test_a_reference_becomes_its_value(text: Any, value: Any) -> None:
    assert resolve(text, SCOPE) == value
    assert resolve({"a": [text]}, SCOPE) == {"a": [value]}


def test_no_output_of_an_agent_refers_to_anything() -> None:
    filled = resolve("{{steps.one.output}} on {{item}}", SCOPE)
    assert fill(filled, item="X") == "said {{item}} {{vars.n}} on X"


def test_a_schema_is_left_alone() -> None:
    assert resolve({"schema": {"const": "{{vars.n}}"}}, SCOPE) == {"schema": {"const": "{{vars.n}}"}}
    assert list(references_in({"schema": {"const": "{{vars.n}}"}})) == []


@pytest.mark.parametrize("text", ["{{vars.no}}", "{{steps.one.results.5}}", "{{steps.one.output.x}}", "{{vars.files.x}}"])
def test_one_that_leads_nowhere_is_refused(text: str) -> None:
    with pytest.raises(RelayError, match="leads nowhere"):
        resolve(text, SCOPE)


def test_references_are_found_with_their_places() -> None:
    found = list(references_in({"a": ["{{vars.x}} {{item}}", {"b": "{{steps.y.output}}"}]}))
    assert found == [(("a", 0), "vars.x"), (("a", 1, "b"), "steps.y.output")]
