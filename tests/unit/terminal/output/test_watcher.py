"""One agent watched: when to read, whom to believe, and nothing told twice whatever the terminal does."""

from __future__ import annotations

import textwrap

import pytest

from agent_relay.terminal.output.commands import SendCommand
from agent_relay.terminal.output.observations import PermissionAsked, QuestionAsked
from agent_relay.terminal.output.transcripts.records import Saying, Taking, ToolCall
from agent_relay.terminal.output.watcher import (
    LONGEST_UNREAD_S,
    QUIET_S,
    SETTLE_S,
    TRANSCRIPT_SILENCE_S,
    TRANSCRIPT_WAIT_S,
    CommandSeen,
    CommandUnfinished,
    Event,
    Noticed,
    StateChanged,
    Watcher,
)  # fmt: skip
from agent_relay.terminal.profiles.profile import profile_for
from agent_relay.terminal.recordings.asciicast import read_cast
from agent_relay.terminal.screen.contents import screen_of_text
from agent_relay.terminal.screen.emulator import Emulator
from agent_relay.terminal.screen.state import State
from tests.unit.terminal.recorded_screens import ANSWER, EXPECTED, captures_of, cast_of, profile_of

RULE = "─" * 120
IDLE = f"\n\n{RULE}\n❯\n{RULE}\n  ⏸ manual mode on · ? for shortcuts"
BUSY = f"\n\n✽ Pondering… (2s)\n\n{RULE}\n❯\n{RULE}\n  ⏸ manual mode on · esc to interrupt"
SAID = "❯ hi\n\n● ->relay:Bob hello\n\n✻ Cooked for 2s"


def messages(events: list[Event]) -> list[list[str]]:
    return [
        [e.command.target, e.command.body] for e in events if isinstance(e, CommandSeen) and isinstance(e.command, SendCommand)
    ]


def states(events: list[Event]) -> list[State]:
    return [event.state for event in events if isinstance(event, StateChanged)]


def show(watcher: Watcher, text: str, t: float) -> list[Event]:
    watcher.note_output(t - 2 * QUIET_S)
    return watcher.saw(screen_of_text(text), t)


def claude(**options: bool) -> Watcher:
    return Watcher(profile_for("claude"), **options)


# --- when to read --------------------------------------------------------------------------------------------------------


def test_output_is_read_after_a_pause() -> None:
    watcher = claude()
    assert watcher.due_at is None
    watcher.feed(b"x", 1.0)
    assert watcher.due_at == pytest.approx(1.0 + QUIET_S)
    watcher.feed(b"x", 1.05)
    assert watcher.due_at == pytest.approx(1.05 + QUIET_S)


def test_output_without_a_pause_is_read_too_and_once_more_when_it_stops() -> None:
    watcher = claude()
    for step in range(6):
        watcher.feed(b"x", 1.0 + step * 0.05)
    assert watcher.due_at == pytest.approx(1.0 + LONGEST_UNREAD_S)
    watcher.quiet(1.25)
    assert watcher.due_at == pytest.approx(1.25 + QUIET_S)
    watcher.quiet(1.35)
    assert watcher.due_at == pytest.approx(1.25 + SETTLE_S)
    watcher.quiet(1.25 + SETTLE_S)
    assert watcher.due_at is None


def test_a_long_silence_settles_what_only_the_layout_suggested() -> None:
    """An answer of codex that was interrupted has no closing row; nothing moves, so it is not working."""
    watcher = Watcher(profile_for("codex"))
    screen = screen_of_text("› hi\n\n• tick0\n\n› Ask Codex to do anything\n\n  gpt-5-codex default\n")
    watcher.note_output(1.0)
    assert states(watcher.saw(screen, 1.0 + QUIET_S)) == [State.WORKING]
    assert states(watcher.saw(screen, 1.0 + SETTLE_S)) == [State.IDLE]


def test_a_pause_does_not_make_a_spinner_idle() -> None:
    watcher = claude()
    assert states(show(watcher, f"❯ hi{BUSY}", 1)) == [State.WORKING]
    assert states(watcher.saw(screen_of_text(f"❯ hi{BUSY}"), 60)) == []


# --- whom to believe -----------------------------------------------------------------------------------------------------


def saying(text: str, id_: str = "r1") -> Saying:
    return Saying(id_, text, 0)


def test_the_screen_is_believed_at_once_where_no_transcript_is_expected() -> None:
    (event,) = [event for event in show(claude(), SAID + IDLE, 1) if isinstance(event, CommandSeen)]
    assert (event.source, event.command) == ("screen", SendCommand(("Bob",), "hello"))


