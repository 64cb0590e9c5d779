"""The tools: few enough tokens for every turn of every agent, and no argument that says who calls."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.mcp.tools import TOOLS, HistoryArguments, SendArguments, read_arguments

PAGE = Path(__file__).parents[4] / "docs" / "mcp.md"
NAMES = [tool.name for tool in TOOLS]
LISTED = msgspec.json.encode({"tools": TOOLS})
BYTES_A_TOKEN = 3  # tokenizers of today need fewer tokens for JSON than this


def test_all_tools_together_cost_less_than_a_thousand_tokens() -> None:
    assert len(LISTED) / BYTES_A_TOKEN < 1_000


def test_the_page_has_the_count() -> None:
    said = re.search(r"\*\*([0-9,]+) bytes\*\*", PAGE.read_text("utf-8"))
    assert said is not None
    assert int(said[1].replace(",", "")) == len(LISTED)


def test_the_page_describes_every_tool() -> None:
    page = PAGE.read_text("utf-8")
    assert [name for name in NAMES if f"| `{name}`" not in page] == []


def test_no_tool_can_be_told_who_calls_it() -> None:
    properties = {name for tool in TOOLS for name in tool.schema["properties"]}
    assert properties.isdisjoint({"from", "as", "sender", "me", "agent", "identity", "token"})


def test_schemas_are_those_of_a_client() -> None:
    send = next(tool for tool in TOOLS if tool.name == "relay_send")
    assert send.schema["required"] == ["to", "text"]
    assert send.schema["properties"]["thread"] == {"type": "string"}


def test_arguments_are_read() -> None:
    assert read_arguments("relay_send", {"to": "Bob", "text": "hi"}) == SendArguments("Bob", "hi")
    assert read_arguments("relay_history", {"with": "Bob", "limit": 5.0}) == HistoryArguments("Bob", limit=5)
    assert read_arguments("relay_history", None) == HistoryArguments()


@pytest.mark.parametrize(
    ("tool", "arguments", "field", "says"),
    [
        ("relay_send", {"to": "Bob", "text": 5}, "text", "must be text, not a whole number"),
        ("relay_send", {"to": ["Bob"], "text": "x"}, "to", "must be text, not a list"),
        ("relay_send", {"to": "Bob"}, "text", "is missing"),
        ("relay_send", {"to": "", "text": "x"}, "to", "must not be empty"),
        ("relay_send", {"to": "Bob", "text": "x", "from": "Eve"}, "'from'", "the arguments are to, text, thread"),
        ("relay_send", {"to": "Bob", "text": "\ud800"}, "'text'", "half a surrogate pair"),
        ("relay_ask", {"to": "Bob", "text": "x", "seconds": 10_000}, "seconds", "<= 600"),
        ("relay_inbox", {"peek": "yes"}, "peek", "must be true or false"),
        ("relay_agents", {"\x1b[2J": 1}, "'\\x1b[2J'", "There is no argument '\\x1b[2J'"),
        ("relay_sned", {}, "name", "Did you mean relay_send"),
        ("rm -rf", {}, "name", "There are relay_send"),
    ],
)
def test_wrong_arguments_are_named(tool: str, arguments: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(RelayError) as caught:
        read_arguments(tool, arguments)
    assert caught.value.details["field"] == field
    assert says in caught.value.message


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(NAMES), st.dictionaries(st.sampled_from(["to", "text", "id", "limit", "name"]) | st.text(), ANY_JSON))
def test_whatever_is_given_is_read_or_refused(tool: str, arguments: dict[str, Any]) -> None:
    refused: RelayError | None = None
    try:
        read_arguments(tool, arguments)
    except RelayError as error:
        refused = error
    assert refused is None or (refused.code is ErrorCode.INVALID_FORMAT and refused.message.isprintable())
