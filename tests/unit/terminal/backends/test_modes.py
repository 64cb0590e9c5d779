from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends.modes import ModeTracker

ALL_ON = b"\x1b[?1049h\x1b[?1000;1006h\x1b[?2004h\x1b[?1h\x1b=\x1b[?25l\x1b[>5u"


def tracked(*chunks: bytes) -> ModeTracker:
    modes = ModeTracker()
    for chunk in chunks:
        modes.feed(chunk)
    return modes


def test_what_was_switched_on_is_known_and_undone() -> None:
    modes = tracked(ALL_ON)
    assert (modes.bracketed_paste, modes.alternate, modes.application_cursor) == (True, True, True)
    undo = modes.undo()
    for sequence in (
        b"\x1b[?1000l",
        b"\x1b[?1006l",
        b"\x1b[?2004l",
        b"\x1b[?1049l",
        b"\x1b[?25h",
        b"\x1b[<1u",
        b"\x1b[?1l",
        b"\x1b>",
    ):
        assert sequence in undo
    assert tracked(ALL_ON, undo).undo() == b""


def test_redo_brings_another_terminal_there() -> None:
    again = tracked(tracked(ALL_ON).redo())
    assert again.undo() == tracked(ALL_ON).undo()
    assert tracked(ALL_ON).redo_alternate() == b"\x1b[?1049h"
    assert tracked(b"").redo_alternate() == b"\x1b[?1049l"


def test_nothing_to_undo_is_nothing() -> None:
    assert tracked(b"text \x1b[31m \x1b[2J").undo() == b""
    assert tracked(ALL_ON, b"\x1bc").undo() == b""
    assert tracked(b"\x1b[?2004h", b"\x1b[?2004l").bracketed_paste is False


@given(st.lists(st.integers(0, len(ALL_ON)), max_size=8))
def test_cut_anywhere(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(ALL_ON)]
    chunks = [ALL_ON[start:end] for start, end in itertools.pairwise(edges)]
    assert tracked(*chunks).undo() == tracked(ALL_ON).undo()


@given(st.binary())
def test_anything_may_come(data: bytes) -> None:
    modes = tracked(data, b"\x1b[?99999999999999999999h\x1b[<99999999999u")
    assert isinstance(modes.undo(), bytes)
