"""Entries in JSON files of every shape: added without touching the rest, and taken out again."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.cli.init.editing import CannotEdit
from agent_relay.cli.init.json_text import JsonEntry, read

VALUE = {"command": "agent-relay", "args": ["mcp"]}
ENTRY = JsonEntry("mcpServers", "agent-relay", VALUE)

SPACE = st.text(" \t", max_size=3) | st.sampled_from(
    ["\n", "\r\n", "\n    ", "\n\t", " // a comment\n", "/* one */", " /* t\nwo */ "]
)
WORDS = st.text(max_size=6).map(lambda text: json.dumps(text, ensure_ascii=False))
NAMES = st.sampled_from(['"mcpServers"', '"mcp"', '"x"', '"a b"', '"agent-relay-2"', '"\\u0041"'])


@st.composite
def objects(draw: st.DrawFn, depth: int = 0) -> str:
    """An object with comments, commas at its end, and whatever stands between."""
    names = draw(st.lists(NAMES, max_size=3, unique_by=json.loads))
    members = []
    for name in names:
        inner = objects(depth + 1) if depth < 2 and (name == '"mcpServers"' or draw(st.booleans())) else None
        value = (
            draw(inner)
            if inner is not None
            else draw(WORDS | st.sampled_from(["1", "-2.5e3", "true", "null", "[]", '[1, {"a": []}, ]']))
        )
        members.append(f"{draw(SPACE)}{name}{draw(SPACE)}:{draw(SPACE)}{value}{draw(SPACE)}")
    end = "," if members and draw(st.booleans()) else ""
    return "{" + ",".join(members) + end + draw(SPACE) + "}"


def load(text: str) -> object:
    """By another reader: comments and commas at the end are taken out first."""
    kept = re.sub(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', lambda match: match[1] or " ", text, flags=re.DOTALL)
    kept = re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', lambda match: match[1] or "", kept)
    return json.loads(kept.removeprefix("\ufeff"))


@given(st.sampled_from(["", "\ufeff"]), SPACE, objects(), SPACE)
def test_only_the_entry_is_added_and_only_it_is_removed(mark: str, before: str, made: str, after: str) -> None:
    text = mark + before + made + after
    added = ENTRY.add(text)
    found = load(added)
    assert isinstance(found, dict)
    assert found["mcpServers"].pop("agent-relay") == VALUE
    original = load(text)
    assert isinstance(original, dict)
    assert found == original | {"mcpServers": original.get("mcpServers", {})}
    assert ENTRY.add(added) == added
    assert is_insertion(text, added)
    removed = ENTRY.remove(added)
    left = load(removed)
    assert isinstance(left, dict)
    assert left in (original, original | {"mcpServers": {}})
    assert ENTRY.add(removed) == added  # whatever it looks like, nothing but ours is gone


def is_insertion(text: str, added: str) -> bool:
    """Whether `added` is `text` with one piece put in."""
    start = next((at for at, (a, b) in enumerate(zip(text, added, strict=False)) if a != b), len(text))
    return any(added.endswith(text[at:]) and added.startswith(text[:at]) for at in range(max(0, start - 2), start + 1))


@pytest.mark.parametrize(
    "text",
    ["{\n}\n", '{"a":1}', '{\n  "a": 1, // x\n}\n', '{\n  "mcpServers": {\n    "b": {}\n  }\n}\n', '{"mcpServers": {"b": {}}}',
     '{ // hi\n\t"mcpServers": { // c\n\t\t"b": {},\n\t},\n}',
     '\ufeff{\r\n    "mcpServers": {\r\n        "x": {}\r\n    }\r\n}\r\n'],
)  # fmt: skip
def test_usual_files_are_restored_exactly_without_any_record(text: str) -> None:
    assert ENTRY.remove(ENTRY.add(text)) == text


def test_an_entry_of_a_person_stays() -> None:
    own = '{"mcpServers": {"agent-relay": {"command": "their-own"}}}'
    assert ENTRY.add(own) == own
    assert ENTRY.remove(own) == own


def test_what_a_person_added_around_it_stays() -> None:
    added = ENTRY.add('{"mcpServers": {}}')
    changed = added.replace('"mcpServers": {', '"mcpServers": {"mine": {}, ').replace("{}, \n", "{},\n")
    assert load(ENTRY.remove(changed)) == {"mcpServers": {"mine": {}}}


def test_an_entry_that_a_person_moved_to_the_end_is_removed_with_its_comma() -> None:
    moved = '{"mcpServers": {"mine": {}, "agent-relay": {"command": "agent-relay", "args": ["mcp"]}}}'
    assert load(ENTRY.remove(moved)) == {"mcpServers": {"mine": {}}}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "not a JSON object"), ('{"mcpServers": []}', "is not an object"), ("{", "line 1"), ('{\n"a": tru\n}', "line 2"),
        ('{"a": 1 "b": 2}', "line 1"), ('{"a": 1} x', "line 1"), ("<xml/>", "line 1"), ('{"a": "\n"}', "line 1"),
        ("{" + '"a":{' * 1_000, "nested too deeply"), ("\0", "line 1"),
    ],
)  # fmt: skip
def test_what_is_no_json_object_is_refused_with_the_line(text: str, says: str) -> None:
    with pytest.raises(CannotEdit, match=says):
        ENTRY.add(text)


@given(st.text())
def test_any_text_is_edited_or_refused(text: str) -> None:
    try:
        added = ENTRY.add(text)
    except CannotEdit:
        return
    assert read(added)
    assert is_insertion(text, added)
