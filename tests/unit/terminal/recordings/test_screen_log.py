from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.recordings import screen_log
from agent_relay.terminal.recordings.screen_log import LogFollower, LoggedScreen, LogReader, ScreenLog, is_being_written
from agent_relay.terminal.screen.contents import Line, Screen

ROWS = 4


class Program:
    """One that prints lines on a screen of a few rows; each reading is logged, as the wrapper does."""

    def __init__(self, log: ScreenLog, prompt: str = "") -> None:
        self.log = log
        self.said: list[str] = []
        self._read = 0
        self._t = 0.0
        self._prompt = [prompt] if prompt else []

    def say(self, *lines: str) -> None:
        self.said += lines
        everything = [*self.said, *self._prompt]
        first = max(0, len(everything) - ROWS)
        lines_ = tuple(Line(position, everything[position]) for position in range(min(self._read, first), len(everything)))
        self._read = first
        self._t += 1.0
        self.log.note(Screen(lines=lines_, columns=80, first_visible=first), self._t)


def follow(reader: LogReader, follower: LogFollower, *, is_still: bool) -> list[str]:
    news = reader.poll()
    return follower.take(news.scrolled, news.rows, is_still=is_still) if news is not None else []


@given(steps=st.lists(st.tuples(st.integers(0, 12), st.booleans(), st.booleans()), max_size=12), limit=st.integers(20, 200))
def test_every_line_is_shown_once_and_in_order_also_over_rotations(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, bool, bool]], limit: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screen_log, "MAX_HISTORY_BYTES", limit)
        log = ScreenLog(str(folder))
        program, reader, follower = Program(log), LogReader(str(folder)), LogFollower()
        seen: list[str] = []
        for count, is_read, is_still in steps:
            program.say(*(f"line {len(program.said) + number}" for number in range(count)))
            if is_read or os.path.exists(folder / screen_log.OLD_HISTORY_FILE):  # two rotations unread: the first is gone
                seen += follow(reader, follower, is_still=is_still)
        log.close()
        seen += follow(reader, follower, is_still=True)
        reader.close()
    assert seen == program.said


def test_a_prompt_that_moves_down_is_shown_once(tmp_path: Path) -> None:
    log = ScreenLog(str(tmp_path))
    program, reader, follower = Program(log, prompt="> "), LogReader(str(tmp_path)), LogFollower()
    seen = []
    for number in range(6):
        program.say(f"a {number}", "")
        seen += follow(reader, follower, is_still=True)
    log.close()
    reader.close()
    assert [line for line in seen if line] == ["a 0", "> ", *(f"a {number}" for number in range(1, 6))]


def test_what_changes_on_the_screen_is_shown_when_it_is_still() -> None:
    follower = LogFollower()
    assert follower.take([], ["a", "Working 1s"], is_still=True) == ["a", "Working 1s"]
    assert follower.take([], ["a", "Working 2s"], is_still=False) == []
    assert follower.take([], ["a", "done", "> "], is_still=True) == ["done", "> "]
    assert follower.take([], ["a", "done", "> "], is_still=True) == []


def test_a_flood_is_shown_whole() -> None:
    follower = LogFollower()
    follower.take([], ["a", "b", "> "], is_still=True)
    flood = [f"line {number}" for number in range(5_000)]
    assert follower.take(["a", "b", *flood[:-2]], [*flood[-2:], "> "], is_still=True) == [*flood, "> "]


def test_a_rotation_that_was_not_read_in_between_is_read_from_the_file_put_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = ScreenLog(str(tmp_path))
    program, reader = Program(log), LogReader(str(tmp_path))
    program.say(*"abcdef")
    first = reader.poll()
    assert first is not None
    assert first.scrolled == ["a", "b"]
    monkeypatch.setattr(screen_log, "MAX_HISTORY_BYTES", 4)
    program.say("g")  # c: the file is put away
    program.say("h", "i", "j")  # another one is begun, and put away
    program.say("k")
    news = reader.poll()
    assert news is not None
    assert news.scrolled == ["c", *"defg"]
    log.close()
    reader.close()


def test_nothing_is_read_again_while_nothing_changes(tmp_path: Path) -> None:
    log = ScreenLog(str(tmp_path))
    program, reader = Program(log), LogReader(str(tmp_path))
    assert reader.poll() is None
    program.say(*"abcdef")
    assert reader.poll() is not None
    assert reader.poll() is None
    program.say()  # the same screen
    assert reader.poll() is None
    log.close()
    over = reader.poll()
    assert over is not None
    assert (over.scrolled, over.rows, over.is_over) == ([], list("cdef"), True)
    reader.close()


def test_a_window_that_grows_shows_nothing_twice(tmp_path: Path) -> None:
    log = ScreenLog(str(tmp_path))
    lines = tuple(Line(position, f"line {position}") for position in range(6))
    log.note(Screen(lines=lines, columns=80, first_visible=4), 0.0)
    log.note(Screen(lines=lines, columns=80, first_visible=0), 1.0)
    reader = LogReader(str(tmp_path))
    news = reader.poll()
    assert news is not None
    assert news.scrolled + news.rows == [line.text for line in lines]
    log.close()
    reader.close()


def test_whether_somebody_writes_is_known_however_that_ends(tmp_path: Path) -> None:
    assert not is_being_written(str(tmp_path))
    log = ScreenLog(str(tmp_path))
    assert is_being_written(str(tmp_path))
    log.close()
    assert not is_being_written(str(tmp_path))


def test_a_file_that_is_none_is_waited_for(tmp_path: Path) -> None:
    (tmp_path / screen_log.SIGHT_FILE).write_text("{")
    assert LogReader(str(tmp_path)).poll() is None
    assert LoggedScreen([]).history == 0


def screen(first: int, *texts: str, above: int = 0) -> Screen:
    lines = tuple(Line(first - above + index, text) for index, text in enumerate(texts))
    return Screen(lines=lines, columns=80, first_visible=first)


def test_lines_are_kept_once_as_they_scroll_off(tmp_path: Path) -> None:
    log = ScreenLog(str(tmp_path))
    log.note(screen(0, "a", "b"), 0.0)
    log.note(screen(2, "a", "b", "c", "d", above=2), 0.1)
    log.note(screen(3, "c", "d", "e", above=1), 0.2)
    log.note(screen(3, "d", "e"), 0.3)
    assert (tmp_path / "history.log").read_text() == "a\nb\nc\n"
    assert (tmp_path / "screen.txt").read_text() == "a\nb\n"  # at most twice a second
    log.flush()
    assert (tmp_path / "screen.txt").read_text() == "d\ne\n"
