"""Words of messages for the index, and searches."""

from __future__ import annotations

from agent_relay.storage.postgres.words import build_query, list_words
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
