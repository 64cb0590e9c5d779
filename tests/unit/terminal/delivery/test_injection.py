"""The injector against a simulated CLI, a person and dialogs at random moments; and every phase by hand, step by step, with what
it never does.

The simulation knows what really happened: whose words stand in the composer, what was handed in and by whom. The injector
sees what a screen would show.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from agent_relay.terminal.delivery.injection import Done, Failed, Injector, Paste, Press, Step, View, Wait
from agent_relay.terminal.profiles.profile import Profile, load_profiles
from agent_relay.terminal.screen.state import State

PROFILES = load_profiles()
TEXT = "Relay message from Alice [abc12345]: hello"
END_S = 900.0


class Act(Struct, frozen=True):
    """What happens in the world, `after_s` seconds after the one before it."""

    what: str  # type, enter, clear, dialog, answer, work
    after_s: float


class World:
    """One CLI with a composer. Keys take `lag_s` to arrive; so many pastes and Enters are lost on the way."""

    def __init__(self, profile: Profile, acts: list[Act], lag_s: float, lost_pastes: int, lost_enters: int) -> None:
        self.profile = profile
        self.lag_s = lag_s
        self.lost_pastes, self.lost_enters = lost_pastes, lost_enters
        self.t = 0.0
        self.composer: list[tuple[str, str]] = []  # (whose, words)
        self.handed_in: list[tuple[str, list[tuple[str, str]]]] = []  # (by whom, what)
        self.removed = 0  # times that our text was taken out of the composer, or never got there
        self.has_dialog = False
        self.busy_until = self.changed_t = self.state_t = -100.0
        self.typed_t: float | None = None
        self.queue: list[tuple[float, str]] = []
        moment = 0.0
        for act in acts:
            moment += act.after_s
            self.queue.append((moment, act.what))

    # --- what is seen --------------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return State.DIALOG if self.has_dialog else State.WORKING if self.t < self.busy_until else State.IDLE

    @property
    def words(self) -> str:
        return "".join(words for _, words in self.composer)

    def view(self) -> View:
        is_hidden = self.has_dialog or (self.state is State.WORKING and not self.profile.composer.is_shown_while_busy)
        return View(
            t=self.t,
            state=self.state,
            draft=None if is_hidden else self.words,
            idle_s=self.t - self.state_t,
            quiet_s=self.t - self.changed_t,
            cursor_row="" if is_hidden else f"> {self.words}",
            typed_s=None if self.typed_t is None else self.t - self.typed_t,
            is_busy=self.state is State.WORKING,
            is_echoed=any(words == TEXT for _, what in self.handed_in for _, words in what),
        )

    # --- what happens --------------------------------------------------------------------------------------------------

    def key(self, what: str) -> None:
        self.queue.append((self.t + self.lag_s, what))

    def advance(self, until: float) -> None:
        """To that moment, or to the first change before it."""
        moments = [moment for moment, _ in self.queue] + ([self.busy_until] if self.busy_until > self.t else [])
        to = max(self.t, min([until, *moments]))
        was = self.state
        self.t = to
        due = [item for item in self.queue if item[0] <= to]
        self.queue = [item for item in self.queue if item[0] > to]
        for _, what in sorted(due, key=lambda item: item[0]):
            self.changed_t = to
            self._happens(what)
        if self.state is not was:
            self.state_t = self.changed_t = to

    def _happens(self, what: str) -> None:
        match what:
            case "paste" if self.lost_pastes:
                self.lost_pastes -= 1
                self.removed += 1
            case "paste" if not self.has_dialog:
                self.composer.append(("ours", TEXT))
            case "our enter" if self.lost_enters:
                self.lost_enters -= 1
            case "our enter":
                self._hand_in("ours")
            case "type" | "enter" | "clear":
                self.typed_t = self.t
                if not self.has_dialog:
                    self._person(what)
            case "dialog":
                self.has_dialog = True
            case "answer" if self.has_dialog:
                self.typed_t = self.t
                self.has_dialog = False
            case "work" if self.profile.composer.is_shown_while_busy:  # by itself, as for a task in the background
                self.busy_until = self.t + 4.0

    def _person(self, what: str) -> None:
        if what == "type":
            self.composer.append(("person", "mine "))
        elif what == "enter":
            self._hand_in("person")
        else:
            self.removed += sum(whose == "ours" for whose, _ in self.composer)
            self.composer = []

    def _hand_in(self, by: str) -> None:
        takes = self.state is State.IDLE or (self.state is State.WORKING and self.profile.submit.when_busy == "queue")
        if self.composer and takes:
            if by == "person" and self.state is State.WORKING:
                self.removed += 1  # a busy agent that queues looks the same whether a person hands it in or deletes it
            self.handed_in.append((by, self.composer))
            self.composer = []
            self.busy_until = max(self.busy_until, self.t + 3.0)


def play(world: World) -> tuple[Step, list[str]]:
    """The last step, and every rule that was broken on the way."""
    injector = Injector(world.profile)
    broken: list[str] = []
    while True:
        view = world.view()
        step = injector.step(view)
        if isinstance(step, Paste | Press) and view.state is State.DIALOG:
            broken.append(f"{step} into a dialog at {world.t}")
        match step:
            case Paste():
                if world.composer and view.draft is not None:
                    broken.append(f"paste beside a draft at {world.t}")
                world.key("paste")
            case Press():
                if any(whose == "person" for whose, _ in world.composer) and view.draft is not None:
                    broken.append(f"Enter on a person's draft at {world.t}")
                world.key("our enter")
            case Wait(until, reason):
                assert reason
                assert until >= world.t - 1e-5
                if world.t >= END_S:
                    break
                world.advance(max(until, world.t + 0.001))
            case Done() | Failed():
                break
    times = sum(words == TEXT for _, what in world.handed_in for _, words in what)
    if times > 1 + world.removed:
        broken.append(f"handed in {times} times, removed {world.removed} times")
    if isinstance(step, Done) and not times and not world.removed:
        broken.append(f"{step}, and nothing was handed in")
    return step, broken


def scripts(*whats: str) -> st.SearchStrategy[list[Act]]:
    pauses = st.sampled_from([0.0, 0.05, 0.15, 0.3, 0.7, 1.2, 2.1, 4.0, 9.0])
    return st.lists(st.builds(Act, what=st.sampled_from(whats), after_s=pauses), max_size=8)


PERSON = ("type", "enter", "clear", "work")
DIALOGS = ("dialog", "answer", "work")
worlds = {
    "cli": st.sampled_from(sorted(PROFILES)),
    "lag_s": st.sampled_from([0.0, 0.05, 0.2]),
    "lost_pastes": st.sampled_from([0, 0, 0, 1]),
    "lost_enters": st.sampled_from([0, 0, 0, 1, 5]),
}


@given(script=scripts(*PERSON, *DIALOGS), **worlds)
@settings(max_examples=300, deadline=None)
def test_nothing_is_typed_into_a_dialog_or_beside_a_draft_and_who_waits_has_a_reason(
    script: list[Act], cli: str, lag_s: float, lost_pastes: int, lost_enters: int
) -> None:
    world = World(PROFILES[cli], script, lag_s, lost_pastes, lost_enters)
    step, broken = play(world)
    assert not [rule for rule in broken if "dialog" in rule or "beside" in rule]
    if isinstance(step, Wait):  # the reason is still there
        assert world.has_dialog or world.composer, step


@given(script=scripts(*PERSON, *DIALOGS), **worlds)
@settings(max_examples=300, deadline=None)
@example(cli="claude", script=[Act("type", 0.15)], lag_s=0.0, lost_pastes=0, lost_enters=0)
def test_enter_is_never_pressed_on_a_persons_words(
    script: list[Act], cli: str, lag_s: float, lost_pastes: int, lost_enters: int
) -> None:
    _, broken = play(World(PROFILES[cli], script, lag_s, lost_pastes, lost_enters))
    assert not [rule for rule in broken if "person" in rule]


@given(script=st.one_of(scripts(*PERSON), scripts(*DIALOGS)), **worlds)
@settings(max_examples=500, deadline=None)
@example(cli="claude", script=[Act("enter", 0.4)], lag_s=0.0, lost_pastes=0, lost_enters=0)
@example(cli="codex", script=[Act("dialog", 0.0), Act("answer", 0.05)], lag_s=0.0, lost_pastes=0, lost_enters=0)
def test_it_is_handed_in_once_and_what_is_said_of_it_is_true(
    script: list[Act], cli: str, lag_s: float, lost_pastes: int, lost_enters: int
) -> None:
    """A dialog and a person in the same two seconds can hide what became of the text; one of them cannot."""
    _, broken = play(World(PROFILES[cli], script, lag_s, lost_pastes, lost_enters))
    assert not broken


@given(cli=st.sampled_from(sorted(PROFILES)), lag_s=st.sampled_from([0.0, 0.1, 0.25]), lost_enters=st.integers(0, 3))
def test_left_alone_it_is_handed_in_once(cli: str, lag_s: float, lost_enters: int) -> None:
    world = World(PROFILES[cli], [], lag_s, 0, lost_enters)
    step, broken = play(world)
    assert isinstance(step, Done)
    assert not broken
    assert world.handed_in == [("ours", [("ours", TEXT)])]


# --- phase by phase -----------------------------------------------------------------------------------------------------


class Scene:
    """A clock and what is seen; `sees` makes one step."""

    def __init__(self, cli: str, **options: Any) -> None:
        self.t = 100.0
        self.injector = Injector(PROFILES[cli], **options)
        self.view: dict[str, Any] = {"state": State.IDLE, "draft": "", "cursor_row": "> "}

    def sees(self, after_s: float = 0.0, **changes: Any) -> Step:
        self.t += after_s
        self.view.update(changes)
        return self.injector.step(View(t=self.t, **self.view))


def reason(step: Step) -> str:
    assert isinstance(step, Wait), step
    return step.reason


@pytest.mark.parametrize("cli", sorted(PROFILES))
def test_a_dialog_is_waited_out_in_every_phase(cli: str) -> None:
    scene = Scene(cli)
    dialog: dict[str, Any] = {"state": State.DIALOG, "draft": None, "cursor_row": "❯ 1. Yes"}
    free: dict[str, Any] = {"state": State.IDLE, "draft": "", "cursor_row": "> "}
    filled: dict[str, Any] = {"state": State.IDLE, "draft": TEXT, "cursor_row": f"> {TEXT}"}
    assert reason(scene.sees(**dialog)) == "a dialog is open"
    assert scene.sees(60.0, **free) == Paste()
    assert reason(scene.sees(0.3, **dialog)) == "a dialog is open"
    assert isinstance(scene.sees(60.0, **filled), Press)
    assert reason(scene.sees(0.1, **dialog)) == "a dialog is open"
    assert reason(scene.sees(60.0)) == "a dialog is open"
    assert reason(scene.sees(0.1, **filled)) == "it was not seen to be taken yet"  # from the dialog's end it is waited anew
    scene.sees(0.1, **free)
    assert scene.sees(0.2) == Done("composer")


@pytest.mark.parametrize("cli", sorted(PROFILES))
def test_a_paste_shown_as_a_placeholder_is_as_good_as_its_words(cli: str) -> None:
    scene = Scene(cli)
    assert scene.sees() == Paste()
    assert isinstance(scene.sees(0.3, draft="[Pasted text #1 +40 lines]", cursor_row="> [Pasted text #1 +40 lines]"), Press)
    scene.sees(0.1, draft="", cursor_row="> ")
    assert scene.sees(0.2) == Done("composer")


def test_a_draft_that_is_this_very_text_is_handed_in_and_not_pasted_again() -> None:
    scene = Scene("claude", is_own=lambda draft: draft == TEXT)
    assert reason(scene.sees(draft="something else")) == "there is a half-written draft in the composer"
    assert reason(scene.sees(0.1, draft=TEXT)) == "the text is already in the composer"
    assert scene.injector.is_begun
    assert isinstance(scene.sees(0.1), Press)
    scene.sees(0.1, draft="")
    assert scene.sees(0.2) == Done("composer")


def test_a_text_of_our_own_is_left_while_a_person_is_at_it() -> None:
    scene = Scene("claude", is_own=lambda draft: TEXT in draft)
    assert reason(scene.sees(draft=TEXT, typed_s=1.0)) == "a person is typing"
    assert reason(scene.sees(5.0, state=State.DIALOG, draft=None, typed_s=6.0)) == "a dialog is open"
    assert not scene.injector.is_begun


def test_a_person_who_reads_back_is_disturbed_only_after_a_minute() -> None:
    scene = Scene("claude")
    assert "scrolled back" in reason(scene.sees(is_reading_back=True, typed_s=59.0))
    assert "scrolled back" in reason(scene.sees(typed_s=None))
    assert scene.sees(typed_s=60.0) == Paste()


@pytest.mark.parametrize(
    ("cli", "state", "key"),
    [
        (cli, state, PROFILES[cli].submit.busy_key if state is State.WORKING and PROFILES[cli].submit.busy_key else "\r")
        for cli in sorted(PROFILES)
        for state in (State.IDLE, State.WORKING)
    ],
)
def test_the_key_is_the_one_for_the_moment(cli: str, state: State, key: str) -> None:
    scene = Scene(cli)
    first = scene.sees(state=state)
    if state is State.WORKING and PROFILES[cli].submit.when_busy != "queue":
        assert reason(first) == "it is working"
        return
    assert first == Paste()
    assert scene.sees(0.3, draft=TEXT, cursor_row=f"> {TEXT}") == Press(key)


def test_enter_is_not_pressed_again_on_other_words_than_before() -> None:
    """Words that came there without a keyboard, as `tmux send-keys` brings them, count as nobody's typing."""
    scene = Scene("claude")
    assert scene.sees() == Paste()
    assert isinstance(scene.sees(0.3, draft=TEXT, cursor_row=f"> {TEXT}"), Press)
    for _ in range(20):
        seen = scene.sees(10.0, draft="half a thought", cursor_row="> half a thought")
        assert reason(seen) == "there is other text in the composer now"
    scene.sees(0.1, draft="", cursor_row="> ")
    assert isinstance(scene.sees(10.0), Done)


