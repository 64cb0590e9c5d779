"""Text that lies is shown for what it is, and honest text in any language stays as it is."""

from __future__ import annotations

import json
import sys
import unicodedata
from pathlib import Path

import pytest

from agent_relay.protocol.visible_text import LOOK_ALIKES, reveal

CASES = json.loads((Path(__file__).parents[2] / "data" / "visible_text.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_what_lies_is_shown_as_a_token(case: dict[str, str]) -> None:
    assert reveal(case["text"]) == case["shown"]


def test_no_character_without_a_look_of_its_own_is_missed() -> None:
    invisible = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp", "Zs"}
    missed = [
        f"U+{number:04X}"
        for number in range(sys.maxunicode + 1)
        if unicodedata.category(chr(number)) in invisible and chr(number) not in "\n\t " and reveal(chr(number)) == chr(number)
    ]
    assert missed == []


def test_a_token_is_shown_once() -> None:
    shown = reveal("a\u202eb")
    assert reveal(shown) == shown


def test_each_look_alike_is_found_in_a_latin_word() -> None:
    assert [letter for letter in LOOK_ALIKES if f"⟨U+{ord(letter):04X}⟩" not in reveal(f"x{letter}z")] == []
