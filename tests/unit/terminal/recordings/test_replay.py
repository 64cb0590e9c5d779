"""Every recording through the code that watches live agents: what comes out, however the bytes are cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.profiles.profile import (
    Composer,
    Dialog,
    Launch,
    Profile,
    Rows,
    ScreenPatterns,
    Signs,
    Submit,
    Transcript,
)
from agent_relay.terminal.recordings.replay import ReplayError, replay
from tests.unit.terminal.recorded_screens import ANSWER, CASES, EXPECTED, SCREENS, cast_of, recordings, sessions_of

CHUNKS = (None, 7, 64, 1_000_000)
RECORDED = [name for name in recordings() if not name.startswith(("goose", "generic"))]
TURN = ["working", "idle"]
TOOL_DONE = ["Bob", "tool done"]

FENCELESS = ("continue", "copilot", "kilo", "vibe")
# What the screen alone cannot carry: (recording, what comes out before the answer, why).
LOSSES: list[tuple[str, list[list[str]], str]] = [
    ("aider/b", [["Bob", "multi line body"]], "aider joins the lines of a paragraph"),
    ("aider/b2", [], "a `>>>` on its own line is drawn as an empty quotation: the end cannot be seen"),
    ("claude/b2", [], "a `>>>` on its own line is drawn as an empty quotation: the end cannot be seen"),
    ("codex/b2", [], "a `>>>` on its own line is drawn as an empty quotation: the end cannot be seen"),
    (
        "opencode/b2",
        [["Bob", "TASK: fix auth\n\n  indented two\n\n- item one\n- item two\n\n1. first\n2. second"]],
        "opencode puts an empty line before a list",
    ),
    ("codex/d", [["Bob", "EXAMPLE-must-not-be-sent"]], "a fence without a language looks like plain text"),
    ("codex-noalt/d", [["Bob", "EXAMPLE-must-not-be-sent"]], "a fence without a language looks like plain text"),
    ("opencode/d", [["Bob", "EXAMPLE-must-not-be-sent"]], "a fence looks like plain text"),
    *((f"{name}/d", [["Bob", "EXAMPLE-must-not-be-sent"]], "a fence looks like plain text") for name in FENCELESS),
]
# Recordings that are no case of `cases.json`: messages, and states after `starting` and `idle`.
OTHERS: dict[str, tuple[list[list[str]], list[str]]] = {
    **{f"{name}/busy-inject": ([ANSWER], TURN) for name in ("claude", "codex", "gemini", "opencode")},
    "aider/busy-inject": ([ANSWER], TURN + TURN),
    "aider/perm-aidered-enter": ([], ["working", "dialog", "idle"]),
    "aider/perm-aidersh-inject": ([], ["working", "dialog"]),
    "claude-auto/perm-h-esc": ([TOOL_DONE], TURN),
    "claude-auto/perm-ls-esc": ([TOOL_DONE], TURN),
    **{f"{name}/perm-h-enter": ([TOOL_DONE], ["working", "dialog", *TURN]) for name in ("claude", "gemini", "opencode", "goose")},
    "generic/perm-h-enter": ([TOOL_DONE], ["working", "dialog", "idle"]),
    **{f"{name}/perm-h-enter": ([TOOL_DONE], ["working", "dialog", *TURN]) for name in ("copilot", "kilo", "qwen")},
    "cline/a": ([["Bob", "hello"], ANSWER], ["dialog", "idle", *TURN, *TURN]),  # it begins with an advertisement
    "cline/perm-h-enter": ([TOOL_DONE], ["dialog", "idle", "working", "dialog", "idle", *TURN]),
    # Shortened in the middle: it draws everything anew with every step of its spinner.
    "continue/perm-h-enter": ([TOOL_DONE], ["working", "dialog", "idle", *TURN]),
    "claude/perm-w-enter": ([TOOL_DONE], ["working", "dialog", *TURN]),
    "claude/perm-h-inject": ([TOOL_DONE], ["working", "dialog", *TURN]),
    "codex/perm-h2-enter": ([TOOL_DONE], ["working", "dialog", *TURN]),
    "codex/perm-h2-inject": ([], ["working", "dialog", *TURN]),
    "gemini/perm-h-inject": ([], ["working", "dialog", "idle"]),
    "opencode/perm-h-inject": ([], ["working", "dialog", "idle"]),
}


def lines(recording: str, chunk: int | None = None) -> list[dict[str, Any]]:
    return list(replay(cast_of(recording), chunk=chunk))


def messages(found: list[dict[str, Any]]) -> list[list[str]]:
    return [[line["to"], line["body"]] for line in found if line["kind"] == "message"]


def states(found: list[dict[str, Any]]) -> list[str]:
    return [line["state"] for line in found if line["kind"] == "state"]


def expected(recording: str) -> tuple[list[list[str]], list[str]]:
    if recording in OTHERS:
        return OTHERS[recording]
    case = recording.split("/")[1]
    lossy = {name: told for name, told, _ in LOSSES}
    return [*lossy.get(recording, EXPECTED[case]), ANSWER], TURN + TURN


@pytest.mark.parametrize("recording", [name for name in recordings() if "onboarding" not in name])
@pytest.mark.parametrize("chunk", CHUNKS)
def test_every_recording_at_every_chunking(recording: str, chunk: int | None) -> None:
    found = lines(recording, chunk)
    told, course = expected(recording)
    assert messages(found) == told
    assert states(found) == ["starting", "idle", *course]


@pytest.mark.parametrize("recording", ["claude/c", "codex/b", "gemini/b2", "opencode/e", "aider/f"])
def test_byte_by_byte(recording: str) -> None:
    assert lines(recording, 1) == lines(recording)


def test_every_case_was_recorded_of_every_cli_and_every_loss_is_one() -> None:
    for name in ("aider", "claude", "codex", "gemini", "opencode"):
        assert {f"{name}/{case}" for case in EXPECTED} <= set(RECORDED)
    for recording, told, reason in LOSSES:
        assert told != EXPECTED[recording.split("/")[1]], recording
        assert reason


@pytest.mark.parametrize(
    ("recording", "told"),
    [("claude/b2", ["Bob"]), ("codex/b2", ["Bob"]), ("aider/b2", ["Bob"]), ("claude/b", []), ("gemini/b2", [])],
)
def test_a_message_whose_end_cannot_be_seen_is_reported(recording: str, told: list[str]) -> None:
    assert [line["to"] for line in lines(recording) if line["kind"] == "unfinished"] == told


FIRST_STARTS = {
    "claude/onboarding-apikey": ["starting", "dialog"],
    "claude/onboarding-fresh": ["starting"],
    "claude/onboarding-trust": ["starting", "dialog"],
    "codex/onboarding-fresh": ["starting", "dialog"],
    "codex/onboarding-git-trust": ["starting", "idle"],
    "gemini/onboarding-fresh": ["starting", "dialog"],
    "gemini/onboarding-trust": ["starting", "idle", "dialog"],
}


@pytest.mark.parametrize(("recording", "course"), FIRST_STARTS.items())
def test_first_starts(recording: str, course: list[str]) -> None:
    found = lines(recording)
    assert states(found) == course
    assert [line["kind"] for line in found if line["kind"] in {"permission", "question"}] == ["question"] * course.count("dialog")


@pytest.mark.parametrize(
    "recording", [name for name in RECORDED if "/perm-" in name and not name.startswith(("claude-auto", "cline"))]
)
def test_permissions_are_told_once_with_their_options(recording: str) -> None:
    (asked,) = [line for line in lines(recording) if line["kind"] == "permission"]
    assert len(asked["options"]) >= 2
    assert asked["subject"]
    assert len(asked["digest"]) == 16


# --- session files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini"])
def test_transcripts_carry_every_case(cli: str) -> None:
    found = [line for path in sessions_of(cli) for line in replay(path)]
    told = messages(found)
    wanted = [message for case in EXPECTED for message in EXPECTED[case]]
    assert [message for message in told if message in wanted] == wanted
    assert not [body for _, body in told if "must-not-be-sent" in body]
    assert told.count(ANSWER) == 1
    assert {line["source"] for line in found} == {"transcript"}


@pytest.mark.parametrize("cli", ["claude", "codex", "gemini"])
def test_transcripts_carry_usage_tools_and_questions(cli: str) -> None:
    found = [line for path in sessions_of(cli) for line in replay(path)]
    tokens = [line for line in found if line["kind"] == "tokens"]
    assert {(line["inputTokens"], line["outputTokens"]) for line in tokens} == {(1234, 57)}
    assert {line["phase"] for line in found if line["kind"] == "tool"} == {"started", "ended"}
    assert [line["question"] for line in found if line["kind"] == "question"] == ["Which database should we use?"]


# --- the lines themselves ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [cast_of("claude/perm-h-enter"), *sessions_of("codex")])
def test_lines_are_json_with_a_time_and_a_kind(path: Path) -> None:
    last = 0.0
    for line in replay(path):
        assert json.loads(json.dumps(line)) == line
        assert line["t"] >= last
        last = line["t"]
        assert line["kind"] in {"state", "message", "permission", "question", "tokens", "tool", "item", "taken", "unfinished"}


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ('->relay:spawn Dev claude "x"', "spawn", {"name": "Dev", "cli": "claude", "task": "x"}),
        ("->relay:release Dev", "release", {"name": "Dev"}),
        ("->relay:vote 3f9c2a11 approve", "vote", {"proposal": "3f9c2a11", "choice": "approve"}),
        ("->relay-file:m1", "file", {"name": "m1"}),
        ("->thinking:Bob hm", "message", {"to": "Bob", "body": "hm", "message_kind": "thinking"}),
        ("->relay:A,B x", "message", {"to": "A,B"}),
    ],
)
def test_every_kind_of_command_has_its_line(tmp_path: Path, text: str, kind: str, fields: dict[str, str]) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(
        json.dumps({"type": "assistant", "uuid": "1", "message": {"content": [{"type": "text", "text": text}]}}) + "\n"
    )
    said, line = replay(file)
    assert (said["kind"], said["itemType"], said["text"]) == ("item", "message", text)
    assert line["kind"] == kind
    assert fields.items() <= line.items()


def test_the_work_of_an_agent_is_shown(tmp_path: Path) -> None:
    content = [
        {"type": "thinking", "thinking": "Run them."},
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest -q"}},
        {"type": "tool_use", "id": "t2", "name": "Write", "input": {"file_path": "/p/a.py", "content": "a\nb\n"}},
    ]
    ran = {"type": "tool_result", "tool_use_id": "t1", "is_error": False, "content": "2 passed\nslow"}
    wrote = {"type": "tool_result", "tool_use_id": "t2", "is_error": False, "content": "File created"}
    made = {"type": "create", "filePath": "/p/a.py", "content": "a\nb\n", "structuredPatch": []}
    records = [
        {"type": "assistant", "uuid": "1", "timestamp": 1_000_000_000_000, "message": {"content": content}},
        {"type": "user", "uuid": "2", "timestamp": 1_000_000_000_400, "message": {"content": [ran]},
         "toolUseResult": {"stdout": "2 passed", "stderr": "slow"}},
        {"type": "user", "uuid": "3", "timestamp": 1_000_000_000_500, "message": {"content": [wrote]}, "toolUseResult": made},
    ]  # fmt: skip
    file = tmp_path / "s.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    lines = list(replay(file, "claude"))
    assert [line.get("itemType") or line["phase"] for line in lines] == [
        "thinking", "test_run", "tool_call", "ended", "command", "ended", "file",
    ]  # fmt: skip
    command, touched = lines[4], lines[6]
    assert (command["exitCode"], command["duration"], command["stdout"], command["stderr"]) == (0, 400, "2 passed", "slow")
    assert (touched["operation"], touched["linesChanged"], touched["diff"]) == ("create", 2, "@@ -0,0 +1,2 @@\n+a\n+b")


# --- which CLI, which file ---------------------------------------------------------------------------------------------


def test_the_cli_is_guessed_from_the_output_when_nothing_else_tells(tmp_path: Path) -> None:
    for name in ("claude", "codex", "gemini", "aider", "opencode"):
        header, _, rest = cast_of(f"{name}/a").read_text("utf-8").partition("\n")
        file = tmp_path / "x.cast"
        file.write_text(json.dumps({**json.loads(header), "title": ""}) + "\n" + rest)
        assert messages(list(replay(file))) == [*EXPECTED["a"], ANSWER]


def test_an_unknown_program_is_read_as_any(tmp_path: Path) -> None:
    file = tmp_path / "x.cast"
    events = [[0.1, "o", "ready\r\n> "], [2, "o", "go\r\n"], [3, "o", f"{CASES['a']}\r\n\r\n> ".replace("\n\n", "\r\n\r\n")]]
    file.write_text("\n".join(json.dumps(line) for line in [{"version": 2, "width": 80, "height": 24}, *events]))
    assert messages(list(replay(file))) == EXPECTED["a"]


def test_a_resize_in_a_recording_is_followed(tmp_path: Path) -> None:
    file = tmp_path / "x.cast"
    events = [[0.1, "o", "ready\r\n> "], [1, "r", "40x10"], [2, "o", "x\r\n->relay:Bob hi\r\n\r\n> "]]
    file.write_text("\n".join(json.dumps(line) for line in [{"version": 2, "width": 80, "height": 24}, *events]))
    assert messages(list(replay(file))) == [["Bob", "hi"]]


@pytest.mark.parametrize(
    ("content", "options", "complaint"),
    [
        (None, {}, "no file"),
        ("not a recording", {}, "not an asciicast"),
        ('{"version": 1, "width": 8, "height": 2}', {}, "version 1"),
        ('{"some": "object"}', {}, "not a session file"),
        ('{"version": 2, "width": 8, "height": 2}', {"source": "transcript"}, "no transcript"),
        ('{"uuid": "1"}', {"source": "screen"}, "no screen"),
        ('{"uuid": "1"}', {"cli": "aider"}, "has no session file"),
        ('{"uuid": "1"}', {"source": "ear"}, "screen` or `transcript"),
        ('{"uuid": "1"}', {"chunk": 0}, "one byte"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_a_reason(
    tmp_path: Path, content: str | None, options: dict[str, Any], complaint: str
) -> None:
    file = tmp_path / "x.bin"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ReplayError, match=complaint):
        list(replay(file, **options))


def test_the_recordings_name_no_machine() -> None:
    """They were cleaned; the size of the whole is bounded too, since it is part of every checkout."""
    assert sum(file.stat().st_size for file in SCREENS.rglob("*") if file.is_file()) < 6_000_000


# --- the page says the same ----------------------------------------------------------------------------------------------

DOCS = Path(__file__).parents[4] / "docs"
PAGE = (DOCS / "terminals.md").read_text("utf-8")
REFERENCE = (DOCS / "profiles.md").read_text("utf-8")


@pytest.mark.parametrize(("recording", "told", "reason"), LOSSES)
def test_the_page_names_every_loss(recording: str, told: list[list[str]], reason: str) -> None:
    cli = recording.split("/", maxsplit=1)[0].split("-", maxsplit=1)[0]
    assert [line for line in PAGE.splitlines() if line.startswith(f"| {cli} |") and reason in line]


def test_the_reference_explains_every_field_of_a_profile() -> None:
    # `origin` is not written by anybody: whoever reads a file notes there where it is from.
    structs = (Profile, Rows, Composer, Signs, Dialog, Submit, Launch, Transcript, ScreenPatterns)
    missing = {field for struct in structs for field in struct.__struct_fields__ if f"`{field}`" not in REFERENCE}
    assert missing == {"origin"}
