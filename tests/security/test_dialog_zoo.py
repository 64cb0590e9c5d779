"""Dialogs of programs that nobody has described: whatever a message does, not one byte goes into any of them.

`tests/data/screens/zoo` holds their screens: some recorded, most of them drawn after the look of real programs, and some made up.
Each is held against the real code with the cursor in every row and hidden, and with a program that seems to wait for a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.terminal.delivery.injection import Injector, Paste, Press, Step, View, Wait
from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.screen.contents import Cursor, Screen, screen_of_text
from agent_relay.terminal.screen.state import State

ZOO = sorted((Path(__file__).parents[1] / "data" / "screens" / "zoo").glob("*.txt"), key=lambda file: file.stem)
GENERIC = load_profiles()["generic"]
TEXT = "Relay message from Alice [abc12345]: please go on, yes"


def screens(text: str) -> Iterator[Screen]:
    """With the cursor behind each row, at the bottom, and nowhere."""
    rows = text.rstrip("\n").split("\n")
    for index, row in enumerate(rows):
        yield screen_of_text(text, cursor=Cursor(index, len(row)))
    yield screen_of_text(text, cursor=Cursor(len(rows), 0))
    yield screen_of_text(text)


def steps(injector: Injector, screen: Screen, *, is_line: bool, t: float) -> Iterator[Step]:
    """A minute in front of it, as the hands would see it."""
    watcher = Watcher(GENERIC)
    watcher.expect_echo(TEXT)
    for number in range(0, 60, 6):
        watcher.saw(screen, t + number)
        at = screen.cursor.position if screen.cursor is not None else -1
        composer = watcher.composer
        yield injector.step(
            View(
                t=t + number, state=watcher.state, draft=composer.draft if composer is not None else None, doubt=watcher.doubt,
                cursor_row=next((line.text for line in screen.lines if line.position == at), ""), is_busy=watcher.is_busy,
                collects_lines=is_line, is_reading=is_line, unread=0, is_at_own=composer is None and watcher.is_own(screen),
            )
        )  # fmt: skip


@pytest.mark.parametrize("file", ZOO, ids=lambda file: file.stem)
@pytest.mark.parametrize("is_line", [False, True])
def test_nothing_is_typed_into_any_of_them(file: Path, is_line: bool) -> None:
    for screen in screens(file.read_text("utf-8")):
        for step in steps(Injector(GENERIC), screen, is_line=is_line, t=100.0):
            assert isinstance(step, Wait), (screen.cursor, step)
            assert step.reason


@pytest.mark.parametrize("file", ZOO, ids=lambda file: file.stem)
def test_one_that_opens_after_the_paste_gets_no_enter(file: Path) -> None:
    for screen in screens(file.read_text("utf-8")):
        injector = Injector(GENERIC)
        assert injector.step(View(t=50.0, state=State.IDLE, draft="", cursor_row="> ")) == Paste()
        assert not [step for step in steps(injector, screen, is_line=False, t=100.0) if isinstance(step, Press | Paste)]


@given(
    file=st.sampled_from(ZOO), border=st.sampled_from(["", "│ ", "┃ ", "║ "]), indent=st.integers(0, 6), above=st.integers(0, 30)
)
@settings(deadline=None, max_examples=60)
def test_borders_and_what_stands_above_hide_none_of_them(file: Path, border: str, indent: int, above: int) -> None:
    rows = [f"{' ' * indent}{border}{row}" for row in file.read_text("utf-8").rstrip("\n").split("\n")]
    text = "\n".join([*(f"I have read file number {number}." for number in range(above)), *rows])
    for screen in (screen_of_text(text), screen_of_text(text, cursor=Cursor(text.count("\n"), len(rows[-1])))):
        for is_line in (False, True):
            assert all(isinstance(step, Wait) for step in steps(Injector(GENERIC), screen, is_line=is_line, t=100.0))


PROMPTS = [
    "Hello, I am an agent.\n> ",
    "I did this:\n1. read the file\n2. changed the test\n\nAll done.\n> ",
    "I have confirmed that it works, and the change was allowed.\n❯ ",
    "heard: Relay message\n• done\n› ",
    "> Relay message from Carol [a7c7612a]: one\n• ok\n› ",
    "> go on\nNo problem.\nYes, it is done.\n> ",
    "Thank you for your approval of the plan.\nme> ",
]


@pytest.mark.parametrize("text", PROMPTS)
def test_what_an_agent_says_above_its_prompt_is_no_dialog(text: str) -> None:
    screen = screen_of_text(text, cursor=Cursor(text.count("\n"), len(text.rsplit("\n", maxsplit=1)[-1])))
    assert Paste() in list(steps(Injector(GENERIC), screen, is_line=False, t=100.0))[:3]
