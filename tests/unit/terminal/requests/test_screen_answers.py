"""Answering a dialog: the steps against a simulated menu that is slow, hangs, loses keys and is replaced, with a person at it;
then the hands with the real watcher on recorded screens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from msgspec.structs import replace

from agent_relay.terminal.backends.terminal import Key, PersonSeen, Terminal, TerminalEnded
from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen
from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.requests import screen_answers as module
from agent_relay.terminal.requests.choices import choose
from agent_relay.terminal.requests.screen_answers import (
    CLOSE_S,
    KEY_S,
    PATIENCE_S,
    STEADY_S,
    Answered,
    DialogAnswer,
    DialogView,
    Failed,
    Gone,
    Press,
    ScreenAnswerer,
    Step,
    Type,
    Wait,
)  # fmt: skip
from agent_relay.terminal.screen.contents import Ink, Line, Screen, screen_of_text
from agent_relay.terminal.screen.dialogs import OpenDialog, find_dialog, looks_of
from tests.unit.terminal.recorded_screens import SCREENS, steps_of

PROFILES = load_profiles()
GENERIC = PROFILES["generic"]
MENU = next(index for index, look in enumerate(GENERIC.dialogs) if look.kind == "permission" and look.option)
WORD = next(index for index, look in enumerate(looks_of(GENERIC)) if look.typed == "word")
NUMBER = next(index for index, look in enumerate(GENERIC.dialogs) if look.typed == "number")
ALLOW, DENY = Decision(is_allowed=True), Decision(is_allowed=False)
OPTIONS = ("Yes", "Yes, always", "Something else", "No")
A = OpenDialog("permission", "Proceed?", "", OPTIONS, 0, "A", 5, look=MENU)
B = OpenDialog("permission", "Delete everything?", "", ("Yes", "No"), 0, "B", 5, look=MENU)


# --- a simulated menu ------------------------------------------------------------------------------------------------------


class Act(Struct, frozen=True):
    """What happens in the world, `after_s` seconds after the one before it."""

    what: str  # up, down, enter (by a person); replace, close (by itself); hang, blink, blank (for a while)
    after_s: float


class Hit(Struct, frozen=True):
    """One of our keys reached something."""

    key: Key
    pressed_t: float
    t: float
    dialog: OpenDialog | None  # before the key


class World:
    """Dialog A, and B after it. Keys take `lag_s` to arrive, in order; what they did is seen `lag_s` later. Some are lost."""

    def __init__(self, selected: int, lag_s: float, lost: set[int], acts: list[Act], *, is_followed: bool) -> None:
        self.t = 0.0
        self.lag_s = lag_s
        self.lost = lost
        self.is_followed = is_followed
        self.dialog: OpenDialog | None = replace(A, selected=selected)
        self.shown: list[tuple[float, OpenDialog | None]] = [(-100.0, self.dialog)]
        self.keys: list[tuple[float, float, Key]] = []  # (arrives, pressed, key)
        self.pressed = 0
        self.hits: list[Hit] = []
        self.typed_t: float | None = None
        self.hangs_until = -1.0
        self.blinks: list[tuple[float, float, OpenDialog | None]] = []
        self.acts: list[tuple[float, str]] = []
        moment = 0.0
        for act in acts:
            moment += act.after_s
            self.acts.append((moment, act.what))
        self.disturbed = [t for t, what in self.acts if what not in {"hang", "blink", "blank"}]

    def press(self, key: Key) -> None:
        self.pressed += 1
        if self.pressed not in self.lost:
            self.keys.append((self.t + self.lag_s, self.t, key))

    def run_until(self, t: float) -> None:
        while True:
            key_t = max(self.keys[0][0], self.hangs_until) if self.keys else 1e9
            act_t = self.acts[0][0] if self.acts else 1e9
            if min(key_t, act_t) > t:
                break
            if key_t < act_t:
                _, pressed_t, key = self.keys.pop(0)
                self.t = key_t
                self.hits.append(Hit(key, pressed_t, key_t, self.dialog))
                self.take(key)
            else:
                self.t, what = self.acts.pop(0)
                self.act(what)
        self.t = t

    def act(self, what: str) -> None:
        if what == "hang":
            self.hangs_until = self.t + 7.0
        elif what in {"blink", "blank"}:
            if self.blinks and self.t < self.blinks[-1][1] + STEADY_S:
                return  # two in a row would be a screen that shows nothing for longer than any drawing takes
            half = None if what == "blank" else replace(A, digest="half", options=A.options[:2])
            self.blinks.append((self.t, self.t + STEADY_S * 0.7, half))
        elif what in {"replace", "close"}:
            self.show(B if what == "replace" else None)
        else:
            self.typed_t = self.t
            self.take({"up": Key.UP, "down": Key.DOWN, "enter": Key.ENTER}[what])

    def take(self, key: Key) -> None:
        dialog = self.dialog
        if dialog is None or dialog.selected is None:
            return
        if key is Key.ENTER:
            self.show(B if dialog.digest == "A" and self.is_followed else None)
        else:
            moved = min(max(dialog.selected + (1 if key is Key.DOWN else -1), 0), len(dialog.options) - 1)
            self.show(replace(dialog, selected=moved))

    def show(self, dialog: OpenDialog | None) -> None:
        self.dialog = dialog
        self.shown.append((self.t + self.lag_s, dialog))

    def sight(self) -> DialogView:
        seen = [dialog for since, dialog in self.shown if since <= self.t][-1]
        for begin, end, half in self.blinks:
            if begin <= self.t < end:
                seen = half
        return DialogView(self.t, seen, None if self.typed_t is None else self.t - self.typed_t)

    def answer(self, decision: Decision) -> Step:
        answering = DialogAnswer(GENERIC, "A", decision)
        while True:
            assert self.t < 120, "it never ends"
            step = answering.step(self.sight())
            match step:
                case Press(key):
                    self.press(key)
                    self.run_until(self.t + 0.01)
                case Wait(until):
                    assert until > self.t
                    self.run_until(until)
                case Type():
                    raise AssertionError("nothing is typed into a menu")
                case _:
                    self.run_until(self.t + 30)  # what is still on its way arrives
                    return step


ACTS = st.lists(
    st.builds(
        Act,
        st.sampled_from(["up", "down", "enter", "replace", "close", "hang", "blink", "blank"]),
        st.floats(0.0, 4.0, allow_nan=False),
    ),
    max_size=3,
)


@settings(max_examples=600, deadline=None)
@given(
    selected=st.integers(0, 3), lag_s=st.floats(0.0, 0.4), lost=st.sets(st.integers(1, 8), max_size=2), acts=ACTS,
    is_allowed=st.booleans(), is_followed=st.booleans(),
)  # fmt: skip
def test_only_the_option_that_is_meant_is_ever_chosen(
    selected: int, lag_s: float, lost: set[int], acts: list[Act], is_allowed: bool, is_followed: bool
) -> None:
    world = World(selected, lag_s, lost, acts, is_followed=is_followed)
    decision = ALLOW if is_allowed else DENY
    target = choose(GENERIC.dialogs[MENU], A, decision)
    disturbed = list(world.disturbed)
    outcome = world.answer(decision)
    for hit in world.hits:
        # What happens between the look and the key's arrival nobody can see; a person there had typed just before.
        is_blind = any(hit.pressed_t - lag_s <= t <= hit.t for t in disturbed)
        if hit.key is Key.ENTER and hit.dialog is not None and not is_blind:
            assert (hit.dialog.digest, hit.dialog.selected) == ("A", target)
    if isinstance(outcome, Gone):
        assert not [hit for hit in world.hits if hit.key is Key.ENTER]
    if isinstance(outcome, Answered):
        assert world.dialog is None or world.dialog.digest == "B"
    if not acts and not lost:
        assert isinstance(outcome, Answered)


@pytest.mark.parametrize("followed", [True, False])
def test_a_late_enter_is_not_pressed_twice(followed: bool) -> None:
    """The program hangs, the answer waits in its input, and another dialog follows: that one is answered by nobody."""
    world = World(0, 0.1, set(), [Act("hang", 0.0)], is_followed=followed)
    assert world.answer(ALLOW) == Answered()
    assert [hit.key for hit in world.hits].count(Key.ENTER) == 1


def test_a_lost_enter_is_pressed_again() -> None:
    world = World(0, 0.1, {1}, [], is_followed=True)
    assert world.answer(ALLOW) == Answered()
    assert [hit.key for hit in world.hits] == [Key.DOWN, Key.UP, Key.ENTER]
    assert world.dialog == B


def test_a_lost_arrow_ends_it() -> None:
    world = World(0, 0.1, {1}, [], is_followed=False)
    assert world.answer(DENY) == Failed("A key was pressed, but the selection did not move.")
    assert world.hits == []


# --- step by step ----------------------------------------------------------------------------------------------------------


def steps(decision: Decision, *sights: DialogView) -> list[Step]:
    answering = DialogAnswer(GENERIC, "A", decision)
    return [answering.step(sight) for sight in sights]


def test_the_selection_is_moved_and_seen_before_enter() -> None:
    taken = steps(
        DENY,
        DialogView(0, A),
        DialogView(0.1, A),
        *(DialogView(0.2 * n, replace(A, selected=n)) for n in (1, 2, 3)),
        DialogView(2, None),
    )
    assert taken[:1] + taken[2:5] == [Press(Key.DOWN), Press(Key.DOWN), Press(Key.DOWN), Press(Key.ENTER)]
    assert isinstance(taken[1], Wait)


def test_a_row_of_options_is_moved_sideways() -> None:
    opencode = PROFILES["opencode"]
    row = OpenDialog("permission", "", "", ("Allow once", "Allow always", "Reject"), 0, "A", 0, look=0)
    assert DialogAnswer(opencode, "A", DENY).step(DialogView(0, row)) == Press(Key.RIGHT)
    assert DialogAnswer(opencode, "A", ALLOW).step(DialogView(0, replace(row, selected=2))) == Press(Key.LEFT)
    assert DialogAnswer(opencode, "A", ALLOW).step(DialogView(0, row)) == Press(Key.ENTER)


@pytest.mark.parametrize("other", [None, B])
def test_a_dialog_that_is_gone_gets_nothing(other: OpenDialog | None) -> None:
    assert [type(step) for step in steps(ALLOW, DialogView(0, other), DialogView(STEADY_S, other))] == [Wait, Gone]
    assert [type(step) for step in steps(DENY, DialogView(0, A), DialogView(0.1, other), DialogView(1, other))] == [
        Press,
        Wait,
        Gone,
    ]


def test_a_selection_that_is_not_to_be_seen_is_waited_for_and_then_given_up() -> None:
    hidden = replace(A, selected=None)
    assert isinstance(steps(ALLOW, DialogView(0, hidden), DialogView(0.1, A))[1], Press)
    assert steps(ALLOW, DialogView(0, hidden), DialogView(KEY_S, hidden))[1] == Failed(
        "It cannot be seen which option is selected."
    )


def test_a_menu_that_does_not_go_there_is_left() -> None:
    answering, t, last = DialogAnswer(GENERIC, "A", DENY), 0.0, None
    for n in range(100):
        last, t = answering.step(DialogView(t, replace(A, selected=n % 2))), t + 0.1
        if isinstance(last, Failed):
            break
    assert last == Failed("The selection moves, but not to the chosen option.")


def test_a_person_who_types_before_is_waited_for() -> None:
    assert [type(step) for step in steps(ALLOW, DialogView(0, A, typed_s=0.1), DialogView(2, A, typed_s=2.1))] == [Wait, Press]
    taken = steps(ALLOW, DialogView(0, A, typed_s=0.1), DialogView(PATIENCE_S, A, typed_s=0.5))
    assert taken[1] == Failed("A person is at the terminal and decides.")
    assert isinstance(steps(ALLOW, DialogView(0, A, typed_s=30.0, is_reading_back=True))[0], Wait)
    assert isinstance(steps(ALLOW, DialogView(0, A, typed_s=90.0, is_reading_back=True))[0], Press)


def test_a_person_who_types_meanwhile_has_the_answer() -> None:
    taken = steps(DENY, DialogView(0, A, typed_s=5.0), DialogView(0.5, replace(A, selected=1), typed_s=0.1))
    assert [type(step) for step in taken] == [Press, Failed]


def test_after_enter_nothing_is_pressed_while_a_person_types() -> None:
    taken = steps(ALLOW, DialogView(0, A), DialogView(CLOSE_S, A, typed_s=1.0))
    assert taken == [Press(Key.ENTER), Failed("Enter was pressed, but the dialog is still open.")]


def test_two_enters_are_enough() -> None:
    moved = replace(A, selected=1)
    taken = steps(
        ALLOW,
        DialogView(0, A),
        DialogView(5, A),
        DialogView(5.1, moved),
        DialogView(5.2, A),
        DialogView(9, A),
        DialogView(10.3, A),
    )
    assert taken[:4] == [Press(Key.ENTER), Press(Key.DOWN), Press(Key.UP), Press(Key.ENTER)]
    assert taken[5] == Failed("Enter was pressed, but the dialog is still open.")


def test_the_same_question_asked_again_is_another_one() -> None:
    assert steps(ALLOW, DialogView(0, A), DialogView(0.2, replace(A, top=9)))[1] == Answered()


# --- dialogs that are typed into -------------------------------------------------------------------------------------------

ASKED = OpenDialog("permission", "Allow?", "", ("yes", "no"), None, "A", 5, look=WORD, words=("yes", "no"))


def test_a_word_is_typed_letter_by_letter_and_seen() -> None:
    seen = [DialogView(0.1 * n, replace(ASKED, typed="no"[:n])) for n in range(3)]
    assert steps(DENY, *seen, DialogView(1, None), DialogView(2, None))[:3] == [Type("n"), Type("o"), Press(Key.ENTER)]


def test_a_program_that_takes_the_letter_needs_no_enter() -> None:
    taken = steps(ALLOW, DialogView(0, ASKED), DialogView(0.1, None), DialogView(1, None))
    assert taken[0] == Type("y")
    assert taken[2] == Answered()


def test_the_letter_of_aider_and_the_number_of_a_list() -> None:
    letter = OpenDialog("permission", "Run?", "", ("Yes", "No", "Don't ask again"), None, "A", 0, words=("y", "n", "d"))
    assert DialogAnswer(PROFILES["aider"], "A", DENY).step(DialogView(0, letter)) == Type("n")
    number = OpenDialog("question", "Which?", "", ("Red", "Blue"), None, "A", 0, look=NUMBER, words=("1", "2"))
    assert DialogAnswer(GENERIC, "A", Decision(is_allowed=True, answer="blue")).step(DialogView(0, number)) == Type("2")


KILO = PROFILES["kilo"]
ASKS = """\
  ┃  △ Permission required
  ┃
  ┃  # Run the command
  ┃
  ┃  $ rm -rf build
  ┃
  ┃   Allow once   Allow always   Reject
