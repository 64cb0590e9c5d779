"""The state at every step of every recording, as the screen alone tells it: no title, no cursor, no time."""

from __future__ import annotations

import pytest

from agent_relay.terminal.profiles.profile import load_profiles, profile_for
from agent_relay.terminal.screen.contents import Cursor, Screen, screen_of_text
from agent_relay.terminal.screen.state import State, look
from tests.unit.terminal.recorded_screens import captures_of, profile_of, recordings, steps_of

ROWS = 40
STEPS = {
    "start": State.IDLE,
    "ad": State.DIALOG,
    "busy +0.7s": State.WORKING,
    "idle after answer": State.IDLE,
    "typed injection": State.IDLE,
    "idle after injection": State.IDLE,
    "busy streaming": State.WORKING,
    "text typed while busy": State.WORKING,
    "Enter sent while busy": State.WORKING,
    "after": State.IDLE,
    "prompt open": State.DIALOG,
    "text sent, no Enter yet": State.DIALOG,
    "after enter": State.IDLE,
    "after inject": State.IDLE,
    "after esc": State.IDLE,
}
# Where a step shows something else than its name says, and why.
EXCEPTIONS = {
    # Without a cursor a row that was submitted looks like a draft: both count as working, so that nobody types.
    **{f"aider/{case}:typed injection": State.WORKING for case in ("a", "b", "b2", "c", "d", "e", "f")},
    # opencode had not taken the prompt yet: it still stood in the composer, or nothing was drawn.
    **{f"opencode/{case}:busy +0.7s": State.IDLE for case in ("a", "b2", "c", "d", "e", "f")},
    # It asks again, because the text was no answer.
    "aider/perm-aidersh-inject:after inject": State.DIALOG,
    # The letter y in the text approved it; the Escape of the paste cancelled it.
    "codex/perm-h2-inject:text sent, no Enter yet": State.WORKING,
    "gemini/perm-h-inject:text sent, no Enter yet": State.IDLE,
    # Auto mode asks nothing.
    "claude-auto/perm-h-esc:prompt open": State.IDLE,
    "claude-auto/perm-ls-esc:prompt open": State.IDLE,
}
ONBOARDING = {
    "claude/onboarding-apikey": State.DIALOG,
    "claude/onboarding-fresh": State.STARTING,
    "claude/onboarding-trust": State.DIALOG,
    "codex/onboarding-fresh": State.DIALOG,
    "codex/onboarding-git-trust": State.IDLE,
    "gemini/onboarding-fresh": State.DIALOG,
    "gemini/onboarding-trust": State.DIALOG,
}


def seen(recording: str, text: str, before: State = State.IDLE) -> State:
    return look(profile_of(recording), screen_of_text(text), before).state


@pytest.mark.parametrize(
    "recording", [name for name in recordings() if "onboarding" not in name and not name.startswith(("goose", "generic"))]
)
def test_every_step_of_every_recording(recording: str) -> None:
    wrong = {}
    steps = steps_of(recording)
    for name, text in steps:
        expected = EXCEPTIONS.get(f"{recording}:{name}", STEPS[name])
        if seen(recording, text) is not expected:
            wrong[name] = (seen(recording, text), expected)
    assert wrong == {}
    assert len(steps) > 1


def test_every_exception_is_one() -> None:
    for place, state in EXCEPTIONS.items():
        recording, _, name = place.partition(":")
        assert name in dict(steps_of(recording)), place
        assert STEPS[name] is not state, place


@pytest.mark.parametrize(("recording", "state"), ONBOARDING.items())
def test_first_starts(recording: str, state: State) -> None:
    ((_, text),) = steps_of(recording)
    assert seen(recording, text, State.STARTING) is state


@pytest.mark.parametrize("variant", ["aider", "claude", "claude-noalt", "codex", "codex-noalt", "gemini", "opencode"])
def test_every_capture_of_tmux(variant: str) -> None:
    wrong = {}
    captures = captures_of(variant)
    for file in captures:
        text = "\n".join(file.read_text("utf-8").rstrip("\n").split("\n")[-ROWS:])
        expected = State.WORKING if file.name.endswith(".busy.txt") else State.DIALOG if "-prompt" in file.name else State.IDLE
        if variant == "codex-noalt" and expected is State.DIALOG:
            expected = State.IDLE  # it was started so that it asks nothing
        if seen(variant, text) is not expected:
            wrong[file.name] = seen(variant, text)
    assert wrong == {}
    assert len(captures) > 8


