"""The injector under a clock of our own: what it does at each sight, and what it never does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.delivery.injection import Done, Failed, Injector, Paste, Press, Step, View, Wait
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.screen.state import State

PROFILES = load_profiles()


class Scene:
    """A clock and what is seen; `sees` makes one step."""

    def __init__(self, cli: str = "generic", last_enter: float = float("-inf")) -> None:
        self.t = 100.0
        self.injector = Injector(PROFILES[cli], last_enter)
        self.view: dict[str, Any] = {"state": State.IDLE, "draft": "", "cursor_row": "> "}

    def sees(self, after_s: float = 0.0, **changes: Any) -> Step:
        self.t += after_s
        self.view.update(changes)
        return self.injector.step(View(t=self.t, **self.view))

    def pasted(self) -> Scene:
        assert self.sees() == Paste()
        return self

    def pressed(self) -> Scene:
        self.pasted()
        assert isinstance(self.sees(0.3, draft="Relay message", cursor_row="> Relay message"), Press)
        return self


def waits(step: Step, why: str) -> None:
    assert isinstance(step, Wait), step
    assert why in step.reason


@pytest.mark.parametrize("cli", sorted(PROFILES))
def test_the_usual_way(cli: str) -> None:
    scene = Scene(cli)
    assert scene.sees() == Paste()
    waits(scene.sees(0.1, draft="Relay", cursor_row="> Relay"), "taking in the paste")
    assert scene.sees(0.2) == Press("\r")
    waits(scene.sees(0.05), "not seen to be taken")
    waits(scene.sees(0.05, draft="", cursor_row="> "), "still changing")
    assert scene.sees(0.15) == Done("composer")


def test_the_session_file_is_proof_enough() -> None:
    assert Scene().pressed().sees(0.01, is_heard=True) == Done("transcript")
    waits(Scene().sees(is_heard=True, state=State.DIALOG), "dialog")  # before anything was typed it proves nothing


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
    scene = Scene()
    waits(scene.sees(**seen), why)
    assert not scene.injector.is_begun


LINE: dict[str, Any] = {"state": State.WORKING, "draft": None, "is_reading": True, "collects_lines": True}


def test_an_unknown_program_is_given_a_line_when_it_is_seen_to_wait_for_one() -> None:
    scene = Scene()
    waits(scene.sees(**LINE, cursor_row="You:", quiet_s=0.1), "only just now")
    assert scene.sees(quiet_s=0.2) == Paste()
    assert Scene().sees(**LINE, cursor_row="", quiet_s=2.0) == Paste()
    for row in ("Password:", "Delete everything?", "Continue [y/N]", "--More--", "Press any key"):
        waits(Scene().sees(**LINE, cursor_row=row, quiet_s=60.0), "something other than a message")
    for missing in ("is_reading", "collects_lines"):
        waits(Scene().sees(**{**LINE, missing: False}, cursor_row="You:", quiet_s=600.0), "prompt was not recognised")
    waits(Scene("claude").sees(**LINE, cursor_row="You:", quiet_s=60.0), "working")


def test_a_line_is_taken_when_the_program_has_read_it() -> None:
    scene = Scene()
    assert scene.sees(**LINE, cursor_row="You:", unread=0) == Paste()
    assert scene.sees(0.3, cursor_row="You: Relay message") == Press("\r")
    waits(scene.sees(0.1), "not seen")  # the Enter has not arrived yet
    waits(scene.sees(0.1, cursor_row="", unread=20), "not seen")
    for _ in range(50):
        waits(scene.sees(5.0), "does not read")  # nothing is proved, and no second Enter follows
    scene = Scene()
    scene.sees(**LINE, cursor_row="You:", unread=0)
    scene.sees(0.3, cursor_row="You: Relay message")
    waits(scene.sees(0.1, cursor_row="", unread=0, is_reading=False), "still changing")
    assert scene.sees(0.2) == Done("waiting for input")


@pytest.mark.parametrize("forbidden", [{"danger": "bash is in the foreground"}, {"doubt": "it asks"}, {"is_full_screen": True}])
def test_between_paste_and_enter_it_looks_again_who_reads(forbidden: dict[str, Any]) -> None:
    scene = Scene().pasted()
    for _ in range(20):
        step = scene.sees(5.0, draft="Relay message", cursor_row="> Relay message", **forbidden)
        assert isinstance(step, Wait)
        assert step.is_stuck
    pressed = Scene().pressed()
    for _ in range(20):
        assert isinstance(pressed.sees(5.0, **forbidden), Wait)  # no second Enter either


def test_what_may_never_end_by_itself_is_told_apart() -> None:
    for seen, is_stuck in (
        ({"danger": "x"}, True), ({"doubt": "x"}, True), ({"state": State.STARTING, "draft": None}, True),
        ({"state": State.DIALOG}, False), ({"typed_s": 0.0}, False), ({"state": State.WORKING, "is_busy": True}, False),
    ):  # fmt: skip
        step = Scene().sees(**seen)  # type: ignore[arg-type]
        assert isinstance(step, Wait)
        assert step.is_stuck is is_stuck


def test_a_cli_that_queues_is_given_text_while_it_works() -> None:
    assert Scene("claude").sees(state=State.WORKING) == Paste()
    scene = Scene("codex")
    assert scene.sees(state=State.WORKING) == Paste()
    assert scene.sees(0.3, draft="Relay") == Press("\t")  # Enter would abort its answer
    assert isinstance(Scene("codex").sees(state=State.WORKING, draft=None), Wait)


def test_the_next_text_waits_until_the_last_one_has_had_its_effect() -> None:
    waits(Scene(last_enter=99.0).sees(idle_s=50.0), "taken only just now")
    assert Scene(last_enter=99.0).sees(idle_s=0.3) == Paste()  # it worked, and is idle again
    assert Scene(last_enter=98.4).sees(idle_s=50.0) == Paste()


# --- between paste and Enter ------------------------------------------------------------------------------------------


def test_a_dialog_that_opens_after_the_paste_gets_no_enter() -> None:
    scene = Scene().pasted()
    waits(scene.sees(0.3, state=State.DIALOG, draft=None, cursor_row="❯ 1. Yes"), "dialog")
    waits(scene.sees(600.0), "dialog")
    assert scene.sees(1.0, state=State.IDLE, draft="Relay message", cursor_row="> Relay message") == Press("\r")


def test_a_person_who_goes_on_writing_where_the_text_stands_keeps_it() -> None:
    scene = Scene().pasted()
    waits(scene.sees(0.2, draft="Relay", typed_s=5.0), "paste")
    waits(scene.sees(0.2, typed_s=0.1), "a person is typing")
    scene.view["draft"] = "Relay and mine"
    waits(scene.sees(60.0, typed_s=50.0), "is editing")
    waits(scene.sees(600.0, typed_s=650.0), "is editing")


def test_a_text_somebody_removed_comes_again_and_not_for_ever() -> None:
    scene = Scene()
    for _ in range(3):
        assert scene.sees() == Paste()
        assert isinstance(scene.sees(0.3, draft="Relay", cursor_row="> Relay", typed_s=0.01), Wait)
        waits(scene.sees(0.1, draft="", cursor_row="> "), "emptied")
        waits(scene.sees(2.0), "emptied")
        scene.view["typed_s"] = 10.0
    assert isinstance(scene.sees(), Failed)


def test_a_paste_that_is_shown_late_is_waited_for() -> None:
    scene = Scene().pasted()
    waits(scene.sees(0.5), "not visible yet")
    assert scene.sees(1.0, draft="Relay", cursor_row="> Relay") == Press("\r")


def test_a_program_that_shows_nothing_gets_no_enter_and_no_second_paste() -> None:
    scene = Scene().pasted()
    for _ in range(19):
        waits(scene.sees(0.5), "not visible yet")
    failed = scene.sees(0.5)
    assert isinstance(failed, Failed)
    assert "no sign" in failed.reason


# --- after Enter ------------------------------------------------------------------------------------------------------


def test_enter_is_pressed_again_while_the_text_stands_there_and_pasted_never_again() -> None:
    scene = Scene().pressed()
    steps = [scene.sees(0.5) for _ in range(60)]
    assert [step for step in steps if not isinstance(step, Wait)][:4] == [
        *[Press("\r")] * 3,
        Failed("The text is still in the composer after Enter was pressed 4 times."),
    ]


def test_a_dialog_after_enter_is_waited_out_without_a_key() -> None:
    scene = Scene().pressed()
    for _ in range(100):
        waits(scene.sees(5.0, state=State.DIALOG, draft=None, cursor_row=""), "dialog")
    waits(scene.sees(0.1, state=State.IDLE, draft="", cursor_row="> "), "still changing")
    assert scene.sees(0.2) == Done("composer")


def test_a_screen_half_drawn_is_no_proof() -> None:
    scene = Scene().pressed()
    waits(scene.sees(0.05, draft="", cursor_row=""), "still changing")
    waits(scene.sees(0.05, draft="Relay message", cursor_row="> Relay message"), "not seen")
    waits(scene.sees(0.2), "not seen")


def test_that_a_program_is_busy_proves_nothing() -> None:
    for cli in ("generic", "aider", "claude"):
        scene = Scene(cli).pressed()
        for _ in range(100):
            assert isinstance(scene.sees(3.0, state=State.WORKING, is_busy=True, draft=None, cursor_row=""), Wait)


def test_a_composer_that_is_gone_proves_something_only_where_work_hides_it_and_the_text_stands_above() -> None:
    scene = Scene("aider").pressed()
    scene.sees(0.1, state=State.WORKING, draft=None, cursor_row="", is_echoed=True)
    assert scene.sees(0.2) == Done("screen")
    scene = Scene("claude").pressed()
    scene.sees(0.1, state=State.WORKING, draft=None, cursor_row="", is_echoed=True)
    waits(scene.sees(0.2), "not seen")


def test_several_lines_hide_the_composer_of_an_unknown_program_and_the_cursor_stands_behind_them() -> None:
    scene = Scene().pasted()
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
        step = Scene(name).sees(**{**keys, **seen})  # type: ignore[arg-type]
        assert isinstance(step, Wait)
        assert (step.is_stuck, step.is_sure) == (True, is_sure)


def test_a_bare_dollar_is_a_prompt_of_a_program_that_waits_for_a_line() -> None:
    assert Scene().sees(draft="", cursor_row="$", is_reading=True, collects_lines=True) == Paste()
    waits(Scene().sees(draft="", cursor_row="$"), "shell")
    waits(Scene().sees(draft="", cursor_row="root@host:~#", is_reading=True, collects_lines=True), "shell")
