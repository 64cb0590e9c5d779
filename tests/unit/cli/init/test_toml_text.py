"""A table in TOML files: at the end, and gone again."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.cli.init.editing import CannotEdit
from agent_relay.cli.init.toml_text import TomlEntry, TomlItem

ENTRY = TomlEntry("mcp_servers", "agent-relay", 'command = "agent-relay"\nargs = ["mcp"]')
ITEM = TomlItem("mcp_servers", "agent-relay", 'command = "agent-relay"\nargs = ["mcp"]')
LINES = st.sampled_from(
    ["# a comment", "", "   ", 'model = "o5"  # odd', "[mcp_servers.other]", 'command = "x"', '[projects."/a b"]',
     "  indented = 1", 'text = """', "[[list]]", "a.b = 2", "[mcp_servers]"],
)  # fmt: skip


@given(
    st.lists(LINES, max_size=6),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\n\n"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_a_table_is_added_and_removed_or_the_file_refused(lines: list[str], newline: str, end: str, mark: str) -> None:
    text = mark + newline.join(lines) + end
    try:
        tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError:
        with pytest.raises(CannotEdit, match="not valid TOML"):
            ENTRY.add(text)
        return
    added = ENTRY.add(text)
    assert tomllib.loads(added.removeprefix("\ufeff"))["mcp_servers"]["agent-relay"]["args"] == ["mcp"]
    assert added.startswith(text)
    assert ENTRY.add(added) == added
    assert ENTRY.remove(added) == text


def test_tables_of_a_person_stay() -> None:
    own = '[mcp_servers.agent-relay]\ncommand = "their-own"\n'
    assert ENTRY.add(own) == own
    assert ENTRY.remove(own) == own
    after = ENTRY.add("a = 1\n") + "\n[mine]\nb = 2\n"
    assert tomllib.loads(ENTRY.remove(after)) == {"a": 1, "mine": {"b": 2}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("mcp_servers = {x = {command = 'y'}}", "inline table"),
        ("mcp_servers = 5", "is not a table"),
        ("a = ", "not valid TOML"),
        ("# agent-relay: begin\na = 1\n", "without the other"),
        ("# agent-relay: end\n", "without the other"),
    ],
)
def test_files_that_cannot_take_it_are_refused(text: str, says: str) -> None:
    with pytest.raises(CannotEdit, match=says):
        ENTRY.add(text)


@pytest.mark.parametrize(
    "text",
    ["", "a = 1", "a = 1\n\n[b]\nc = 2  # odd\n", '[[mcp_servers]]\nname = "other"\n',
     '# c\r\n[[mcp_servers]]\r\nname = "o"\r\n[x]\r\n'],
)  # fmt: skip
def test_one_of_a_list_of_tables_is_added_and_removed(text: str) -> None:
    added = ITEM.add(text)
    others = tomllib.loads(text).get("mcp_servers", [])
    found = {"name": "agent-relay", "command": "agent-relay", "args": ["mcp"]}
    assert tomllib.loads(added) == tomllib.loads(text) | {"mcp_servers": [*others, found]}
    assert ITEM.add(added) == added
    assert ITEM.remove(added) == text


def test_one_of_a_person_s_own_stays() -> None:
    own = '[[mcp_servers]]\nname = "agent-relay"\ncommand = "their-own"\n'
    assert ITEM.add(own) == own
    assert ITEM.remove(own) == own


@pytest.mark.parametrize(
    ("text", "says"),
    [("mcp_servers = []\n", "a list in brackets"), ("[mcp_servers]\n", "not a list of tables"), ("a = ", "not valid TOML")],
)
def test_lists_that_cannot_take_it_are_refused(text: str, says: str) -> None:
    with pytest.raises(CannotEdit, match=says):
        ITEM.add(text)