def test_where_one_is_expected_the_screen_waits_for_it() -> None:
    watcher = claude(expects_transcript=True)
    assert messages(show(watcher, SAID + IDLE, 1)) == []
    assert watcher.due_at is not None
    assert messages(watcher.heard([saying("->relay:Bob hello")], 1.5)) == [["Bob", "hello"]]
    assert messages(watcher.saw(screen_of_text(SAID + IDLE), 1 + TRANSCRIPT_WAIT_S)) == []


def test_when_it_does_not_come_the_screen_is_believed_and_the_late_transcript_says_nothing_twice() -> None:
    watcher = claude(expects_transcript=True)
    assert messages(show(watcher, SAID + IDLE, 1)) == []
    assert messages(watcher.saw(screen_of_text(SAID + IDLE), 1 + TRANSCRIPT_WAIT_S)) == [["Bob", "hello"]]
    assert messages(watcher.heard([saying("->relay:Bob hello\n\n->relay:Bob hello")], 9)) == [["Bob", "hello"]]


def test_a_transcript_that_speaks_is_the_only_source() -> None:
    watcher = claude()
    watcher.heard([Taking("u1", "hi", 0)], 0.5)
    example = "❯ hi\n\n● Like this:\n\n  ->relay:Bob EXAMPLE\n\n✻ Cooked for 2s"
    assert messages(show(watcher, f"❯ hi{BUSY}", 0.6)) == []
    assert messages(show(watcher, example + IDLE, 1)) == []
    assert messages(watcher.heard([saying("Like this:\n\n```\n->relay:Bob EXAMPLE\n```")], 1.2)) == []
    assert messages(watcher.saw(screen_of_text(example + IDLE), 2 + TRANSCRIPT_SILENCE_S)) == []


def test_a_transcript_that_falls_silent_is_given_up() -> None:
    watcher = claude()
    watcher.heard([saying("hello")], 1)
    show(watcher, f"❯ hi{BUSY}", 100)
    assert messages(show(watcher, SAID + IDLE, 101)) == []
    assert messages(watcher.saw(screen_of_text(SAID + IDLE), 101 + TRANSCRIPT_SILENCE_S)) == [["Bob", "hello"]]


def test_what_a_screen_cannot_show_the_end_of_is_left_to_the_transcript() -> None:
    open_end = "❯ hi\n\n● ->relay:Bob <<<\n  one\n\n✻ Cooked for 2s"
    watcher = claude(expects_transcript=True)
    events = [event for t in (1, 3.2) for event in show(watcher, open_end + IDLE, t)]
    events += watcher.heard([saying("->relay:Bob <<<\none\n>>>")], 4)
    events += watcher.saw(screen_of_text(open_end + IDLE), 60)
    assert messages(events) == [["Bob", "one"]]
    assert not [event for event in events if isinstance(event, CommandUnfinished)]


def test_the_same_record_place_is_named() -> None:
    (event,) = [e for e in claude().heard([saying("a\n->relay:Bob x", "rec")], 1) if isinstance(e, CommandSeen)]
    assert (event.source, event.place) == ("transcript", "rec:1")


def test_a_question_is_taken_from_the_screen_where_there_is_one() -> None:
    call = ToolCall("1", "AskUserQuestion", {"questions": [{"question": "Which?"}]}, 0)
    alone = claude().heard([call], 1)
    assert any(isinstance(event, Noticed) and isinstance(event.observation, QuestionAsked) for event in alone)
    watcher = claude()
    show(watcher, IDLE, 1)
    assert not any(
        isinstance(event, Noticed) and isinstance(event.observation, QuestionAsked) for event in watcher.heard([call], 2)
    )


# --- dialogs -------------------------------------------------------------------------------------------------------------


def test_a_dialog_is_told_once_and_again_when_it_is_another() -> None:
    def dialog(command: str) -> str:
        return f"❯ hi\n\n{RULE}\n Bash command\n\n {command}\n\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n\n Esc to cancel"

    watcher = claude()
    asked = [
        _asked(show(watcher, text, t))
        for t, text in enumerate([dialog("rm a")] * 2 + [dialog("rm b"), f"❯ hi{BUSY}", dialog("rm b")])
    ]
    assert asked == [["rm a"], [], ["rm b"], [], ["rm b"]]
    assert watcher.dialog is not None
    assert watcher.state is State.DIALOG


def _asked(events: list[Event]) -> list[str | None]:
    noticed = [event.observation for event in events if isinstance(event, Noticed)]
    return [seen.dialog.subject for seen in noticed if isinstance(seen, PermissionAsked)]


# --- nothing is told twice -------------------------------------------------------------------------------------------------

