"""The transcript on a real emulation of a terminal: what is said once stands there once, and the prompt is the last row."""

from __future__ import annotations

import pytest

from agent_relay.terminal.acp.transcript import Look, Transcript
from agent_relay.terminal.screen.emulator import Emulator


class Shown:
    def __init__(self, columns: int, rows: int = 30) -> None:
        self.emulator = Emulator(columns, rows)
        self.transcript = Transcript(lambda text: self.emulator.feed(text.encode()), lambda: columns)

    @property
    def rows(self) -> list[str]:
        return [line.text for line in self.emulator.read().visible if line.text.strip()]


@pytest.mark.parametrize("columns", [20, 80])
def test_text_in_pieces_stands_there_once_above_the_prompt(columns: int) -> None:
    shown = Shown(columns)
    shown.transcript.show_draft("")
    shown.transcript.show_doing("working")
    text = "A first line.\nA second one, which is a good deal longer than the first: 漢字 too.\n\nThe end."
    for start in range(0, len(text), 3):
        shown.transcript.stream(text[start : start + 3])
    assert shown.rows[-1].rstrip() == "›"
    assert shown.rows[-2].startswith("… working")
    shown.transcript.end_stream()
    shown.transcript.show_doing("")
    said = "".join("".join(row.split()) for row in shown.rows)
    assert said == "".join(text.split()) + "›"


def test_a_draft_is_drawn_on_one_row_with_its_end() -> None:
    shown = Shown(20)
    shown.transcript.show_draft("a" * 30 + "the end")
    shown.transcript.say("something else", Look.TOOL)
    assert shown.rows[0] == "something else"
    assert len(shown.rows) == 2
    assert shown.rows[1].startswith("› a")
    assert shown.rows[1].endswith("the end")


def test_it_leaves_nothing_that_is_drawn_again() -> None:
    shown = Shown(40)
    shown.transcript.show_draft("half a")
    shown.transcript.show_doing("working")
    shown.transcript.say("said")
    shown.transcript.close()
    assert shown.rows == ["said"]
