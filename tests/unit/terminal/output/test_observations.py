"""Records and rows → observations."""

from __future__ import annotations

import pytest

from agent_relay.terminal.output.document import DocumentLine
from agent_relay.terminal.output.observations import (
    CommandRun,
    FileTouched,
    MessageTaken,
    Observation,
    QuestionAsked,
    TokensUsed,
    ToolEnded,
    ToolStarted,
    TranscriptObserver,
    Uttered,
    notice,
)  # fmt: skip
from agent_relay.terminal.output.transcripts.file_changes import FileChange
from agent_relay.terminal.output.transcripts.records import Record, Saying, Spending, Taking, Thinking, ToolCall, ToolResult
from agent_relay.terminal.profiles.profile import Kind, profile_for


def observe(cli: str, *records: Record) -> list[Observation]:
    transcript = profile_for(cli).transcript
    assert transcript is not None
    observer = TranscriptObserver(transcript)
    return [seen for record in records for seen in observer.observe(record)]


def test_a_command_is_told_with_its_result() -> None:
    seen = observe("claude", ToolCall("1", "Bash", {"command": "ls"}, 1000), ToolResult("1", 1500, output="a", exit_code=0))
    assert seen == [
        ToolStarted("1", "Bash", '{"command":"ls"}'),
        ToolEnded("1", "Bash", False, "a"),
        CommandRun("ls", 0, 500, "a"),
    ]


def test_a_command_that_was_refused_was_not_run() -> None:
    seen = observe("codex", ToolCall("1", "exec_command", {"cmd": "rm"}, 0), ToolResult("1", 1, True, was_run=False))
    assert seen == [ToolStarted("1", "exec_command", '{"cmd":"rm"}'), ToolEnded("1", "exec_command", True)]


@pytest.mark.parametrize(
    ("cli", "call", "expected"),
    [
        ("claude", ToolCall("1", "Write", {"file_path": "a.py"}, 0), FileTouched("write", "a.py")),
        ("claude", ToolCall("1", "Read", {"file_path": "a.py"}, 0), FileTouched("read", "a.py")),
        ("claude", ToolCall("1", "Edit", {"file_path": "a.py"}, 0), FileTouched("edit", "a.py")),
        ("gemini", ToolCall("1", "write_file", {"file_path": "a.py"}, 0), FileTouched("write", "a.py")),
        (
            "codex",
            ToolCall("1", "apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n+x"}, 0),
            FileTouched("edit", "a.py", 1, "+x"),
        ),
        (
            "codex",
            ToolCall(
                "1", "exec_command", {"cmd": "apply_patch <<'E'\n*** Begin Patch\n*** Delete File: a.py\n*** End Patch\nE"}, 0
            ),
            FileTouched("delete", "a.py"),
        ),
    ],
)
def test_files_are_told_once_they_were_touched(cli: str, call: ToolCall, expected: FileTouched) -> None:
    assert expected in observe(cli, call, ToolResult("1", 1))
    assert expected not in observe(cli, call)
    assert expected not in observe(cli, call, ToolResult("1", 1, is_error=True))


def test_commands_given_as_lists() -> None:
    seen = observe(
        "codex", ToolCall("1", "shell", {"command": ["bash", "-lc", "ls"]}, 0), ToolResult("1", 0, exit_code=2, is_error=True)
    )
    assert seen[-1] == CommandRun("bash -lc ls", 2, None)


def test_a_result_whose_call_was_not_seen() -> None:
    assert observe("claude", ToolResult("1", 0)) == [ToolEnded("1", "", False)]


def test_tokens_say_whether_the_cache_is_in_them() -> None:
    spending = Spending("1", "m", 0, 1234, 57, 100, 0)
    assert observe("claude", spending) == [TokensUsed(1234, 57, "m", 100, 0, False, "1")]
    assert observe("codex", spending) == [TokensUsed(1234, 57, "m", 100, 0, True, "1")]


def test_messages_that_were_read() -> None:
    assert observe("codex", Taking("1", "hi", 0, "rm-4")) == [MessageTaken("hi", "rm-4")]


def test_questions_of_the_model() -> None:
    questions = [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]
    (_, asked) = observe("claude", ToolCall("1", "AskUserQuestion", {"questions": questions}, 0))
    assert isinstance(asked, QuestionAsked)
    assert (asked.dialog.question, asked.dialog.options) == ("Which?", ("A", "B"))


def test_what_the_record_shows_of_a_change_goes_before_the_name_of_the_tool() -> None:
    call = ToolCall("1", "Write", {"file_path": "a.py"}, 0)
    made, changed = FileChange("create", "a.py", 1, "+x"), FileChange("", "a.py", 2, "-x\n+y")
    assert FileTouched("create", "a.py", 1, "+x") in observe("claude", call, ToolResult("1", 1, changes=(made,)))
    assert FileTouched("write", "a.py", 2, "-x\n+y") in observe("claude", call, ToolResult("1", 1, changes=(changed,)))


def test_an_exit_code_or_a_duration_that_nobody_knows_is_not_made_up() -> None:
    seen = observe("codex", ToolCall("1", "exec_command", {"cmd": "sleep 9"}, 0), ToolResult("1", 5))
    assert seen[-1] == CommandRun("sleep 9", None, None)


def test_what_a_command_printed_is_told_apart_where_the_record_does() -> None:
    result = ToolResult("1", 9_000, output="a\nb", exit_code=0, stdout="a", stderr="b" * 3_000, duration_ms=7)
    assert observe("claude", ToolCall("1", "Bash", {"command": "x"}, 1), result)[-1] == CommandRun("x", 0, 7, "a", "b" * 2_000)


def test_words_and_thoughts() -> None:
    assert observe("codex", Saying("m", "hello", 9, "gpt", 4), Thinking("t", "hm", 3)) == [
        Uttered("m", "message", "hello", 9, 4), Uttered("t", "thinking", "hm", 3),
    ]  # fmt: skip
    assert observe("codex", Saying("", "who?", 9)) == []


# --- rows ----------------------------------------------------------------------------------------------------------------


def row(text: str, kind: Kind) -> DocumentLine:
    return DocumentLine(0, kind, text, text, False, False, 0)


@pytest.mark.parametrize(
    ("cli", "text", "counts"),
    [
        ("claude", "Token usage: 1,500 input, 800 output", (1500, 800)),
        ("codex", "Tokens: 1500 in / 800 out", (1500, 800)),
        ("gemini", "Usage: input_tokens=1500, output_tokens=800", (1500, 800)),
        ("aider", "Tokens: 2.3k sent, 15 received. Cost: $0.0024 message", (2300, 15)),
        ("aider", "Tokens: 12k sent, 1.5k cache hit, 1,015 received.", (12000, 1015)),
        ("generic", "1500 input tokens, 800 output tokens", (1500, 800)),
    ],
)
def test_usage_in_a_row(cli: str, text: str, counts: tuple[int, int]) -> None:
    assert notice(profile_for(cli), row(text, Kind.STATUS)) == [TokensUsed(*counts)]
    assert notice(profile_for(cli), row(text, Kind.USER)) == []


def test_what_the_agent_writes_about_tokens_is_not_usage() -> None:
    assert notice(profile_for("claude"), row("we used 5 input and 6 output", Kind.AGENT)) == []


def test_files_in_a_row() -> None:
    assert notice(profile_for("aider"), row("Applied edit to notes.txt", Kind.OTHER)) == [FileTouched("edit", "notes.txt")]
    assert notice(profile_for("aider"), row("Applied edit to notes.txt", Kind.AGENT)) == []
