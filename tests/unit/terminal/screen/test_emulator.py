"""Bytes → screens: what pyte lacks, and the recordings read as tmux and a plain emulation read them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.terminal.recordings.asciicast import read_cast
from agent_relay.terminal.screen.contents import Cursor, Ink
from agent_relay.terminal.screen.emulator import ControlFilter, Emulator
from tests.unit.terminal.recorded_screens import cast_of, output_of, recordings, steps_of


def texts(emulator: Emulator) -> list[str]:
    return [line.text for line in emulator.read().visible if line.text]


def fed(data: str, columns: int = 20, rows: int = 4) -> Emulator:
    emulator = Emulator(columns, rows)
    emulator.feed(data.encode())
    return emulator


def test_lines_that_scroll_off_are_handed_over_once_and_keep_their_numbers() -> None:
    emulator = fed("".join(f"line {n}\r\n" for n in range(6)))
    screen = emulator.read()
    assert [(line.position, line.text) for line in screen.lines if line.text] == [(n, f"line {n}") for n in range(6)]
    assert screen.first_visible == 3
    assert screen.cursor == Cursor(6, 0)
    emulator.feed(b"line 6\r\n")
    screen = emulator.read()
    assert [(line.position, line.text) for line in screen.lines if line.text] == [(n, f"line {n}") for n in range(3, 7)]


def test_a_region_that_scrolls_below_the_top_loses_nothing_to_the_scrollback() -> None:
    emulator = fed("top\r\n\x1b[2;4ra\r\nb\r\nc\r\nd\r\n")
    assert emulator.read().first_visible == 0


def test_scrolling_by_command_is_counted_too() -> None:
    emulator = fed("a\r\nb\r\nc\x1b[2S")
    screen = emulator.read()
    assert [line.text for line in screen.lines if line.text] == ["a", "b", "c"]
    assert screen.first_visible == 2
    emulator.feed(b"\x1b[1T")
    assert texts(emulator) == ["c"]


def test_erasing_the_scrollback_forgets_what_was_not_read() -> None:
    emulator = fed("".join(f"line {n}\r\n" for n in range(9)) + "\x1b[2J\x1b[3J\x1b[Hanew")
    assert [line.text for line in emulator.read().lines if line.text] == ["anew"]


def test_the_alternate_screen_comes_and_goes() -> None:
    emulator = fed("shell\r\n\x1b[?1049h\x1b[Happ" + "\r\n" * 9 + "end")
    screen = emulator.read()
    assert screen.is_alternate
    assert screen.first_visible == 0
    assert texts(emulator) == ["end"]
    emulator.feed(b"\x1b[?1049l")
    assert texts(emulator) == ["shell"]
    assert emulator.read().is_alternate is False


def test_titles() -> None:
    assert fed("x").read().title is None
    assert fed("\x1b]0;one\x07").read().title == "one"
    assert fed("\x1b]2;two\x1b\\").read().title == "two"


@pytest.mark.parametrize("text", ["日本語 ok", "👩‍💻 ok", "🚀🚀 ok", "café ñ ok", "cafe\u0301 ok", "⚠️ ok", "👨‍👩‍👧‍👦 ok"])
def test_wide_joined_and_combining_characters(text: str) -> None:
    for size in (1, 3, 100):
        emulator = Emulator(40, 3)
        data = text.encode()
        for at in range(0, len(data), size):
            emulator.feed(data[at : at + size])
        (shown,) = texts(emulator)
        assert shown == text.replace("e\u0301", "é")


@pytest.mark.parametrize(
    "sequence",
    [
        "\x1b[?4m",
        "\x1b[>4;2m",
        "\x1b[?1;2r",
        "\x1b[?u",
        "\x1b[<u",
        "\x1b[1;2;3;4A",
        "\x1b[9J",
        "\x1b[7K",
        "\x1b[?6n",
        "\x1bP1$r\x1b\\",
    ],
)
def test_strange_sequences_neither_raise_nor_show(sequence: str) -> None:
    assert texts(fed(f"{sequence}ok")) == ["ok"]


def test_colours_by_column() -> None:
    line = fed("a\x1b[31mb\x1b[0;48;5;255mc").read().visible[0]
    assert line.ink_at is not None
    assert [line.ink_at(column) for column in range(3)] == [Ink(), Ink("red"), Ink("default", "eeeeee")]


def test_resizing_keeps_the_cursor_and_counts_what_leaves() -> None:
    emulator = fed("a\r\nb\r\nc\r\nd")
    emulator.resize(20, 2)
    screen = emulator.read()
    assert [line.text for line in screen.visible] == ["c", "d"]
    assert [line.text for line in screen.lines] == ["a", "b", "c", "d"]
    assert screen.cursor == Cursor(3, 1)
    emulator.resize(20, 4)
    emulator.feed(b"\r\ne")
    assert texts(emulator) == ["c", "d", "e"]


@given(st.binary(max_size=400))
@settings(max_examples=200)
def test_no_bytes_whatever_raise(data: bytes) -> None:
    emulator = Emulator(20, 5)
    emulator.feed(data)
    emulator.read()


@given(
    st.lists(
        st.sampled_from([b"\x1b[", b"\x1b]", b"?", b"1", b";", b"m", b"h", b"J", b"S", b"\xf0\x9f", b"x", b"\r\n"]), max_size=60
    )
)
def test_no_control_sequence_whatever_raises(parts: list[bytes]) -> None:
    emulator = Emulator(20, 5)
    for part in parts:
        emulator.feed(part)
    emulator.read()


# --- the recordings --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "recording",
    [name for name in recordings() if name.split("/")[0] in {"claude", "codex", "opencode"} and "-" not in name.split("/")[1]],
)
def test_recordings_show_what_was_seen_when_they_were_made(recording: str) -> None:
    """The last step of `screens.txt` was the screen before the CLI was asked to end."""
    wanted = [line.rstrip() for line in steps_of(recording)[-1][1].split("\n") if line.strip()]
    emulator = Emulator(120, 40)
    for event in read_cast(cast_of(recording)).events:
        if event.kind == "o" and "\x1b[?1049l" in event.data:
            break
        if event.kind == "o":
            emulator.feed(event.data.encode())
    shown = texts(emulator)
    assert [_plain(line) for line in shown] == [_plain(line) for line in wanted]


def _plain(line: str) -> str:
    return line.replace("\u00a0", " ").rstrip()


def test_reading_is_fast_enough() -> None:
    """At most 5 ms for 120×40. The best of several, since other programs share the machine."""
    emulator = Emulator(120, 40)
    emulator.feed(("".join(f"\x1b[3{n % 8}mword{n:03} " for n in range(700))).encode())
    best = min(_seconds(emulator) for _ in range(20))
    assert best < 0.005


def _seconds(emulator: Emulator) -> float:
    started = time.perf_counter()
    emulator.read()
    return time.perf_counter() - started


@pytest.mark.parametrize("recording", ["gemini/a", "opencode/perm-h-enter", "claude/c", "aider/busy-inject"])
@pytest.mark.parametrize("size", [1, 7, 64])
def test_any_chunking_shows_the_same(recording: str, size: int) -> None:
    data = output_of(recording)
    whole, pieces = Emulator(), Emulator()
    whole.feed(data)
    for at in range(0, len(data), size):
        pieces.feed(data[at : at + size])
    assert [line.text for line in pieces.read().lines] == [line.text for line in whole.read().lines]


# --- control sequences that pyte would draw ----------------------------------------------------------------------------


CASES = {
    "device control string": ("a\x1bP+q4d73\x1b\\b", "ab"),
    "application string, ended by a bell": ("a\x1b_Gf=1;AAAA\x07b", "ab"),
    "keyboard protocol": ("a\x1b[>7ub\x1b[<uc\x1b[=1;1ud", "abcd"),
    "modify other keys": ("a\x1b[>4;2mb", "ab"),
    "soft reset": ("a\x1b[!pb", "ab"),
    "cursor shape": ("a\x1b[2 qb", "a\x1b[2 qb"),
    "colours with colons": ("\x1b[38:2::1:2:3;4:3mx", "\x1b[38;2;1;2;3;4mx"),
    "palette with colons": ("\x1b[48:5:7mx", "\x1b[48;5;7mx"),
    "underline off": ("\x1b[4:0mx", "\x1b[24mx"),
    "ordinary colours": ("\x1b[38;5;7mx\x1b[0m", "\x1b[38;5;7mx\x1b[0m"),
    "title": ("\x1b]0;t\x07x", "\x1b]0;t\x07x"),
    "private mode": ("\x1b[?2026hx\x1b[?25l", "\x1b[?2026hx\x1b[?25l"),
    "save and restore": ("\x1b7\x1b8", "\x1b7\x1b8"),
    "plain": ("plain", "plain"),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_whole_and_character_by_character(text: str, expected: str) -> None:
    assert ControlFilter().clean(text) == expected
    control = ControlFilter()
    assert "".join(control.clean(character) for character in text) == expected


@given(st.lists(st.sampled_from([text for text, _ in CASES.values()]), max_size=6), st.integers(1, 9))
def test_any_chunking_gives_the_same(parts: list[str], size: int) -> None:
    text = "".join(parts) + "end"
    control = ControlFilter()
    assert "".join(control.clean(text[at : at + size]) for at in range(0, len(text), size)) == ControlFilter().clean(text)


def test_a_string_that_never_ends_is_not_kept_for_ever() -> None:
    control = ControlFilter()
    control.clean("\x1bP" + "x" * 70_000)
    assert "later" in control.clean("later")
