"""Which option a decision means, for every dialog that was recorded: never one that allows more than this once."""

from __future__ import annotations

import re

import pytest

from agent_relay.terminal.doors.door import Decision, DoorError
from agent_relay.terminal.profiles.profile import Dialog, Profile, load_profiles
from agent_relay.terminal.recordings.asciicast import read_cast
from agent_relay.terminal.requests.choices import choose, find_wider
from agent_relay.terminal.screen.contents import screen_of_text
from agent_relay.terminal.screen.dialogs import OpenDialog, find_dialog, looks_of
from agent_relay.terminal.screen.emulator import Emulator
from tests.unit.terminal.recorded_screens import SCREENS, cast_of, profile_of, recordings, steps_of

ALLOW, DENY = Decision(is_allowed=True), Decision(is_allowed=False)
BEYOND = re.compile(r"(?i:always|again|session|all\b.*edits|auto|every|never)")


def look_of(profile: Profile, dialog: OpenDialog) -> Dialog | None:
    return looks_of(profile)[dialog.look]


def recorded() -> dict[str, tuple[Profile, OpenDialog]]:
    """Every dialog that stands in a recording, by where it stands."""
    found: dict[str, tuple[Profile, OpenDialog]] = {}
    texts = [
        (name, step, text) for name in recordings() if (SCREENS / name / "screens.txt").exists() for step, text in steps_of(name)
    ]
    texts += [
        (folder.name, file.name, file.read_text("utf-8"))
        for folder in sorted(SCREENS.iterdir()) if folder.is_dir()
        for file in sorted((folder / "tmux").glob("*.txt"))
    ]  # fmt: skip
    for name, step, text in texts:
        profile = profile_of(name)
        dialog = find_dialog(profile, screen_of_text(text).lines[-40:])
        if dialog is not None:
            found[f"{name} {step}"] = (profile, dialog)
    for name in ("goose/perm-h-enter", "generic/perm-h-enter"):
        found[f"{name} cast"] = (profile_of(name), first_in_cast(name))
    return found


def first_in_cast(name: str) -> OpenDialog:
    emulator = Emulator(120, 40)
    for event in read_cast(cast_of(name)).events:
        if event.kind == "o":
            emulator.feed(event.data.encode())
            dialog = find_dialog(profile_of(name), emulator.read().visible)
            if dialog is not None:
                return dialog
    raise AssertionError(f"{name} shows no dialog")


RECORDED = recorded()
PERMISSIONS = {where: found for where, found in RECORDED.items() if found[1].kind == "permission"}
WORDS = {
    "claude": ({"Yes"}, {"No"}),
    "codex": ({"Yes, proceed"}, {"No, and tell Codex what to do differently"}),
    "gemini": ({"Allow once"}, {"No, suggest changes (esc)"}),
    "opencode": ({"Allow once"}, {"Reject"}),
    "aider": ({"Yes"}, {"No"}),
    "goose": ({"Allow"}, {"Deny"}),
    "generic": ({"y"}, {"n"}),
    "continue": ({"Continue"}, {"No, and tell Continue what to do differently"}),
    "copilot": ({"Yes"}, {"No, and tell Copilot what to do differently (Esc to stop)"}),
    "kilo": ({"Allow once"}, {"Reject"}),
    "qwen": ({"Yes, allow once"}, {"No, suggest changes (esc)"}),
}
NOT_ANSWERED = {"cline"}  # nothing says how its dialog is answered: a person does that at its terminal
NO_DIALOGS = {"pi", "vibe"}


def test_every_cli_has_a_recorded_permission() -> None:
    assert {profile.name for profile, _ in PERMISSIONS.values()} == set(load_profiles()) - NO_DIALOGS == set(WORDS) | NOT_ANSWERED


@pytest.mark.parametrize("where", [where for where in PERMISSIONS if where.startswith("cline/")])
def test_a_dialog_whose_keys_are_not_known_is_answered_at_its_terminal(where: str) -> None:
    profile, dialog = PERMISSIONS[where]
    assert (dialog.options, dialog.words, dialog.subject) == ((), (), "rm -rf build")
    for decision in (ALLOW, DENY):
        with pytest.raises(DoorError, match="at the terminal"):
            choose(look_of(profile, dialog), dialog, decision)


@pytest.mark.parametrize("where", [where for where in PERMISSIONS if not where.startswith("cline/")])
def test_allow_means_once_and_deny_means_no(where: str) -> None:
    profile, dialog = PERMISSIONS[where]
    look = look_of(profile, dialog)
    allowed, denied = dialog.options[choose(look, dialog, ALLOW)], dialog.options[choose(look, dialog, DENY)]
    assert ({allowed}, {denied}) == WORDS[profile.name]
    assert not BEYOND.search(allowed)


@pytest.mark.parametrize("where", [where for where, found in RECORDED.items() if found[1].kind == "question"])
def test_a_question_is_answered_by_the_text_of_an_option(where: str) -> None:
    profile, dialog = RECORDED[where]
    for index, option in enumerate(dialog.options):
        assert choose(look_of(profile, dialog), dialog, Decision(is_allowed=True, answer=f" {option.upper()} ")) == index
    with pytest.raises(DoorError, match="not one of the options"):
        choose(look_of(profile, dialog), dialog, Decision(is_allowed=True, answer="42"))
    with pytest.raises(DoorError, match="answer it with one"):
        choose(look_of(profile, dialog), dialog, ALLOW)
    with pytest.raises(DoorError, match="not clear which"):
        choose(look_of(profile, dialog), dialog, DENY)


