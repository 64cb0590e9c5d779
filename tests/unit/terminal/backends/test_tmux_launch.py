from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.backends.tmux_launch import END_MARK, EndMarkFinder, launch_command


@given(st.binary(), st.lists(st.integers(0, 60), max_size=6))
def test_the_mark_is_taken_out_however_it_is_cut(before: bytes, cuts: list[int]) -> None:
    data = before + END_MARK
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    finder = EndMarkFinder()
    shown, found = b"", 0
    for start, end in itertools.pairwise(edges):
        part, is_over = finder.feed(data[start:end])
        shown += part
        found += is_over
    assert (shown, found) == (before, 1)


def test_what_only_begins_like_it_is_shown() -> None:
    finder = EndMarkFinder()
    assert finder.feed(b"a" + END_MARK[:5]) == (b"a", False)
    assert finder.feed(b"b") == (END_MARK[:5] + b"b", False)


def test_the_script_is_the_same_for_every_program() -> None:
    one, other = launch_command("tmux", "s", "g", ["a"]), launch_command("tmux", "s", "g", ["$(b)", "c"])
    assert one[:3] == other[:3]
    assert other[-2:] == ("$(b)", "c")