_CARRIED = {
    "claude": "abcef", "codex": "abcef", "gemini": "abcef", "opencode": "abcef", "aider": "acef", "claude-noalt": "ac",
    "codex-noalt": "ac",
}  # fmt: skip
LOSSLESS = [f"{variant}/{case}" for variant, cases in _CARRIED.items() for case in cases]


class Live:
    """A watcher after a whole recording, but for the CLI's end, and what is on its screen."""

    def __init__(self, recording: str) -> None:
        cast = read_cast(cast_of(recording))
        self.profile = profile_of(recording)
        self.watcher = Watcher(self.profile)
        self.shown = Emulator(120, 40)
        self.events: list[Event] = []
        self.t = 0.0
        last_input = max(event.t for event in cast.events if event.kind == "i")
        for event in cast.events:
            if event.kind != "o" or (event.t > last_input + 1 and ("\x1b[?1049l" in event.data or "\x1b[?2004l" in event.data)):
                continue
            self.read_until(event.t)
            self.feed(event.data.encode(), event.t)
        self.read_until(self.t + 5)

    def feed(self, data: bytes, t: float) -> None:
        self.t = t
        self.watcher.feed(data, t)
        self.shown.feed(data)

    def read_until(self, t: float) -> None:
        while self.watcher.due_at is not None and self.watcher.due_at <= t:
            self.events += self.watcher.quiet(self.watcher.due_at)
        self.t = max(self.t, t)

    def rows(self) -> list[str]:
        return [line.text for line in self.shown.read().visible]

    def after(self, data: bytes) -> list[list[str]]:
        """Messages that this output brings."""
        before = len(self.events)
        self.feed(data, self.t + 1)
        self.read_until(self.t + 5)
        return messages(self.events[before:])


@pytest.mark.parametrize("recording", LOSSLESS)
def test_drawing_everything_anew_says_nothing(recording: str) -> None:
    live = Live(recording)
    assert messages(live.events) == [*EXPECTED[recording.split("/")[1]], ANSWER]
    cursor = live.shown.read().cursor
    assert cursor is not None
    rows = live.rows()
    redraw = "\x1b[2J\x1b[H" + "\r\n".join(rows)
    assert live.after(redraw.encode()) == []
    assert live.after(redraw.encode()) == []


@pytest.mark.parametrize("recording", LOSSLESS)
@pytest.mark.parametrize("columns", [90, 150])
def test_another_size_says_nothing(recording: str, columns: int) -> None:
    """The CLI draws the same conversation for another width, as it does after a resize."""
    live = Live(recording)
    rows = _rewrapped(live, columns)
    live.watcher.resize(columns, 60, live.t + 1)
    live.shown.resize(columns, 60)
    assert live.after(("\x1b[2J\x1b[3J\x1b[H" + "\r\n".join(rows)).encode()) == []


def _rewrapped(live: Live, columns: int) -> list[str]:
    """The lines on the screen, broken again for another width with the margins this CLI keeps."""
    from agent_relay.terminal.output.lines import read_lines
    from agent_relay.terminal.profiles.profile import Kind
    from agent_relay.terminal.screen.state import look

    screen = screen_of_text("\n".join(live.rows()))
    end = look(live.profile, screen, State.IDLE).conversation_end
    margin = " " * live.profile.rows.indent
    marks = {"claude": "● ", "codex": "• ", "gemini": "✦ ", "opencode": margin, "aider": ""}
    users = {"claude": "❯ ", "codex": "› ", "gemini": " > ", "opencode": "  ┃", "aider": "diff> "}
    rows: list[str] = []
    for line in read_lines(live.profile, screen, end):
        first = marks[live.profile.name] if line.begins and line.kind is Kind.AGENT else margin
        if line.kind is Kind.USER:
            first = users[live.profile.name]
        if line.kind not in {Kind.AGENT, Kind.USER}:
            rows.append(line.text[:columns])
            continue
        width = columns - live.profile.rows.right_margin
        broken = textwrap.wrap(
            line.text, width, initial_indent=first, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False
        )
        rows += broken or [""]
    bottom = [line.text[:columns] for line in screen.lines if end is not None and line.position >= end]
    return [*rows, "", *bottom]


@pytest.mark.parametrize("recording", LOSSLESS)
def test_coming_back_to_a_running_agent_says_nothing_old(recording: str) -> None:
    live = Live(recording)
    watcher = Watcher(live.profile)
    watcher.feed("\r\n".join(live.rows()).encode(), 0)
    watcher.quiet(0.01)  # while it is being drawn: what is seen is not told yet
    watcher.adopt()
    told = messages([*watcher.quiet(0.3), *watcher.quiet(5)])
    assert told == []