def test_a_composer_that_hides_is_waited_for_before_enter() -> None:
    scene = Scene("claude")
    assert scene.sees() == Paste()
    for _ in range(20):
        assert reason(scene.sees(0.5, draft=None, cursor_row="")) == "the composer is not visible"
    assert isinstance(scene.sees(0.5, draft=TEXT, cursor_row=f"> {TEXT}"), Press)


@pytest.mark.parametrize("row", ["$ ", "me@host:~/x$ ", "# ", "%", "root@box:/# "])
def test_no_shell_is_ever_given_a_text(row: str) -> None:
    for state in (State.IDLE, State.WORKING, State.STARTING):
        for draft in ("", None):
            scene = Scene("generic")
            assert isinstance(scene.sees(state=state, draft=draft, cursor_row=row, quiet_s=600.0), Wait)
            assert not scene.injector.is_begun


def test_a_pause_holds_back_only_what_was_not_begun() -> None:
    scene = Scene("claude")
    assert reason(scene.sees(is_paused=True)) == "paused"
    assert scene.sees(1.0, is_paused=False) == Paste()
    assert isinstance(scene.sees(0.3, is_paused=True, draft=TEXT, cursor_row="> x"), Press)  # half of it is no message


# --- one sight after another, under a clock of our own -----------------------------------------------------------------


