"""No text from a message gets a control character, an escape sequence or a turned line to the terminal."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.cli.output.safe_text import clean_block, clean_json, clean_line

DANGEROUS = [
    "\x1b[2J",
    "\x1b]0;title\x07",
    "\x9b31m",
    "\x08\x08",
    "\r",
    "\x00",
    "\x7f",
    "\u202eevil",
    "\u2066",
    "\u2028",
    "\U000e0041",
]


def is_harmless(text: str, kept: str) -> bool:
    return all(
        character in kept
        or character in "\u00ad\u200c\u200d"
        or unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp"}
        for character in text
    )


@pytest.mark.parametrize("text", DANGEROUS)
def test_what_moves_a_terminal_is_shown_as_an_escape(text: str) -> None:
    for cleaned in (clean_line(f"a{text}b"), clean_block(f"a{text}b")):
        assert is_harmless(cleaned, "\n")
        assert "\\" in cleaned
        assert cleaned[0] + cleaned[-1] == "ab"


@given(st.text(alphabet=st.characters()))
def test_no_text_at_all_gets_through_harmfully(text: str) -> None:
    assert is_harmless(clean_line(text), "")
    assert is_harmless(clean_block(text), "\n")
    assert "\n" not in clean_line(text)


@given(st.text())
def test_json_reads_the_same_and_is_harmless(text: str) -> None:
    written = clean_json(json.dumps({"body": text}, ensure_ascii=False))
    assert json.loads(written) == {"body": text}
    assert is_harmless(written, "")


@pytest.mark.parametrize("text", ["plain", "Grüße, 世界, مرحبا", "👩\u200d🚀", "a\u200cb"])
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert clean_line(text) == clean_block(text) == text


def test_lines_are_kept_in_a_block_and_joined_in_a_line() -> None:
    assert clean_block("a\r\nb\n") == "a\nb\n"
    assert clean_line("a\r\nb\n") == "a ⏎ b"
    assert clean_block("\tx") == "    x"
