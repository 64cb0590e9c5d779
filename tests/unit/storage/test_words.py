from __future__ import annotations

import sqlite3

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_relay.storage.words import MAX_WORD_LENGTH, MAX_WORDS, build_match, split_words, words_occur


def found_by_sqlite(search: str, text: str) -> bool:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE words USING fts5 (body, tokenize = 'unicode61 remove_diacritics 2')")
        connection.execute("INSERT INTO words VALUES (?)", (text,))
        return (
            connection.execute("SELECT 1 FROM words WHERE words MATCH ?", (build_match(split_words(search)),)).fetchone()
            is not None
        )
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("", []),
        (" \t\n", []),
        ("... -- !?", []),
        ("one  two\nthree", ["one", "two", "three"]),
        ("auth.py - 'x'", ["auth.py", "'x'"]),
        ("a\0b", ["a", "b"]),
        ("bad\ud800end", ["bad?end"]),
    ],
)
def test_words_are_what_has_a_letter_or_digit(search: str, words: list[str]) -> None:
    assert split_words(search) == words


def test_words_are_bounded_in_number_and_length() -> None:
    assert len(split_words("word " * 500)) == MAX_WORDS
    assert split_words("x" * 5_000) == ["x" * MAX_WORD_LENGTH]


@given(st.text())
@example('"')
@example('a"b')
@example("a AND NOT (b OR c:d) NEAR(e, 5) ^f g*")
def test_no_text_is_an_error_to_the_full_text_index(search: str) -> None:
    if split_words(search):
        found_by_sqlite(search, "anything at all")


pieces = st.lists(
    st.sampled_from(["red", "Red", "fish", "fi", "auth.py", "py", "auth", "42", "a_b", "--", "élan", "x'y"]), max_size=5
)


@given(pieces.map(" ".join), pieces.map(" ".join))
def test_plain_comparison_agrees_with_the_full_text_index(search: str, text: str) -> None:
    words = split_words(search)
    if words:
        assert words_occur(words, text) == found_by_sqlite(search, text)


def test_no_words_occur_in_nothing() -> None:
    assert not words_occur([], "text")
    assert not words_occur(["word"], "")