class Sights:
    """A clock and what is seen; `sees` makes one step."""

    def __init__(self, cli: str = "generic", last_enter: float = float("-inf")) -> None:
        self.t = 100.0
        self.injector = Injector(PROFILES[cli], last_enter)
        self.view: dict[str, Any] = {"state": State.IDLE, "draft": "", "cursor_row": "> "}

    def sees(self, after_s: float = 0.0, **changes: Any) -> Step:
        self.t += after_s
        self.view.update(changes)
        return self.injector.step(View(t=self.t, **self.view))

    def pasted(self) -> Sights:
        assert self.sees() == Paste()
        return self

    def pressed(self) -> Sights:
        self.pasted()
        assert isinstance(self.sees(0.3, draft="Relay message", cursor_row="> Relay message"), Press)
        return self


def waits(step: Step, why: str) -> None:
    assert isinstance(step, Wait), step
    assert why in step.reason


@pytest.mark.parametrize("cli", sorted(PROFILES))
def test_the_usual_way(cli: str) -> None:
    scene = Sights(cli)
    assert scene.sees() == Paste()
    waits(scene.sees(0.1, draft="Relay", cursor_row="> Relay"), "taking in the paste")
    assert scene.sees(0.2) == Press("\r")
    waits(scene.sees(0.05), "not seen to be taken")
    waits(scene.sees(0.05, draft="", cursor_row="> "), "still changing")
    assert scene.sees(0.15) == Done("composer")