@pytest.mark.parametrize("variant", ["aider", "claude", "claude-noalt", "codex", "codex-noalt", "gemini", "opencode"])
def test_captures_of_tmux_tell_each_message_once(variant: str) -> None:
    """The whole scrollback again and again, as `capture-pane -S -` prints it; each capture is looked at twice."""
    watcher = Watcher(profile_of(variant))
    told: list[list[str]] = []
    for number, file in enumerate(captures_of(variant)):
        for look_again in range(2):
            told += messages(show(watcher, file.read_text("utf-8"), 10.0 * number + 4 * look_again))
    for case in "acef" if variant in {"claude", "codex", "gemini", "opencode", "aider"} else "ac":
        assert told.count(EXPECTED[case][0]) == 1, case
    assert told.count(ANSWER) == 1
    tools = {"codex-noalt": 3}  # it said so three times, in three turns
    assert told.count(["Bob", "tool done"]) == tools.get(variant, 0)


# --- programs without a prompt -------------------------------------------------------------------------------------------


def plain(text: str, *, is_waiting: bool, t: float = 1.0) -> Watcher:
    found = Watcher(profile_for("generic"), columns=60, rows=10, asks_for_reader=True)
    found.is_waiting = is_waiting
    found.feed(text.replace("\n", "\r\n").encode(), t)
    found.quiet(t + 0.2)
    return found


@pytest.mark.parametrize("text", ["", "ready\n", "ready\n[chat] ", "What now? ", "you: "])
def test_a_program_that_waits_for_a_line_is_idle(text: str) -> None:
    assert plain(text, is_waiting=True).state is State.IDLE
    assert plain(text, is_waiting=False).state is not State.IDLE


@pytest.mark.parametrize("text", ["Password: ", "Delete it? ", "Allow this?\n", "⠋ thinking\n", "Continue? [y/N] "])
def test_one_that_waits_for_something_else_is_not(text: str) -> None:
    assert plain(text, is_waiting=True).state is not State.IDLE


def test_it_is_looked_at_again_until_it_waits() -> None:
    watcher = plain("working\n", is_waiting=False)
    watcher.quiet(10.0)
    assert watcher.due_at == 11.0
    watcher.is_waiting = True
    watcher.quiet(11.0)
    assert (watcher.state, watcher.due_at) == (State.IDLE, None)


def test_the_last_line_of_a_program_that_waits_is_whole() -> None:
    watcher = Watcher(profile_for("generic"), columns=60, rows=10)
    watcher.feed(b"ready\r\n->relay:Bob hello\r\n", 1.0)
    assert not [event for event in watcher.quiet(1.2) if isinstance(event, CommandSeen)]
    watcher.is_waiting = True
    assert [event for event in watcher.quiet(5.0) if isinstance(event, CommandSeen)]


def test_the_last_line_of_a_program_that_ended_by_itself_is_whole() -> None:
    watcher = Watcher(profile_for("generic"), columns=60, rows=10)
    watcher.feed("\r\n\r\n\r\n\r\n\r\n›".encode(), 1.0)
    watcher.quiet(1.2)
    watcher.feed("\x1b[2;1H> hi\r\n\r\n• ->relay:Bob farewell\r\n\r\n›".encode(), 2.0)
    watcher.feed(b"\x1b[1;1H", 2.0)  # where the cursor stood is not to be known any more
    assert not [event for event in watcher.quiet(2.2) if isinstance(event, CommandSeen)]
    watcher.has_finished = True
    told = [event.command for event in watcher.quiet(60.0) if isinstance(event, CommandSeen)]
    assert [command.body for command in told if isinstance(command, SendCommand)] == ["farewell"]


def test_somebody_who_types_to_a_program_that_waits_does_not_make_it_work() -> None:
    watcher = plain("ready\n", is_waiting=True)
    watcher.feed(b"hel", 2.0)
    watcher.quiet(2.01)
    assert watcher.state is State.IDLE
    watcher.is_waiting = False
    watcher.feed(b"lo\r\n", 3.0)
    watcher.quiet(3.2)
    assert watcher.state is State.WORKING


def test_bullets_are_no_menu_where_a_line_is_waited_for() -> None:
    bullets = "● first thing\n● second thing\n"
    assert plain(bullets, is_waiting=True).state is State.IDLE
    assert plain(bullets, is_waiting=False).doubt
    for menu in ("● 1. Yes\n○ 2. No\n", "1) deploy\n2) rollback\nAction: ", "Approve?\n● Yes\n○ No\n"):
        assert plain(menu, is_waiting=True).state is not State.IDLE
