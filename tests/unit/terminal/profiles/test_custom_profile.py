"""Options and a project's files change what a screen means, as far as they may."""

from __future__ import annotations

import pytest

from agent_relay.terminal.profiles.custom_profile import CUSTOM, customise, tighten
from agent_relay.terminal.profiles.profile import ProfileError, Signs, profile_for
from agent_relay.terminal.screen.contents import Cursor, Screen, screen_of_text
from agent_relay.terminal.screen.state import State, look

GENERIC = profile_for("generic")


def shown(text: str, row: int | None = None) -> Screen:
    rows = text.split("\n")
    return screen_of_text(text, cursor=Cursor(len(rows) - 1 if row is None else row, 7))


@pytest.mark.parametrize(
    "pattern", [r"^\[chat\] ", r"^\[chat\]", r"^\[chat\] $", r"^\[chat\]\s*$", r"^\[chat\] (?P<draft>.*)$|^\[chat\]$"]
)
def test_a_prompt_of_ones_own_is_recognised_empty_and_with_a_draft(pattern: str) -> None:
    profile = customise(GENERIC, [pattern], [], [])
    assert (profile.name, profile.is_tried, profile.is_generic) == (CUSTOM, False, False)
    for text, draft in (("hello\n[chat]", ""), ("hello\n[chat] half a line", "half a line")):
        sight = look(profile, shown(text), State.WORKING)
        assert sight.state is State.IDLE
        assert sight.composer is not None
        assert sight.composer.draft == draft
    assert look(profile, shown("[chat]\nworking", 1), State.IDLE).composer is None


def test_several_prompts() -> None:
    profile = customise(GENERIC, [r"^you: ", r"^\(\w+\)"], [], [])
    for text in ("you:", "(gpt)"):
        assert look(profile, shown(text), State.WORKING).state is State.IDLE


def test_a_prompt_in_a_box_with_rows_below() -> None:
    profile = customise(GENERIC, [r"^│ >"], [], [])
    screen = shown("╭────╮\n│ > hello       │\n╰────╯\n  ? for help", 1)
    sight = look(profile, screen, State.WORKING)
    assert sight.composer is not None
    assert sight.composer.draft == "hello"


def test_busy_and_dialog_go_before_the_prompt() -> None:
    profile = customise(GENERIC, [r"^> "], ["^brewing"], ["^Shall I"])
    assert look(profile, shown("brewing coffee\n>"), State.IDLE).is_busy
    sight = look(profile, shown("Shall I go on\n>"), State.IDLE)
    assert sight.state is State.DIALOG
    assert sight.dialog is not None
    assert not sight.dialog.options


def test_dialogs_nobody_described_are_still_doubted() -> None:
    profile = customise(GENERIC, [r"^> "], [], [])
    assert look(profile, shown("Approve this? \n>"), State.IDLE).doubt
    assert look(profile, shown("Run rm -rf? [y/N]"), State.IDLE).state is State.DIALOG


@pytest.mark.parametrize(
    ("prompts", "busy", "said"),
    [(["("], [], "--prompt: '(' is not"), ([], ["(a+)+$"], "--busy: '(a+)+$' cannot"), (["a(?P<draft>.*)", "b"], [], "draft")],
)
def test_a_wrong_option_is_named(prompts: list[str], busy: list[str], said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        customise(GENERIC, prompts, busy, [])
    assert said in str(caught.value)


def test_what_is_added_only_tightens() -> None:
    claude = tighten(profile_for("claude"), Signs(("^Building",)), Signs(("^Deploy to production",)))
    assert claude.is_tried
    idle = "● Done.\n\n✻ Cooked for 2s\n" + "─" * 120 + "\n❯\n" + "─" * 120 + "\n  ? for shortcuts"
    assert look(profile_for("claude"), shown(idle), State.IDLE).state is State.IDLE
    assert look(claude, shown(idle), State.IDLE).state is State.IDLE
    assert look(claude, shown("Building 3 of 7\n" + idle), State.IDLE).state is State.WORKING
    sight = look(claude, shown("Deploy to production now\n" + idle), State.IDLE)
    assert (sight.state, sight.dialog) == (State.DIALOG, None)
