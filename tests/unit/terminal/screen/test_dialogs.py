"""Dialogs: what they ask, their options, and that the same one is known again while another is not mistaken for it."""

from __future__ import annotations

import pytest

from agent_relay.terminal.profiles.profile import profile_for
from agent_relay.terminal.recordings.asciicast import read_cast
from agent_relay.terminal.screen.contents import screen_of_text
from agent_relay.terminal.screen.dialogs import OpenDialog, find_dialog
from agent_relay.terminal.screen.emulator import Emulator
from tests.unit.terminal.recorded_screens import SCREENS, cast_of, profile_of, steps_of


def dialog_in(recording: str, text: str) -> OpenDialog:
    found = find_dialog(profile_of(recording), screen_of_text(text).lines[-40:])
    assert found is not None
    return found


def step(recording: str, name: str) -> OpenDialog:
    return dialog_in(recording, dict(steps_of(recording))[name])


def capture(variant: str, name: str) -> OpenDialog:
    return dialog_in(variant, (SCREENS / variant / "tmux" / name).read_text("utf-8"))


READ = [
    (step("claude/perm-h-enter", "prompt open"), "permission", "Do you want to proceed?", 4, 0, "Bash command", "rm -rf build"),
    (
        step("claude/perm-w-enter", "prompt open"),
        "permission", "Do you want to create notes.txt?", 3, 0, "Create file", "notes.txt",
    ),
    (capture("claude-noalt", "08-h-prompt.txt"), "permission", "Do you want to proceed?", 4, 0, "Bash command", "rm -rf build"),
    (capture("claude-noalt", "12-q-prompt.txt"), "question", "Which database should we use?", 4, 0, None, None),
    (
        step("codex/perm-h2-enter", "prompt open"),
        "permission", "Would you like to run the following command?", 3, 0, None, "rm -r build",
    ),
    (
        step("codex/permissions", "edits"),
        "permission", "Would you like to make the following edits?", 3, 0, None, "/srv/team/relay1/proj/notes.txt",
    ),
    (
        step("codex/permissions", "long command"),
        "permission", "Would you like to run the following command?", 3, 0, None,
        "; ".join(["rm -rf build", *(f"echo this is a rather long command number {number}" for number in range(8))]),
    ),
    *(
        (step("codex/hooks", name), "question", question, 0, None, None, None)
        for name, question in (
            ("review", "Hooks need review"), ("list", "Hooks"), ("one", "PermissionRequest hooks"), ("trusted", "Hooks"),
        )
    ),
    (step("gemini/perm-h-enter", "prompt open"), "permission", "Allow execution of [Shell]?", 3, 0, "Shell", "rm -rf build"),
    (capture("gemini", "15-w-prompt.txt"), "permission", "Apply this change?", 4, 0, "WriteFile", "Writing to notes.txt"),
    (capture("gemini", "17-q-prompt.txt"), "question", "Which database should we use?", 3, 0, None, None),
    (step("opencode/perm-h-enter", "prompt open"), "permission", "△ Permission required", 3, None, "Shell", "rm -rf build"),
    (capture("opencode", "15-w-prompt.txt"), "permission", "△ Permission required", 3, None, "Edit", "notes.txt"),
    (capture("opencode", "17-q-prompt.txt"), "question", "Which database should we use?", 3, None, None, None),
    (step("aider/perm-aidersh-inject", "prompt open"), "permission", "Run shell command?", 3, None, None, "rm -rf build"),
    (capture("aider", "15-aidered-prompt.txt"), "permission", "Create new file?", 2, None, None, "notes.txt"),
    (step("claude/onboarding-trust", "end"), "question", None, 2, 0, None, None),
    (step("codex/onboarding-fresh", "end"), "question", "Choose how you want to use Codex.", 4, 0, None, None),
    (step("gemini/onboarding-trust", "end"), "question", "Do you trust the files in this folder?", 3, 0, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("dialog", "kind", "question", "options", "selected", "tool", "subject"), READ)
def test_dialogs_are_read(
    dialog: OpenDialog, kind: str, question: str | None, options: int, selected: int | None, tool: str | None, subject: str | None
) -> None:
    assert dialog.kind == kind
    assert question is None or dialog.question == question
    assert (len(dialog.options), dialog.selected, dialog.tool, dialog.subject) == (options, selected, tool, subject)


def test_options_are_what_a_person_reads() -> None:
    assert step("codex/perm-h2-enter", "prompt open").options[0] == "Yes, proceed"
    assert step("opencode/perm-h-enter", "prompt open").options == ("Allow once", "Allow always", "Reject")
    assert step("aider/perm-aidersh-inject", "prompt open").options == ("Yes", "No", "Don't ask again")
    assert capture("claude-noalt", "12-q-prompt.txt").options[:2] == ("Postgres", "SQLite")


def test_the_digest_does_not_move_with_the_selection() -> None:
    text = dict(steps_of("claude/perm-h-enter"))["prompt open"]
    moved = text.replace(" ❯ 1. Yes", "   1. Yes").replace("   4. No", " ❯ 4. No")
    assert moved != text
    before, after = dialog_in("claude", text), dialog_in("claude", moved)
    assert (before.selected, after.selected) == (0, 3)
    assert before.digest == after.digest


def test_the_digest_does_not_move_with_what_was_typed() -> None:
    first = step("aider/perm-aidersh-inject", "prompt open")
    assert step("aider/perm-aidersh-inject", "text sent, no Enter yet").digest == first.digest


def test_the_digest_tells_one_command_from_another() -> None:
    text = dict(steps_of("claude/perm-h-enter"))["prompt open"]
    assert dialog_in("claude", text).digest != dialog_in("claude", text.replace("rm -rf build", "rm -rf /")).digest


@pytest.mark.parametrize("selected", [1, 2, 3])
def test_a_dialog_is_known_whichever_option_is_selected(selected: int) -> None:
    text = dict(steps_of("gemini/perm-h-enter"))["prompt open"]
    moved = text.replace("● 1.", "  1.").replace(f"  {selected}. ", f"● {selected}. ")
    assert (dialog_in("gemini", moved).selected, dialog_in("gemini", moved).digest) == (
        selected - 1,
        dialog_in("gemini", text).digest,
    )


def test_hints_that_come_and_go_with_the_selection_change_nothing() -> None:
    text = dict(steps_of("claude/perm-h-enter"))["prompt open"]
    assert dialog_in("claude", text.replace(" · Tab to amend", "")).digest == dialog_in("claude", text).digest
    first = ["◆  Goose would like to call the above tool, do you allow?", "│  ● Allow (once)", "│  ○ Deny", "└"]
    second = [first[0], "│  ○ Allow", "│  ● Deny (it is not run)", "└"]
    dialogs = [dialog_in("goose", "\n".join(["─── shell ───", "command: ls", *rows])) for rows in (first, second)]
    assert [dialog.selected for dialog in dialogs] == [0, 1]
    assert dialogs[0].digest == dialogs[1].digest


def test_a_list_in_what_is_asked_about_is_no_option() -> None:
    text = dict(steps_of("claude/perm-h-enter"))["prompt open"]
    listed = text.replace(" rm -rf build\n", " rm -rf build\n   1. Yes\n   2. echo done\n")
    other = text.replace(" rm -rf build\n", " rm -rf build\n   1. Yes\n   2. rm -rf /\n")
    assert dialog_in("claude", listed).options == dialog_in("claude", text).options
    assert len({dialog_in("claude", shown).digest for shown in (text, listed, other)}) == 3


def test_colours_tell_what_is_selected_where_nothing_else_does() -> None:
    emulator, seen = Emulator(120, 40), []
    for event in read_cast(cast_of("opencode/perm-h-inject")).events:
        if event.kind == "o":
            emulator.feed(event.data.encode())
            dialog = find_dialog(profile_of("opencode"), emulator.read().visible)
            if dialog is not None and dialog.selected not in seen:
                seen.append(dialog.selected)
    assert seen == [0, 2]
    assert step("opencode/perm-h-enter", "prompt open").selected is None  # a text has no colours


@pytest.mark.parametrize(
    ("colours", "selected"), [("1", None), ("12", None), ("112", 2), ("211", 0), ("111", None), ("123", None), ("1121", 2)]
)
def test_the_one_that_is_painted_otherwise_is_selected(colours: str, selected: int | None) -> None:
    options = "".join(f" \x1b[4{colour}m{number}. Option{number}\x1b[0m\r\n" for number, colour in enumerate(colours, 1))
    emulator = Emulator(80, 20)
    emulator.feed(f"┃ Which?\r\n{options.replace(' ', '┃ ')}┃ enter submit  esc dismiss".replace(".┃ ", ". ").encode())
    dialog = find_dialog(profile_of("opencode"), emulator.read().visible)
    assert dialog is not None
    assert (len(dialog.options), dialog.selected) == (len(colours), selected)


def test_what_is_typed_behind_a_question_is_read() -> None:
    text = dict(steps_of("aider/perm-aidersh-inject"))["prompt open"].rstrip()
    assert (dialog_in("aider", text).typed, dialog_in("aider", f"{text} y").typed) == ("", "y")
    assert [dialog_in("generic", f"Proceed? (yes/no){typed}").typed for typed in ("", ":", ": ye", " yes")] == [
        "",
        "",
        "ye",
        "yes",
    ]


def test_two_questions_of_an_unknown_program_differ_by_what_they_ask() -> None:
    menu = "❯ 1. Yes\n  2. No\nEsc to cancel"
    first, second = (dialog_in("generic", f"{question}\n{menu}") for question in ("Keep it?", "Delete it?"))
    assert (first.question, second.question) == ("Keep it?", "Delete it?")
    assert first.digest != second.digest


def test_two_commands_of_an_unknown_program_are_two_questions() -> None:
    first, second, typed = (
        dialog_in("generic", f"I will run a tool.\n  {command}\nAllow this command to run? [y/n]{answer}")
        for command, answer in (("make", ""), ("rm -rf /", ""), ("make", " y"))
    )
    assert first.digest != second.digest
    assert first.digest == typed.digest


def test_a_numbered_list_that_asks_for_a_number() -> None:
    dialog = dialog_in("generic", "Which one?\n1) Red\n2) Blue\nEnter your choice: 2")
    assert (dialog.kind, dialog.options, dialog.typed) == ("question", ("Red", "Blue"), "2")


def test_a_dialog_that_is_over_is_none() -> None:
    for recording, name in (("claude/perm-h-enter", "after enter"), ("aider/perm-aidered-enter", "after enter")):
        assert find_dialog(profile_of(recording), screen_of_text(dict(steps_of(recording))[name]).lines) is None


def test_an_answer_that_talks_about_dialogs_is_none() -> None:
    said = "● It asks:\n\n  Do you want to proceed?\n  ❯ 1. Yes\n  Esc to cancel\n\n  and so on.\n"
    composer = "✻ Cooked for 1s · done\n\n" + "─" * 120 + "\n❯\n" + "─" * 120 + "\n  ⏸ manual mode on · ? for shortcuts\n"
    assert find_dialog(profile_for("claude"), screen_of_text(said + composer).lines) is None


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini", "opencode", "aider", "goose", "generic"])
@pytest.mark.parametrize(
    ("row", "kind", "question", "subject", "options", "words"),
    [
        ("Allow ls? (y/n) ", "permission", "Allow ls?", "ls", ("y", "n"), ("y", "n")),
        ("Approve: make test [y/n]", "permission", "Approve: make test", "make test", ("y", "n"), ("y", "n")),
        ("Permission requested: rm -rf x", "permission", "Permission requested: rm -rf x", "rm -rf x", (), ()),
        ("Proceed with push? [Y/n/always]", "permission", "Proceed with push?", None, ("Y", "n", "always"), ("y", "n", "always")),
        ("Run ls? [y] yes  [n] no  [a] always", "permission", "Run ls?", "ls", ("yes", "no", "always"), ("y", "n", "a")),
        ("Which colour? (red/blue)", "question", "Which colour?", None, ("red", "blue"), ("red", "blue")),
        ("Which one? [a, b or c]: ", "question", "Which one?", None, ("a", "b", "c"), ("a", "b", "c")),
        ("Which title? [untitled]: ", "question", "Which title?", None, (), ()),
    ],
)  # fmt: skip
def test_plain_prompts_are_read_in_every_profile(
    cli: str, row: str, kind: str, question: str, subject: str | None, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    dialog = dialog_in(cli, f"Some words.\n\n{row}")
    assert (dialog.kind, dialog.question, dialog.subject) == (kind, question, subject)
    assert (dialog.options, dialog.words) == (options, words)
    assert dialog.takes_text is ("title" in row)


def test_the_digest_covers_the_prompts_own_row_and_what_stands_above_it() -> None:
    rows = ["Allow ls? (y/n)", "Allow rm -rf build? (y/n)", "make\nAllow this? (y/n)", "rm -rf /\nAllow this? (y/n)"]
    assert len({dialog_in("generic", row).digest for row in rows}) == len(rows)
    long = "\n".join(f"step {number}" for number in range(15))
    assert dialog_in("generic", f"{long}\nAllow? (y/n)").digest != dialog_in("generic", f"x{long}\nAllow? (y/n)").digest
    assert dialog_in("generic", "Allow ls? (y/n)").digest == dialog_in("generic", "Allow ls? (y/n) y").digest


def test_a_sentence_that_goes_on_is_no_prompt() -> None:
    said = "It asks Allow ls? (y/n) and then it waits for the person to say something about that."
    assert find_dialog(profile_for("generic"), screen_of_text(said).lines) is None


EARLIER = """\
● Bash(rm -rf build)
  ⎿  Waiting…

────────────────────────────────────────────────────────────────
 Bash command

   rm -rf build
   Run the command

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and always allow access to build/ from this project
   3. No

 Esc to cancel · Tab to amend · ctrl+e to explain
"""
TODAY = """\
────────────────────────────────────────────────────────────────
 Bash command
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 for each in *; do
   rm -rf build
 done
╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
 Do you want to proceed?
 ❯ 1. Yes
   2. No

 Esc to cancel
"""


def test_the_command_of_an_earlier_claude_is_read_with_its_description() -> None:
    """As 2.1.226 drew it."""
    found = find_dialog(profile_for("claude"), screen_of_text(EARLIER).visible)
    assert found is not None
    assert (found.kind, found.tool, found.subject) == ("permission", "Bash command", "rm -rf build\nRun the command")
    assert found.options == ("Yes", "Yes, and always allow access to build/ from this project", "No")
    assert found.selected == 0


def test_a_command_of_several_lines_is_read_whole() -> None:
    found = find_dialog(profile_for("claude"), screen_of_text(TODAY).visible)
    assert found is not None
    assert found.subject == "for each in *; do\n  rm -rf build\ndone"