"""
REASON = """\
     $ rm -rf build

  ┃
  ┃  △ Reject permission
  ┃
  ┃  Tell Kilo what to do differently
  ┃
  ┃                                                    enter confirm  esc cancel
"""


def seen_in(text: str) -> OpenDialog:
    found = find_dialog(KILO, screen_of_text(text).visible)
    assert found is not None
    return found


def refuse(decision: Decision = DENY) -> tuple[DialogAnswer, list[Step]]:
    """Up to what comes after Enter; the option is seen to be selected."""
    asked = seen_in(ASKS)
    answering = DialogAnswer(KILO, asked.digest, decision)
    last = asked.options.index("Allow once" if decision.is_allowed else "Reject")
    return answering, [answering.step(DialogView(0.0, replace(asked, selected=last)))]


def test_a_program_that_asks_for_the_reason_of_a_refusal_is_given_none() -> None:
    answering, steps = refuse()
    steps.append(answering.step(DialogView(0.1, seen_in(REASON))))
    assert steps == [Press(Key.ENTER), Press(Key.ENTER)]
    assert isinstance(answering.step(DialogView(0.2, seen_in(REASON))), Wait)  # the key is on its way
    assert isinstance(answering.step(DialogView(0.3, None)), Wait)
    assert answering.step(DialogView(0.3 + STEADY_S, None)) == Answered()


def test_a_question_for_the_reason_that_does_not_close_is_told_and_left() -> None:
    answering, _ = refuse()
    answering.step(DialogView(0.1, seen_in(REASON)))
    assert isinstance(answering.step(DialogView(0.1 + KEY_S, seen_in(REASON))), Failed)


def test_a_person_gives_the_reason_themselves() -> None:
    answering, _ = refuse()
    assert answering.step(DialogView(1.0, seen_in(REASON), typed_s=0.1)) == Answered()


COPILOT = """\
╭────────────────────────────────────────────────────────────╮
│ Run the command                                            │
│ ╭────────────────────────────────────────────────────────╮ │
│ │ rm -rf build                                           │ │
│ ╰────────────────────────────────────────────────────────╯ │
│ Do you want to run this command?                           │
│                                                            │
│ ❯ 1. Yes                                                   │
│   2. No, and tell Copilot what to do differently (Esc to stop) │
│                                                            │
│ ↑/↓ to navigate · enter to select · esc to cancel          │
╰────────────────────────────────────────────────────────────╯
"""


def test_where_the_option_that_refuses_wants_words_escape_refuses() -> None:
    profile = PROFILES["copilot"]
    asked = find_dialog(profile, screen_of_text(COPILOT).visible)
    assert asked is not None
    answering = DialogAnswer(profile, asked.digest, DENY)
    assert answering.step(DialogView(0.0, asked)) == Press(Key.ESCAPE)
    assert isinstance(answering.step(DialogView(1.0, asked)), Wait)
    assert answering.step(DialogView(CLOSE_S, asked)) == Failed("Escape was pressed, but the dialog is still open.")
    answering = DialogAnswer(profile, asked.digest, DENY)
    answering.step(DialogView(0.0, asked))
    answering.step(DialogView(0.1, None))
    assert answering.step(DialogView(0.1 + STEADY_S, None)) == Answered()
    assert DialogAnswer(profile, asked.digest, ALLOW).step(DialogView(0.0, asked)) == Press(Key.ENTER)


def test_after_a_permission_was_given_nothing_is_pressed_there() -> None:
    answering, steps = refuse(ALLOW)
    assert steps == [Press(Key.ENTER)]
    assert isinstance(answering.step(DialogView(0.1, seen_in(REASON))), Wait)
    assert answering.step(DialogView(0.1 + STEADY_S, seen_in(REASON))) == Answered()


def test_what_a_person_began_to_type_is_theirs() -> None:
    taken = steps(ALLOW, DialogView(0, replace(ASKED, typed="n")))
    assert taken == [Failed("'n' is already typed after the question: a person began to answer it.")]


def test_a_letter_that_does_not_arrive_ends_it() -> None:
    taken = steps(ALLOW, DialogView(0, ASKED), DialogView(1, ASKED), DialogView(KEY_S, ASKED))
    assert [type(step) for step in taken] == [Type, Wait, Failed]
    typed = [DialogView(n, replace(ASKED, typed="yes"[:n])) for n in range(4)]
    assert steps(ALLOW, *typed, replace(typed[-1], t=9))[-1] == Failed("Enter was pressed, but the dialog is still open.")


# --- the hands, on recorded screens ----------------------------------------------------------------------------------------


class Desk:
    """A recorded screen that moves as the CLI moves it. Everything that is pressed is kept in order."""

    def __init__(self, cli: str, text: str) -> None:
        self.profile = PROFILES[cli]
        self.text = text
        self.keys: list[str] = []
        self.at_key: Callable[[str], None] = self.move
        self.has_ended = False
        self.watcher = Watcher(self.profile)
        found = find_dialog(self.profile, self.screen().visible)
        assert found is not None
        self.dialog = found
        self.selected = found.selected or 0
        self.chosen: str | None = None
        self.answerer = ScreenAnswerer(cast("Terminal[Screen]", self), self.watcher, self.profile, self.read)

    def screen(self) -> Screen:
        screen = screen_of_text(self.text)
        if not (hasattr(self, "selected") and looks_of(self.profile)[self.dialog.look].is_selected_by_ink):
            return screen
        return replace(screen, lines=tuple(replace(line, ink_at=self.paint(line)) for line in screen.lines))

    def paint(self, line: Line) -> Callable[[int], Ink]:
        begin = line.text.find(self.dialog.options[self.selected])
        return lambda column: Ink("black", "orange") if column == begin >= 0 else Ink()

    async def read(self) -> None:
        if self.has_ended:
            raise TerminalEnded("It has ended.")
        self.watcher.saw(self.screen(), asyncio.get_running_loop().time())

    async def person(self) -> PersonSeen:
        return PersonSeen(is_attached=False)

    async def press(self, key: Key) -> None:
        self.keys.append(key.value)
        self.at_key(key.value)

    async def write(self, data: bytes) -> None:
        self.keys.append(data.decode())
        self.at_key(data.decode())

    def move(self, key: str) -> None:
        if key in {"Up", "Down", "Left", "Right"}:
            before = self.selected
            self.selected += 1 if key in {"Down", "Right"} else -1
            self.text = _moved(self.text, self.dialog.options, before, self.selected)
        elif key == "Enter":
            typed = self.text.rstrip()[-1]
            letters = {option[0].lower(): option for option in self.dialog.options}
            self.chosen = self.dialog.options[self.selected] if not self.is_typed else letters[typed]
            self.text = "It goes on.\n"
        else:
            self.text = f"{self.text.rstrip()} {key}"

    @property
    def is_typed(self) -> bool:
        return bool(looks_of(self.profile)[self.dialog.look].typed)

    def answer(self, decision: Decision, digest: str | None = None) -> None:
        async def run() -> None:
            async with asyncio.timeout(120):
                await self.answerer.answer(digest or self.dialog.digest, decision)

        asyncio.run(run())


def _moved(text: str, options: tuple[str, ...], before: int, after: int) -> str:
    """The pointer, where there is one, stands before another option."""
    rows = text.split("\n")
    patterns = [rf"(?:[●○]|\d+\.) +{re.escape(option)}(?: \(\w+\))?[ │]*$" for option in (options[before], options[after])]
    at = [max((index for index, row in enumerate(rows) if re.search(pattern, row)), default=0) for pattern in patterns]
    for mark, blank in (("❯", " "), ("›", " "), ("●", "○" if "○" in text else " ")):
        if mark in rows[at[0]]:
            column = rows[at[0]].index(mark)
            rows[at[0]] = rows[at[0]].replace(mark, blank, 1)
            rows[at[1]] = rows[at[1]][:column] + mark + rows[at[1]][column + 1 :]
            break
    return "\n".join(rows)


def _shown(recording: str) -> str:
    return dict(steps_of(recording))["prompt open"]


def _captured(name: str) -> str:
    return (SCREENS / name).read_text("utf-8")


GOOSE = """─── shell | developer ──────────────────────────
command: rm -rf build