# --- what else tells -------------------------------------------------------------------------------------------------

CODEX_STREAMING = "› case:slow please\n\n• tick0 tick1\n\n\n› Ask Codex to do anything\n\n  gpt-5-codex default\n"


@pytest.mark.parametrize(
    ("title", "state", "is_certain"),
    [(None, State.WORKING, False), ("⠧ proj", State.WORKING, True), ("proj", State.IDLE, True)],
)
def test_the_title_decides_where_the_screen_cannot(title: str | None, state: State, is_certain: bool) -> None:
    sight = look(profile_for("codex"), screen_of_text(CODEX_STREAMING, title=title), State.IDLE)
    assert (sight.state, sight.is_certain) == (state, is_certain)


def test_a_title_that_asks_is_a_veto_even_if_the_dialog_cannot_be_read() -> None:
    text = " > case:h please\n\n╭───╮\n│ a new kind of dialog │\n╰───╯\n"
    assert (
        look(profile_for("gemini"), screen_of_text(text, title="✋  Action Required (proj)"), State.WORKING).state is State.DIALOG
    )


@pytest.mark.parametrize("name", ["review", "list", "one", "trusted"])
@pytest.mark.parametrize("before", list(State))
def test_codex_that_asks_about_hooks_is_not_idle_and_its_choice_is_no_draft(name: str, before: State) -> None:
    sight = look(profile_for("codex"), screen_of_text(dict(steps_of("codex/hooks"))[name], title="vm"), before)
    assert (sight.state, sight.composer) == (State.DIALOG, None)


def aider_screen(cursor_row: int) -> Screen:
    return screen_of_text("Aider v0.86.2\n\ndiff> half a thought\n", cursor=Cursor(cursor_row, 20))


def test_the_cursor_tells_a_draft_from_what_was_submitted() -> None:
    sight = look(profile_for("aider"), aider_screen(2), State.IDLE)
    assert sight.state is State.IDLE
    assert sight.composer is not None
    assert sight.composer.draft == "half a thought"
    assert look(profile_for("aider"), aider_screen(3), State.IDLE).state is State.WORKING


def test_drafts_are_told_from_hints() -> None:
    drafts = {}
    for name in ("claude", "codex", "gemini", "opencode"):
        for step, text in steps_of(f"{name}/a"):
            sight = look(profile_for(name), screen_of_text(text), State.IDLE)
            drafts[name, step] = sight.composer.draft if sight.composer else None
        assert drafts[name, "start"] == ""
        assert (drafts[name, "typed injection"] or "").startswith("Relay message from Alice")


@pytest.mark.parametrize("name", sorted(load_profiles()))
@pytest.mark.parametrize("before", list(State))
def test_an_empty_screen_never_makes_an_agent_idle(name: str, before: State) -> None:
    state = look(profile_for(name), screen_of_text(""), before).state
    assert state is not State.IDLE or before is State.IDLE


RULE = "─" * 100
OLDER = f"""
╭─── Claude Code v2.0.76 ─────────────╮
│            Welcome back!            │
╰─────────────────────────────────────╯

> say case:a

● I'll tell Bob.

  > a quotation

{RULE}
>{{}}
{RULE}
  ? for shortcuts
"""


def test_the_prompt_of_an_older_claude_code_is_recognised() -> None:
    """Recorded of 2.0.76, whose prompt is another one."""
    profile = profile_for("claude")
    idle = look(profile, screen_of_text(OLDER.format("")), State.STARTING)
    assert (idle.state, idle.composer.draft if idle.composer else None) == (State.IDLE, "")
    typed = look(profile, screen_of_text(OLDER.format(" half a draft")), State.IDLE)
    assert (typed.composer.draft if typed.composer else None) == "half a draft"
    busy = OLDER.format("").replace(f"\n{RULE}\n>", f"\n· Envisioning… (esc to interrupt)\n\n{RULE}\n>")
    assert look(profile, screen_of_text(busy), State.IDLE).state is State.WORKING
    lost = OLDER.replace(RULE, "").format(" half a draft")  # a row alone is no composer
    assert look(profile, screen_of_text(lost), State.IDLE).composer is None