def test_the_session_file_is_proof_enough() -> None:
    assert Sights().pressed().sees(0.01, is_heard=True) == Done("transcript")
    waits(Sights().sees(is_heard=True, state=State.DIALOG), "dialog")  # before anything was typed it proves nothing


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        ({"state": State.DIALOG, "draft": None}, "dialog"),
        ({"state": State.WORKING}, "working"),
        ({"state": State.STARTING, "draft": None, "cursor_row": ""}, "prompt was not recognised"),
        ({"draft": "let me"}, "half-written draft"),
        ({"typed_s": 1.9}, "a person is typing"),
        ({"is_reading_back": True, "typed_s": 30.0}, "scrolled back"),
        ({"is_paused": True}, "paused"),
        ({"idle_s": 0.1}, "only just"),
        ({"cursor_row": "me@host:~$ "}, "shell"),
        ({"cursor_row": "$ "}, "shell"),
        ({"cursor_row": "% ", "state": State.WORKING, "draft": None, "quiet_s": 9.0}, "shell"),
        ({"danger": "bash is in the foreground"}, "bash"),
        ({"doubt": "it seems to ask for permission"}, "permission"),
        ({"is_full_screen": True}, "full-screen program"),
        ({"state": State.WORKING, "draft": None, "cursor_row": "You:", "quiet_s": 600.0}, "prompt was not recognised"),
        ({"state": State.WORKING, "draft": None, "is_reading": True, "collects_lines": True, "is_busy": True}, "working"),
    ],
)
def test_what_it_waits_for(seen: dict[str, Any], why: str) -> None:
    scene = Sights()
    waits(scene.sees(**seen), why)
    assert not scene.injector.is_begun


