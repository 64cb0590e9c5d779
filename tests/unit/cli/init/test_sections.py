"""Sections between marks: at the end of any text, and out of it without a trace."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.cli.init.editing import CannotEdit
from agent_relay.cli.init.sections import markdown_section

SECTION = markdown_section("## Ours\n\nTwo lines.")
TEXT = st.text(st.sampled_from("ab #\n\r\t<!-é✓"), max_size=30)


@given(TEXT)
def test_it_is_added_once_and_removed_without_a_trace(text: str) -> None:
    added = SECTION.add(text)
    assert added.startswith(text)
    assert SECTION.is_in(added)
    assert SECTION.add(added) == added
    assert SECTION.remove(added) == text


@given(TEXT, TEXT)
def test_what_a_person_writes_behind_it_stays(before: str, after: str) -> None:
    left = SECTION.remove(SECTION.add(before) + after)
    assert left.startswith(before.removesuffix("\n").removesuffix("\r"))
    assert left.endswith(after)
    assert not SECTION.is_in(left)


def test_line_ends_are_those_of_the_file() -> None:
    added = SECTION.add("one\r\ntwo")
    assert added.count("\n") == added.count("\r\n")


def test_half_a_section_is_not_guessed_at() -> None:
    for mark in (SECTION.begin, SECTION.end):
        with pytest.raises(CannotEdit, match="without the other"):
            SECTION.add(f"text\n{mark}\n")
