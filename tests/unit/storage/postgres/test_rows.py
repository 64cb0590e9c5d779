"""Words of messages for the index, and searches; texts with characters that PostgreSQL does not take."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.storage.postgres.rows import build_query, escape_all, escape_text, list_words, restore_text
from tests.support.store_driver import make_message


def test_words_are_taken_apart_once_each_in_lower_case_and_without_accents() -> None:
    assert list_words(make_message(1, "See src/Auth.py, see GRÖSSE _x_")) == ["see", "src", "auth", "py", "grosse", "x"]
    assert list_words(make_message(1, tail=b"\xff")) == []


def test_more_words_than_the_index_takes_are_left_out_and_long_ones_are_cut() -> None:
    many = list_words(make_message(1, " ".join(f"word{place}" for place in range(200_000))))
    assert many[0] == "word0"
    assert 500_000 < sum(map(len, many)) <= 900_000
    assert list_words(make_message(1, "x" * 5_000)) == ["x" * 256]


def test_a_search_needs_all_parts_and_the_last_may_be_a_beginning() -> None:
    assert build_query(["auth.py", "it's"]) == "'auth' & 'py' & 'it' & 's':*"
    assert build_query(["_"]) is None


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