LINE: dict[str, Any] = {"state": State.WORKING, "draft": None, "is_reading": True, "collects_lines": True}


def test_an_unknown_program_is_given_a_line_when_it_is_seen_to_wait_for_one() -> None:
    scene = Sights()
    waits(scene.sees(**LINE, cursor_row="You:", quiet_s=0.1), "only just now")
    waits(scene.sees(0.1, quiet_s=0.2), "only just now")
    assert scene.sees(0.1, quiet_s=0.3) == Paste()
    scene = Sights()
    waits(scene.sees(**LINE, cursor_row="", quiet_s=2.0), "only just now")
    assert scene.sees(0.2) == Paste()
    for row in ("Password:", "Delete everything?", "Continue [y/N]", "--More--", "Press any key"):
        waits(Sights().sees(**LINE, cursor_row=row, quiet_s=60.0), "something other than a message")
    for missing in ("is_reading", "collects_lines"):
        waits(Sights().sees(**{**LINE, missing: False}, cursor_row="You:", quiet_s=600.0), "prompt was not recognised")
    waits(Sights("claude").sees(**LINE, cursor_row="You:", quiet_s=60.0), "working")


def test_a_question_that_was_written_between_two_looks_is_not_answered() -> None:
    scene = Sights()
    waits(scene.sees(**{**LINE, "is_reading": False}, cursor_row="", quiet_s=9.0), "not recognised")  # it is starting
    waits(scene.sees(1.0, **LINE), "only just now")  # it asks and reads, after the screen was read
    waits(scene.sees(0.2, cursor_row="Delete it?"), "something other than a message")
    assert not scene.injector.is_begun


