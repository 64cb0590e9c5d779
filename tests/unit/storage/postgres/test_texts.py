"""Text with the characters that PostgreSQL does not take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.storage.postgres.texts import escape_all, escape_text, restore_text

odd = st.text(st.sampled_from("\x00\x01\x02ab"), max_size=12) | st.text(max_size=12)


@given(odd)
def test_any_text_comes_back_and_has_no_nul_meanwhile(text: str) -> None:
    assert "\0" not in escape_text(text)
    assert restore_text(escape_text(text)) == text


@given(odd, odd)
def test_different_texts_stay_different(one: str, other: str) -> None:
    assert (escape_text(one) == escape_text(other)) == (one == other)


def test_every_text_in_a_value_is_escaped() -> None:
    value = {"a": ["\0", 1, None, {"b": ("x\0",)}]}
    assert escape_all(value) == {"a": ["\x01\x02", 1, None, {"b": ["x\x01\x02"]}]}