def asked(*options: str, kind: str = "question") -> OpenDialog:
    return OpenDialog(kind, "Which?", "", options, 0, "d", 0, look=0)


PLAIN = Dialog("question", ())


@pytest.mark.parametrize(
    ("options", "answer", "index"),
    [
        (("Postgres", "SQLite"), "post", 0),
        (("Yes", "Yes, always"), "yes", 0),
        (("A  b", "C"), "a b", 0),
        (("No", "Nothing"), "not", 1),
    ],
)
def test_the_beginning_is_enough_where_only_one_begins_so(options: tuple[str, ...], answer: str, index: int) -> None:
    assert choose(PLAIN, asked(*options), Decision(is_allowed=True, answer=answer)) == index


def test_what_may_mean_two_options_means_none() -> None:
    with pytest.raises(DoorError, match=r"more than one option: `Postgres`, `Post`"):
        choose(PLAIN, asked("Postgres", "Post", "x"), Decision(is_allowed=True, answer="po"))
    with pytest.raises(DoorError, match="more than one option: `Yes`, `Yes`"):
        choose(PLAIN, asked("Yes", "Yes"), Decision(is_allowed=True, answer="Yes"))
    look = Dialog("permission", (), approve=("^Y", "^N"))
    with pytest.raises(DoorError, match="More than one option allows it once: `Yes`, `Yo`"):
        choose(look, asked("Yes", "Yo", "No", kind="permission"), ALLOW)


def test_patterns_stand_in_the_order_of_preference() -> None:
    look = Dialog("permission", (), deny=("^No$", "^Cancel$"))
    assert choose(look, asked("Yes", "Cancel", "No", kind="permission"), DENY) == 2
    assert choose(look, asked("Yes", "Cancel", kind="permission"), DENY) == 1


def test_a_dialog_nobody_described_is_for_the_person() -> None:
    with pytest.raises(DoorError, match="cannot be told apart"):
        choose(None, asked("Yes", "No"), ALLOW)
    with pytest.raises(DoorError, match="cannot be told apart"):
        choose(PLAIN, asked(), ALLOW)


@pytest.mark.parametrize(
    ("options", "allowed", "denied"),
    [
        (("Yes", "Yes, always", "No"), 0, 2),
        (("Allow once", "Allow for this session", "Cancel"), 0, 2),
        (("Don't allow", "Approve"), 1, 0),
        (("Yes, and don't ask again", "Proceed", "No, and never ask again", "Reject"), 1, 3),
        (("Yes, all", "Always"), None, None),
    ],
)
def test_a_menu_of_an_unknown_program(options: tuple[str, ...], allowed: int | None, denied: int | None) -> None:
    rows = [f"{'❯' if index == 0 else ' '} {index + 1}. {option}" for index, option in enumerate(options)]
    profile = load_profiles()["generic"]
    dialog = find_dialog(profile, screen_of_text("\n".join(["Do you want to proceed?", *rows, "Esc to cancel"])).lines)
    assert dialog is not None
    for decision, index in ((ALLOW, allowed), (DENY, denied)):
        if index is None:
            with pytest.raises(DoorError, match="not clear which"):
                choose(look_of(profile, dialog), dialog, decision)
        else:
            assert choose(look_of(profile, dialog), dialog, decision) == index


@pytest.mark.parametrize("answer", ["Trust all and continue", "2", "Review hooks"])
def test_which_hooks_codex_may_run_is_for_nobody_outside_to_say(answer: str) -> None:
    profile = load_profiles()["codex"]
    dialog = find_dialog(profile, screen_of_text(dict(steps_of("codex/hooks"))["review"]).lines)
    assert dialog is not None
    for decision in (Decision(is_allowed=True, answer=answer), ALLOW, DENY):
        with pytest.raises(DoorError, match="at the terminal"):
            choose(look_of(profile, dialog), dialog, decision)


# --- options that allow more than this once --------------------------------------------------------------------------------


@pytest.mark.parametrize("where", list(PERMISSIONS))
def test_wider_options_are_neither_the_one_for_once_nor_a_refusal(where: str) -> None:
    profile, dialog = PERMISSIONS[where]
    look = look_of(profile, dialog)
    for option in find_wider(look, dialog):
        assert BEYOND.search(option), option
        assert dialog.options[choose(look, dialog, Decision(is_allowed=True, option=option))] == option
        with pytest.raises(DoorError, match="not one of its options"):
            choose(look, dialog, Decision(is_allowed=False, option=option))


def test_the_recorded_clis_offer_some() -> None:
    offering = {profile.name for profile, dialog in PERMISSIONS.values() if find_wider(look_of(profile, dialog), dialog)}
    assert {"claude", "codex", "gemini", "opencode"} <= offering


def test_an_option_that_is_not_there_or_stands_there_twice_is_not_chosen() -> None:
    look = Dialog("permission", (), approve=("^Yes$",), deny=("^No$",))
    dialog = asked("Yes", "Yes, always", "Yes, always", "Edit", "No", kind="permission")
    assert find_wider(look, dialog) == ()
    for option in ("Yes, always", "Edit", "No", "Yes, never again"):
        with pytest.raises(DoorError, match="not one of its options"):
            choose(look, dialog, Decision(is_allowed=True, option=option))