def test_a_line_has_to_be_waited_for_all_the_time_and_behind_the_same_words() -> None:
    scene = Sights()
    waits(scene.sees(**LINE, cursor_row=""), "only just now")
    waits(scene.sees(0.1, is_reading=False), "not recognised")
    waits(scene.sees(0.1, is_reading=True), "only just now")
    waits(scene.sees(0.2, cursor_row="You:"), "only just now")
    assert scene.sees(0.2) == Paste()


def waiting_for_line() -> Sights:
    scene = Sights()
    scene.sees(**LINE, cursor_row="You:", unread=0)
    assert scene.sees(0.2) == Paste()
    return scene


def test_a_line_is_taken_when_the_program_has_read_it() -> None:
    scene = waiting_for_line()
    assert scene.sees(0.3, cursor_row="You: Relay message") == Press("\r")
    waits(scene.sees(0.1), "not seen")  # the Enter has not arrived yet
    waits(scene.sees(0.1, cursor_row="", unread=20), "not seen")
    for _ in range(50):
        waits(scene.sees(5.0), "does not read")  # nothing is proved, and no second Enter follows
    scene = waiting_for_line()
    scene.sees(0.3, cursor_row="You: Relay message")
    waits(scene.sees(0.1, cursor_row="", unread=0, is_reading=False), "still changing")
    assert scene.sees(0.2) == Done("waiting for input")


def test_a_line_is_handed_in_when_it_is_shown_however_late_that_is() -> None:
    """On a busy machine the terminal may show a line long after it was typed. Enter before that was pressed on an empty row, the
    empty row after it looked the same, and the program got empty lines and the text once more."""
    scene = Sights()
    scene.sees(**LINE, cursor_row="", unread=0)
    assert scene.sees(0.2) == Paste()
    for _ in range(10):
        waits(scene.sees(0.3), "not visible yet")
    assert scene.sees(0.3, cursor_row="Relay message") == Press("\r")
    waits(scene.sees(0.1, cursor_row=""), "still changing")
    assert scene.sees(0.2) == Done("waiting for input")


@pytest.mark.parametrize("forbidden", [{"danger": "bash is in the foreground"}, {"doubt": "it asks"}, {"is_full_screen": True}])
def test_between_paste_and_enter_it_looks_again_who_reads(forbidden: dict[str, Any]) -> None:
    scene = Sights().pasted()
    for _ in range(20):
        step = scene.sees(5.0, draft="Relay message", cursor_row="> Relay message", **forbidden)
        assert isinstance(step, Wait)
        assert step.is_stuck
    pressed = Sights().pressed()
    for _ in range(20):
        assert isinstance(pressed.sees(5.0, **forbidden), Wait)  # no second Enter either


def test_what_may_never_end_by_itself_is_told_apart() -> None:
    for seen, is_stuck in (
        ({"danger": "x"}, True), ({"doubt": "x"}, True), ({"state": State.STARTING, "draft": None}, True),
        ({"state": State.DIALOG}, False), ({"typed_s": 0.0}, False), ({"state": State.WORKING, "is_busy": True}, False),
    ):  # fmt: skip
        step = Sights().sees(**seen)  # type: ignore[arg-type]
        assert isinstance(step, Wait)
        assert step.is_stuck is is_stuck


def test_a_cli_that_queues_is_given_text_while_it_works() -> None:
    assert Sights("claude").sees(state=State.WORKING) == Paste()
    scene = Sights("codex")
    assert scene.sees(state=State.WORKING) == Paste()
    assert scene.sees(0.3, draft="Relay") == Press("\t")  # Enter would abort its answer
    assert isinstance(Sights("codex").sees(state=State.WORKING, draft=None), Wait)


def test_the_next_text_waits_until_the_last_one_has_had_its_effect() -> None:
    waits(Sights(last_enter=99.0).sees(idle_s=50.0), "taken only just now")
    assert Sights(last_enter=99.0).sees(idle_s=0.3) == Paste()  # it worked, and is idle again
    assert Sights(last_enter=98.4).sees(idle_s=50.0) == Paste()


