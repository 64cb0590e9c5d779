"""Profiles are data: they load, they are checked, and each has recordings that show what it claims."""

from __future__ import annotations

import pytest

from agent_relay.terminal.profiles.profile import GENERIC, ProfileError, load_profiles, parse_profile, profile_for
from agent_relay.terminal.recordings.replay import replay
from tests.unit.terminal.recorded_screens import cast_of, recordings

MINIMAL = 'name = "x"\ntitle = "X"\n[composer]\nrow = "^> "\n'


def test_the_profiles_that_are_promised_exist() -> None:
    assert set(load_profiles()) == {
        "claude", "codex", "gemini", "aider", "opencode", "goose", "generic",
        "cline", "continue", "copilot", "kilo", "pi", "qwen", "vibe",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("command", "name"),
    [("claude", "claude"), ("/usr/local/bin/codex", "codex"), ("C:\\bin\\gemini.cmd", "gemini"), ("vim", GENERIC), ("", GENERIC)],
)
def test_a_profile_is_found_by_the_command(command: str, name: str) -> None:
    assert profile_for(command).name == name


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("name = 1", "name"),
        (MINIMAL + 'what = "x"', "what"),
        (MINIMAL + "[busy]\nrows = ['(']", "busy.rows"),
        (MINIMAL + "[busy]\nrows = ['(?i)x']", "flags"),
        (MINIMAL + "[[dialogs]]\nkind = 'menu'\nmarks = ['x']", "kind"),
        (MINIMAL + "[rows]\ndefault = 'nobody'", "default"),
        ("not toml", "x.toml"),
    ],
)
def test_a_wrong_profile_is_refused_and_named(source: str, complaint: str) -> None:
    with pytest.raises(ProfileError, match=complaint) as caught:
        parse_profile(source, "x.toml")
    assert str(caught.value).startswith("x.toml")


def test_profiles_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        profile_for("claude").name = "x"


@pytest.mark.parametrize("name", sorted(load_profiles()))
def test_every_profile_has_recordings_of_ready_busy_and_dialog(name: str) -> None:
    mine = [recording for recording in recordings() if recording.split("/")[0].split("-")[0] == name]
    states = {line["state"] for recording in mine for line in replay(cast_of(recording), cli=name) if line["kind"] == "state"}
    assert {"idle", "working"} <= states
    # Where no dialog was recorded, whatever looks like one holds messages.
    assert "dialog" in states or not load_profiles()[name].knows_dialogs
    assert ("dialog" not in states) == (name in {"pi", "vibe"})


def test_only_profiles_that_say_so_have_handmade_recordings() -> None:
    assert {profile.name for profile in load_profiles().values() if profile.is_synthetic} == {"goose", "generic"}
    assert all(profile.recorded for profile in load_profiles().values() if not profile.is_synthetic)


def test_how_text_is_submitted() -> None:
    """What works on all of them; the one that must not be given Enter while it works; whose own queue is trusted."""
    for profile in load_profiles().values():
        is_bracketed = profile.name != "continue"  # it never asks for brackets, and shows them as text
        assert (profile.submit.is_bracketed, profile.submit.pause_ms, profile.submit.key) == (is_bracketed, 300, "\r")
    assert profile_for("codex").submit.busy_key == "\t"
    assert {name for name, profile in load_profiles().items() if profile.submit.when_busy == "queue"} == {
        "claude",
        "codex",
        "kilo",
        "opencode",
    }


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("claude", "Allow Bash(rm)? (y/n)", "permission"),
        ("claude", "Which one? (a, b)", "question"),
        ("codex", "Approve: rm -rf build [y/n]", "permission"),
        ("codex", "Which one? [a, b]", "question"),
        ("gemini", "Permission requested: run a command", "permission"),
    ],
)
def test_the_plain_prompts_of_other_versions(name: str, text: str, kind: str) -> None:
    from agent_relay.terminal.screen.contents import screen_of_text
    from agent_relay.terminal.screen.state import State, look

    sight = look(profile_for(name), screen_of_text(f"hello\n{text}"), State.IDLE)
    assert sight.state is State.DIALOG
    assert sight.dialog is not None
    assert sight.dialog.kind == kind


def test_how_much_is_typed_at_once_can_be_limited() -> None:
    assert parse_profile(MINIMAL, "x.toml").submit.max_characters == 0
    assert parse_profile(MINIMAL + "[submit]\nmax_characters = 4000", "x.toml").submit.max_characters == 4_000
    with pytest.raises(ProfileError, match="max_characters"):
        parse_profile(MINIMAL + "[submit]\nmax_characters = -1", "x.toml")
