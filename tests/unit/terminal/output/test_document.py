"""The memory of what was said: a line keeps its number through everything a screen does, and new words get new ones."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.terminal.output import document as module
from agent_relay.terminal.output.document import MAX_LINES, MERGED_LINES, Document
from agent_relay.terminal.output.lines import SaidLine
from agent_relay.terminal.output.screen_commands import PARSED_LINES
from agent_relay.terminal.profiles.profile import Kind


def lines(*texts: str, start: int = 0, kind: Kind = Kind.AGENT) -> list[SaidLine]:
    return [SaidLine(kind, text, start + at) for at, text in enumerate(texts)]


def numbers(document: Document) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in document.lines]


def test_the_same_screen_again_changes_nothing() -> None:
    document = Document()
    for _ in range(3):
        document.merge(lines("a", "", "b", "c"))
    assert numbers(document) == [(0, "a"), (1, ""), (2, "b"), (3, "c")]


def test_what_follows_is_new_also_when_it_says_the_same() -> None:
    document = Document()
    document.merge(lines("ask 1", "yes", "done"))
    document.merge(lines("ask 1", "yes", "done", "ask 2", "yes", "done"))
    assert [text for _, text in numbers(document)] == ["ask 1", "yes", "done", "ask 2", "yes", "done"]
    document.merge(lines("ask 2", "yes", "done", "ask 3", "yes"))
    assert [number for number, text in numbers(document) if text == "yes"] == [1, 4, 7]


def test_scrolling_back_and_forth_is_no_news() -> None:
    document = Document()
    whole = [f"line {n}" for n in range(30)]
    document.merge(lines(*whole))
    for start in (20, 5, 0, 12, 18):
        document.merge(lines(*whole[start : start + 12]))
    assert numbers(document) == list(enumerate(whole))


def test_a_line_that_grows_stays_itself() -> None:
    document = Document()
    document.merge(lines("ask", "->relay:Bob he"))
    document.merge(lines("ask", "->relay:Bob hello", "more"))
    assert numbers(document) == [(0, "ask"), (1, "->relay:Bob hello"), (2, "more")]


def test_what_changes_in_the_middle_does_not_disturb_the_rest() -> None:
    document = Document()
    document.merge(lines("ask", "I will run a tool.", "Removing the build directory", "$ rm -rf build", "end of turn"))
    document.merge(lines("ask", "I will run a tool.", "Ran 1 shell command", "end of turn", "next"))
    assert [number for number, text in numbers(document) if text in {"ask", "I will run a tool.", "end of turn"}] == [0, 1, 4]


def test_what_was_told_of_a_vanished_line_is_handed_back() -> None:
    from agent_relay.terminal.output.commands import FileCommand

    document = Document()
    document.merge(lines("ask something", "[[RELAY]]x", "the end of it"))
    document.lines[1].told = FileCommand("x")
    assert document.merge(lines("ask something", "[RELAY]x", "the end of it")) == [FileCommand("x")]


def test_positions_decide_between_overlaps_that_read_the_same() -> None:
    turn = ("ask", "yes", "done")
    document = Document()
    document.merge(lines(*turn, *turn), positions_hold=True)
    document.merge(lines("yes", "done", *turn, start=4), positions_hold=True)
    assert len(document.lines) == 9
    document.merge(lines("yes", "done", *turn, start=4), positions_hold=True)
    assert len(document.lines) == 9


def test_adopting_makes_everything_old() -> None:
    document = Document()
    document.merge(lines("a", "b"))
    document.adopt()
    document.merge(lines("a", "b", "c"))
    assert [line.is_old for line in document.lines] == [True, True, False]


def test_an_unknown_speaker_is_the_one_before() -> None:
    document = Document()
    document.merge(lines("said", kind=Kind.AGENT))
    document.merge([SaidLine(Kind.UNKNOWN, "said", 0), SaidLine(Kind.UNKNOWN, "more", 1)])
    assert [line.kind for line in document.lines] == [Kind.AGENT, Kind.AGENT]


def test_the_memory_is_bounded() -> None:
    document = Document()
    for start in range(0, MAX_LINES * 2, 50):
        document.merge(lines(*(f"line {n}" for n in range(start, start + 60))))
    assert len(document.lines) == MAX_LINES
    assert document.lines[-1].text == f"line {MAX_LINES * 2 + 9}"


# --- any way of looking at a conversation -----------------------------------------------------------------------------

TURN = st.lists(
    st.sampled_from(["yes", "no", "->relay:Bob yes", "->relay:Al no", "", "Done.", "some text"]), min_size=1, max_size=6
)


@given(
    turns=st.lists(TURN, min_size=1, max_size=8),
    height=st.integers(18, 40),
    steps=st.lists(st.integers(0, 8), max_size=40),
    data=st.data(),
)
@settings(max_examples=200, deadline=None)
def test_every_line_is_numbered_once_however_it_is_looked_at(
    turns: list[list[str]], height: int, steps: list[int], data: st.DataObject
) -> None:
    """A conversation that grows by at most eight lines between two looks, through a window of any height, with the
    person scrolling up now and then."""
    whole: list[str] = []
    for number, turn in enumerate(turns):
        whole += [f"> question {number}", *turn, f"answered in {number} s"]
    document = Document()
    shown = 0
    for step in (*steps, *([8] * (len(whole) // 8 + 1))):
        shown = min(shown + step, len(whole))
        window = _trim(whole[max(shown - height, 0) : shown])
        document.merge(lines(*window))
        if shown > height and data.draw(st.booleans()):
            back = data.draw(st.integers(1, 3))
            document.merge(lines(*_trim(whole[max(shown - height - back, 0) : shown - back])))
    assert [line.text for line in document.lines] == _trim(whole)
    assert len({line.number for line in document.lines}) == len(document.lines)


def _trim(texts: list[str]) -> list[str]:
    """As a reading does: no empty lines at either end."""
    while texts and not texts[-1]:
        texts = texts[:-1]
    while texts and not texts[0]:
        texts = texts[1:]
    return texts


def test_a_flood_is_laid_over_what_is_known_with_bounded_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair of lines that is compared takes memory until the comparison is over."""
    compared = 0
    worth = module._worth

    def count(mine: str, other: str) -> float:
        nonlocal compared
        compared += 1
        assert compared < 1_000_000
        return worth(mine, other)

    monkeypatch.setattr(module, "_worth", count)
    document = Document()
    for reading in range(4):
        compared = 0
        document.merge(lines(*(f"line {reading} {n}" for n in range(10_000))))
    assert compared > 0
    assert [line.text for line in document.lines[-2:]] == ["line 3 9998", "line 3 9999"]
    assert len(document.lines) <= MAX_LINES


def test_a_long_history_that_is_drawn_again_is_no_news() -> None:
    document = Document()
    texts = [f"line {n}" for n in range(3_000)]
    for start in range(0, 3_000, 30):
        document.merge(lines(*texts[max(0, start - 10) : start + 30]))
    before = numbers(document)
    document.merge(lines(*texts))
    assert numbers(document)[-PARSED_LINES:] == before[-PARSED_LINES:]
    document.merge(lines(*texts[-40:]))
    assert numbers(document)[-PARSED_LINES:] == before[-PARSED_LINES:]


def test_more_is_taken_in_at_once_than_is_looked_at_for_commands() -> None:
    assert MERGED_LINES >= PARSED_LINES + 100