◆  Goose would like to call the above tool, do you allow?
│  ● Allow
│  ○ Always Allow
│  ○ Deny
│  ○ Cancel
└
"""
DIALOGS = {
    "claude command": ("claude", _shown("claude/perm-h-enter"), "Yes", "No"),
    "claude file": ("claude", _shown("claude/perm-w-enter"), "Yes", "No"),
    "claude scrolling": ("claude", _captured("claude-noalt/tmux/08-h-prompt.txt"), "Yes", "No"),
    "codex": ("codex", _shown("codex/perm-h2-enter"), "Yes, proceed", "No, and tell Codex what to do differently"),
    "gemini command": ("gemini", _shown("gemini/perm-h-enter"), "Allow once", "No, suggest changes (esc)"),
    "gemini file": ("gemini", _captured("gemini/tmux/15-w-prompt.txt"), "Allow once", "No, suggest changes (esc)"),
    "opencode command": ("opencode", _shown("opencode/perm-h-enter"), "Allow once", "Reject"),
    "opencode file": ("opencode", _captured("opencode/tmux/15-w-prompt.txt"), "Allow once", "Reject"),
    "aider command": ("aider", _shown("aider/perm-aidersh-inject"), "Yes", "No"),
    "aider file": ("aider", _captured("aider/tmux/15-aidered-prompt.txt"), "Yes", "No"),
    "goose": ("goose", GOOSE, "Allow", "Deny"),
    "generic": ("generic", "  rm -rf build\nAllow this command to run? [y/n]", "y", "n"),
}
every_dialog = pytest.mark.parametrize(("cli", "text", "allow", "deny"), DIALOGS.values(), ids=list(DIALOGS))


@every_dialog
def test_every_recorded_dialog_is_allowed_and_denied(cli: str, text: str, allow: str, deny: str) -> None:
    for decision, option in ((ALLOW, allow), (DENY, deny)):
        desk = Desk(cli, text)
        desk.answer(decision)
        assert desk.chosen == option
        assert desk.keys[-1] == "Enter"
        assert desk.keys.count("Enter") == 1


@every_dialog
def test_nothing_is_pressed_in_a_dialog_that_was_not_asked_about(cli: str, text: str, allow: str, deny: str) -> None:
    desk = Desk(cli, text)
    with pytest.raises(NotOpen, match="no longer on the screen"):
        desk.answer(ALLOW, "0123456789abcdef")
    assert desk.keys == []


@pytest.mark.parametrize("name", [name for name, (cli, *_) in DIALOGS.items() if cli not in {"aider", "generic"}])
def test_a_dialog_that_changes_after_the_first_key_is_left(name: str) -> None:
    cli, text, *_ = DIALOGS[name]
    desk = Desk(cli, text)
    changed = text.replace("rm -rf build", "rm -rf /").replace("rm -r build", "rm -r /").replace("notes.txt", "secrets.txt")

    def change(key: str) -> None:
        desk.text = changed

    desk.at_key = change
    with pytest.raises(NotOpen):
        desk.answer(DENY)
    assert len(desk.keys) == 1
    assert "Enter" not in desk.keys


def test_a_question_is_answered_by_its_option() -> None:
    desk = Desk("claude", _captured("claude-noalt/tmux/12-q-prompt.txt"))
    desk.answer(Decision(is_allowed=True, answer="sqlite"))
    assert (desk.keys, desk.chosen) == (["Down", "Enter"], "SQLite")


def test_what_cannot_be_chosen_is_said_and_nothing_pressed() -> None:
    desk = Desk("claude", _captured("claude-noalt/tmux/12-q-prompt.txt"))
    with pytest.raises(DoorError, match="'MySQL' is not one of the options: `Postgres`"):
        desk.answer(Decision(is_allowed=True, answer="MySQL"))
    assert desk.keys == []


def test_a_dialog_that_does_not_close_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.1)
    desk = Desk("aider", _shown("aider/perm-aidersh-inject"))
    desk.at_key = lambda key: None if key == "Enter" else desk.move(key)
    with pytest.raises(DoorError, match="still open") as raised:
        desk.answer(ALLOW)
    assert not isinstance(raised.value, NotOpen)
    assert desk.keys == ["y", "Enter"]


def test_a_program_that_ended_asks_nothing() -> None:
    desk = Desk("goose", GOOSE)
    desk.has_ended = True
    with pytest.raises(NotOpen, match="has ended"):
        desk.answer(ALLOW)


def test_answers_take_turns_and_share_the_keyboard() -> None:
    desk = Desk("goose", GOOSE)
    keyboard = asyncio.Lock()
    held: list[bool] = []

    def look_and_move(key: str) -> None:
        held.append(keyboard.locked())
        desk.move(key)

    desk.at_key = look_and_move

    async def run() -> list[BaseException | None]:
        answerer = ScreenAnswerer(cast("Terminal[Screen]", desk), desk.watcher, desk.profile, desk.read, keyboard)
        answers = (answerer.answer(desk.dialog.digest, decision) for decision in (DENY, ALLOW))
        async with asyncio.timeout(120):
            return await asyncio.gather(*answers, return_exceptions=True)

    first, second = asyncio.run(run())
    assert first is None
    assert isinstance(second, NotOpen)
    assert (desk.keys, desk.chosen) == (["Down", "Down", "Enter"], "Deny")
    assert all(held)
    assert not keyboard.locked()