# --- between paste and Enter ------------------------------------------------------------------------------------------


def test_a_dialog_that_opens_after_the_paste_gets_no_enter() -> None:
    scene = Sights().pasted()
    waits(scene.sees(0.3, state=State.DIALOG, draft=None, cursor_row="❯ 1. Yes"), "dialog")
    waits(scene.sees(600.0), "dialog")
    assert scene.sees(1.0, state=State.IDLE, draft="Relay message", cursor_row="> Relay message") == Press("\r")


def test_a_person_who_goes_on_writing_where_the_text_stands_keeps_it() -> None:
    scene = Sights().pasted()
    waits(scene.sees(0.2, draft="Relay", typed_s=5.0), "paste")
    waits(scene.sees(0.2, typed_s=0.1), "a person is typing")
    scene.view["draft"] = "Relay and mine"
    waits(scene.sees(60.0, typed_s=50.0), "is editing")
    waits(scene.sees(600.0, typed_s=650.0), "is editing")


def test_a_text_somebody_removed_comes_again_and_not_for_ever() -> None:
    scene = Sights()
    for _ in range(3):
        assert scene.sees() == Paste()
        assert isinstance(scene.sees(0.3, draft="Relay", cursor_row="> Relay", typed_s=0.01), Wait)
        waits(scene.sees(0.1, draft="", cursor_row="> "), "emptied")
        waits(scene.sees(2.0), "emptied")
        scene.view["typed_s"] = 10.0
    assert isinstance(scene.sees(), Failed)


def test_a_paste_that_is_shown_late_is_waited_for() -> None:
    scene = Sights().pasted()
    waits(scene.sees(0.5), "not visible yet")
    assert scene.sees(1.0, draft="Relay", cursor_row="> Relay") == Press("\r")


def test_a_program_that_shows_nothing_gets_no_enter_and_no_second_paste() -> None:
    scene = Sights().pasted()
    for _ in range(19):
        waits(scene.sees(0.5), "not visible yet")
    failed = scene.sees(0.5)
    assert isinstance(failed, Failed)
    assert "no sign" in failed.reason


# --- after Enter ------------------------------------------------------------------------------------------------------


def test_enter_is_pressed_again_while_the_text_stands_there_and_pasted_never_again() -> None:
    scene = Sights().pressed()
    steps = [scene.sees(0.5) for _ in range(60)]
    assert [step for step in steps if not isinstance(step, Wait)][:4] == [
        *[Press("\r")] * 3,
        Failed("The text is still in the composer after Enter was pressed 4 times."),
    ]


def test_a_dialog_after_enter_is_waited_out_without_a_key() -> None:
    scene = Sights().pressed()
    for _ in range(100):
        waits(scene.sees(5.0, state=State.DIALOG, draft=None, cursor_row=""), "dialog")
    waits(scene.sees(0.1, state=State.IDLE, draft="", cursor_row="> "), "still changing")
    assert scene.sees(0.2) == Done("composer")


def test_a_screen_half_drawn_is_no_proof() -> None:
    scene = Sights().pressed()
    waits(scene.sees(0.05, draft="", cursor_row=""), "still changing")
    waits(scene.sees(0.05, draft="Relay message", cursor_row="> Relay message"), "not seen")
    waits(scene.sees(0.2), "not seen")


def test_that_a_program_is_busy_proves_nothing() -> None:
    for cli in ("generic", "aider", "claude"):
        scene = Sights(cli).pressed()
        for _ in range(100):
            assert isinstance(scene.sees(3.0, state=State.WORKING, is_busy=True, draft=None, cursor_row=""), Wait)


def test_a_composer_that_is_gone_proves_something_only_where_work_hides_it_and_the_text_stands_above() -> None:
    scene = Sights("aider").pressed()
    scene.sees(0.1, state=State.WORKING, draft=None, cursor_row="", is_echoed=True)
    assert scene.sees(0.2) == Done("screen")
    scene = Sights("claude").pressed()
    scene.sees(0.1, state=State.WORKING, draft=None, cursor_row="", is_echoed=True)
    waits(scene.sees(0.2), "not seen")


