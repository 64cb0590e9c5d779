from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends.capture import Captured, apply_colours, find_wrapped
from agent_relay.terminal.screen.contents import Ink
from agent_relay.terminal.screen.emulator import Emulator

# As `capture-pane -e -p` of tmux 3.3a printed it; attributes go on from line to line.
RECORDED = "\x1b[31mred\x1b[39m \x1b[48;5;100mx\x1b[49m \x1b[38;2;1;2;3mrgb\n\x0elqqk\x0f box\n1\x1b[39m plain  "


def test_text_and_colours_of_a_recorded_capture() -> None:
    first, second, third = Captured(RECORDED.split("\n")).lines(40)
    assert [(line.position, line.text) for line in (first, second, third)] == [
        (40, "red x rgb"),
        (41, "┌──┐ box"),
        (42, "1 plain"),
    ]
    assert first.ink_at is not None
    assert second.ink_at is not None
    assert third.ink_at is not None
    assert first.ink_at(0) == Ink("red", "default")
    assert first.ink_at(4) == Ink("default", "878700")
    assert first.ink_at(6) == Ink("010203", "default")
    assert second.ink_at(0) == Ink("010203", "default")
    assert third.ink_at(0) == Ink("010203", "default")
    assert third.ink_at(2) == Ink()
    assert third.ink_at(500) == Ink()


def test_links_are_no_text() -> None:
    (line,) = Captured(["\x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\!"]).lines(0)
    assert line.text == "here!"


def test_wide_characters_have_two_columns() -> None:
    (line,) = Captured(["漢\x1b[31mx"]).lines(0)
    assert line.ink_at is not None
    assert [line.ink_at(column).foreground for column in (0, 1, 2)] == ["default", "default", "red"]


colours = st.one_of(
    st.sampled_from([0, 1, 31, 37, 39, 44, 47, 49, 90, 97, 103]).map(str),
    st.integers(0, 255).map(lambda number: f"38;5;{number}"),
    st.tuples(*[st.integers(0, 255)] * 3).map(lambda rgb: "48;2;{};{};{}".format(*rgb)),
)


@given(st.lists(colours, min_size=1, max_size=5))
def test_colours_are_named_as_the_emulator_names_them(parameters: list[str]) -> None:
    sequence = "".join(f"\x1b[{part}m" for part in parameters)
    emulator = Emulator(20, 2)
    emulator.feed(f"{sequence}x".encode())
    drawn = emulator.read().lines[0]
    (line,) = Captured([f"{sequence}x"]).lines(0)
    assert drawn.ink_at is not None
    assert line.ink_at is not None
    assert line.ink_at(0) == drawn.ink_at(0)


@given(st.text(st.sampled_from("0123456789;:"), max_size=30))
def test_any_parameters_may_come(parameters: str) -> None:
    assert isinstance(apply_colours(Ink(), parameters), Ink)


@given(
    st.lists(
        st.lists(st.text("abc ", min_size=1, max_size=5).map(lambda text: text.rstrip()).filter(bool), min_size=1, max_size=4)
    )
)
def test_rows_that_go_on_are_found_by_the_joined_text(lines: list[list[str]]) -> None:
    rows = [row for line in lines for row in line]
    ends = [index == len(line) - 1 for line in lines for index in range(len(line))]
    assert find_wrapped(rows, ["".join(line) for line in lines]) == {index for index, is_end in enumerate(ends) if not is_end}


def test_rows_that_changed_in_between_are_not_put_together() -> None:
    assert find_wrapped(["abc", "def"], ["xyzdef"]) == set()
    assert find_wrapped(["abc", "def"], []) == set()
