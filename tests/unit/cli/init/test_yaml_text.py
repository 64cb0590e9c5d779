"""Entries in YAML files, as another reader finds them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.cli.init.editing import CannotEdit
from agent_relay.cli.init.yaml_text import YamlEntry, YamlItem, YamlListEntry

VALUE = {"type": "stdio", "enabled": True, "cmd": "agent-relay", "args": ["mcp"], "envs": {}}
ENTRY = YamlEntry("extensions", "agent-relay", VALUE)
ITEM = YamlItem("read", "CONVENTIONS.md")
LISTED = {"command": "agent-relay", "args": ["mcp"]}
LIST_ENTRY = YamlListEntry("mcpServers", "agent-relay", LISTED, "Start it once first")
GOOSE = [
    "",
    "GOOSE_MODEL: x\n",
    "GOOSE_MODEL: x",
    "extensions:\n  developer:\n    type: builtin\nGOOSE_MODEL: x\n",
    "extensions: {}\n",
    "extensions: {a: {enabled: true}}  # odd\n",
    "extensions:\nB: 1\n",
    "# c\nextensions:   # here\n    dev: {}\n\n    other:\n      x: 1\n",
    '"extensions":\n  dev: {x: 1}\n',
    "extensions:",
    "a: |\n  extensions:\n    no\n",
    "extensions:\r\n  dev:\r\n    x: 1\r\n",
    "---\na: 1\n",
]
AIDER = [
    "", "model: x\n", "read: a.md\n", "read: [a.md, 'b c.md']\n", "read: []\n", "read:\n  - a.md\n", "read:\n- a.md\nx: 1\n",
    "read: 'a b.md' # why\n", "read:\n    # first\n    - a.md\n", "# read: no\nmodel: x",
]  # fmt: skip

CONTINUE = [
    "name: x\nschema: v1\n",
    "name: x",
    "mcpServers:\n  - name: other\n    command: x\n    env:\n      name: agent-relay\nname: x\n",
    "mcpServers:\n- name: other  # odd\n  command: x\n\n- command: y\n  name: third\nname: x\n",
    "# c\nmcpServers:   # here\n      # first\n      -   name: other\n          command: x\n",
    "mcpServers: []\nname: x\n",
    'mcpServers: [{"name": "other"}]  # c\n',
    "mcpServers:\nname: x\n",
    "name: x\nmcpServers:",
    "name: x\r\nmcpServers:\r\n  - name: other\r\n",
    "\ufeffname: x\n",
]


def load(text: str) -> dict[str, Any]:
    found = yaml.safe_load(text) or {}
    assert isinstance(found, dict)
    return found


def said(text: str) -> dict[str, Any]:
    """What a file says; an empty mapping or list of ours says nothing."""
    return {name: value for name, value in load(text).items() if value or name not in {"extensions", "mcpServers"}}


@pytest.mark.parametrize("text", GOOSE)
def test_a_member_is_added_and_removed(text: str) -> None:
    added = ENTRY.add(text)
    before, found = load(text), load(added)
    assert found["extensions"].pop("agent-relay") == VALUE
    assert found == before | {"extensions": before.get("extensions") or {}}
    assert ENTRY.add(added) == added
    removed = ENTRY.remove(added)
    assert removed == text or said(removed) == said(text)


@pytest.mark.parametrize("text", AIDER)
def test_an_item_is_added_and_removed(text: str) -> None:
    added = ITEM.add(text)
    before = load(text)
    listed = before.get("read") or []
    listed = listed if isinstance(listed, list) else [listed]
    assert load(added) == before | {"read": ["CONVENTIONS.md", *listed]}
    assert ITEM.add(added) == added
    left = load(ITEM.remove(added)).get("read") or []
    assert (left if isinstance(left, list) else [left]) == listed


@pytest.mark.parametrize("text", CONTINUE)
def test_an_item_with_a_name_is_added_and_removed(text: str) -> None:
    added = LIST_ENTRY.add(text)
    before = load(text)
    assert load(added) == before | {"mcpServers": [{"name": "agent-relay", **LISTED}, *(before.get("mcpServers") or [])]}
    assert LIST_ENTRY.add(added) == added
    removed = LIST_ENTRY.remove(added)
    assert removed == text or said(removed) == said(text)


def test_entries_of_a_person_stay() -> None:
    own = "extensions:\n  agent-relay:\n    cmd: their-own\n    type: stdio\nB: 1\n"
    assert ENTRY.remove(ENTRY.add(own)) == own
    own = "mcpServers:\n  - command: their-own\n    name: 'agent-relay'\n    env:\n      A: b\nname: x\n"
    assert LIST_ENTRY.remove(LIST_ENTRY.add(own)) == own


@given(
    st.lists(
        st.sampled_from(
            ["name: x", "mcpServers:", "  - name: other", "    command: x", "- command: y", "  name: z", "", "  # c", "a: [1]"]
        ),
        max_size=7,
    )
)
def test_any_lines_of_a_list_are_edited_or_refused(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        before = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    if not isinstance(before, dict) or not isinstance(before.get("mcpServers", []), list | None):
        return
    try:
        added = LIST_ENTRY.add(text)
    except CannotEdit:
        first = next(line for line in lines if line.strip() and not line.lstrip().startswith("#"))
        assert first.startswith(" ") or lines.count("mcpServers:") > 1
        return
    assert load(added) == before | {"mcpServers": [{"name": "agent-relay", **LISTED}, *(before.get("mcpServers") or [])]}
    assert said(LIST_ENTRY.remove(added)) == said(text)


@given(
    st.lists(
        st.sampled_from(["a: 1", "extensions:", "  dev:", "    x: 1", "  other: {}", "", "# c", "b: [1]", "extensions: {}"]),
        max_size=7,
    )
)
def test_any_lines_are_edited_or_refused(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        before = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    if not isinstance(before, dict | None) or (before and not isinstance(before.get("extensions", {}), dict | None)):
        return
    try:
        added = ENTRY.add(text)
    except CannotEdit:
        first = next(line for line in lines if line and not line.startswith("#"))
        # Of a key that stands there twice, the other reader takes the last.
        assert first.startswith(" ") or lines.count("extensions:") + lines.count("extensions: {}") > 1
        return
    found = load(added)
    assert found["extensions"].pop("agent-relay") == VALUE
    assert said(ENTRY.remove(added)) == said(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("extensions:\n- a\n", "is a list"), ("extensions: *x\n", "not a mapping"), ("{extensions: {}}", "in braces"),
        ("a: 1\n---\nb: 2\n", "more than one"), ("extensions:\n\tdev: 1\n", "tab"), ("extensions: {}\nextensions: {}\n", "twice"),
    ],
)  # fmt: skip
def test_what_is_not_understood_is_left_alone(text: str, says: str) -> None:
    with pytest.raises(CannotEdit, match=says):
        ENTRY.add(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nothing in it yet. Start it once first"), ("mcpServers: {a: 1}\n", "not a list"),
        ("mcpServers: *x\n", "not a list"), ("mcpServers:\n  a: 1\n", "not a list"), ("mcpServers: [\n]\n", "several lines"),
    ],
)  # fmt: skip
def test_lists_of_mappings_that_are_not_understood_are_left_alone(text: str, says: str) -> None:
    with pytest.raises(CannotEdit, match=says):
        LIST_ENTRY.add(text)


@pytest.mark.parametrize("text", ["read: {a: 1}\n", "read: &x a\n", "read: [\n  a,\n]\n", "read:\n  a: 1\n"])
def test_lists_that_are_not_understood_are_left_alone(text: str) -> None:
    with pytest.raises(CannotEdit):
        ITEM.add(text)