def test_several_lines_hide_the_composer_of_an_unknown_program_and_the_cursor_stands_behind_them() -> None:
    scene = Sights().pasted()
    waits(scene.sees(0.3, state=State.WORKING, draft=None, cursor_row="  last line"), "composer is not visible")
    assert scene.sees(0.3, is_at_own=True) == Press("\r")
    waits(scene.sees(0.5), "not seen")
    waits(scene.sees(0.1, cursor_row="› ", draft="", is_at_own=False), "still changing")
    assert scene.sees(0.2) == Done("composer")


views = st.fixed_dictionaries(
    {
        "state": st.sampled_from(State),
        "draft": st.sampled_from([None, "", "text", "other"]),
        "cursor_row": st.sampled_from(["", "> ", "> text", "$ ", "Password:"]),
        "idle_s": st.sampled_from([0.0, 0.1, 5.0]),
        "quiet_s": st.sampled_from([0.0, 1.0, 5.0]),
        "typed_s": st.sampled_from([None, 0.0, 1.0, 100.0]),
        "is_paused": st.booleans(),
        "danger": st.sampled_from(["", "", "", "bash"]),
        "doubt": st.sampled_from(["", "", "", "it asks"]),
        "is_full_screen": st.sampled_from([False, False, True]),
        "collects_lines": st.booleans(),
        "is_reading": st.booleans(),
        "is_echoed": st.booleans(),
        "is_at_own": st.booleans(),
        "unread": st.sampled_from([None, 0, 5]),
        "is_heard": st.sampled_from([False, False, False, True]),
    }
)


@given(
    cli=st.sampled_from(sorted(PROFILES)), seen=st.lists(st.tuples(views, st.sampled_from([0.05, 0.3, 2.0, 30.0])), max_size=60)
)
def test_whatever_is_seen_nothing_is_typed_into_a_dialog_or_beside_a_person(cli: str, seen: list[tuple[Any, float]]) -> None:
    injector, t, is_pasted = Injector(PROFILES[cli]), 0.0, False
    for view, pause_s in seen:
        t += pause_s
        step = injector.step(View(t=t, **view))
        if isinstance(step, Paste | Press):
            assert view["state"] is not State.DIALOG
            assert not view["danger"]
            assert cli != "generic" or not (view["doubt"] or view["is_full_screen"])
        if isinstance(step, Paste):
            assert view["draft"] == "" or (cli == "generic" and view["is_reading"] and view["collects_lines"])
            assert not view["draft"]
            assert not view["is_paused"]
            assert view["typed_s"] is None or view["typed_s"] >= 2.0
        if isinstance(step, Press):
            assert is_pasted
        if isinstance(step, Done):
            assert is_pasted
        is_pasted = is_pasted or isinstance(step, Paste)
        if isinstance(step, Done | Failed):
            break


def test_that_a_prompt_will_not_come_is_known_of_a_quiet_unknown_program_that_waits_for_keys() -> None:
    keys = {"state": State.STARTING, "draft": None, "is_reading": True, "collects_lines": False}
    for name, seen, is_sure in (
        ("generic", {"quiet_s": 2.0}, True), ("generic", {"quiet_s": 0.1}, False),
        ("generic", {"quiet_s": 2.0, "is_reading": False}, False), ("claude", {"quiet_s": 2.0}, False),
    ):  # fmt: skip
        step = Sights(name).sees(**{**keys, **seen})  # type: ignore[arg-type]
        assert isinstance(step, Wait)
        assert (step.is_stuck, step.is_sure) == (True, is_sure)


def test_a_bare_dollar_is_a_prompt_of_a_program_that_waits_for_a_line() -> None:
    assert Sights().sees(draft="", cursor_row="$", is_reading=True, collects_lines=True) == Paste()
    waits(Sights().sees(draft="", cursor_row="$"), "shell")
    waits(Sights().sees(draft="", cursor_row="root@host:~#", is_reading=True, collects_lines=True), "shell")
