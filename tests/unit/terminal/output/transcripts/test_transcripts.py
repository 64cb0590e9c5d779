"""Session files of claude, codex and gemini: what is said in them, once, whatever the CLI writes twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.output.json_fields import decode_object, time_ms
from agent_relay.terminal.output.observations import CommandRun, FileTouched, TranscriptObserver, Uttered
from agent_relay.terminal.output.transcripts.file_changes import FileChange
from agent_relay.terminal.output.transcripts.find import READERS, read_head, reader_for
from agent_relay.terminal.output.transcripts.records import (
    Record,
    Saying,
    Seen,
    Spending,
    Taking,
    Thinking,
    ToolCall,
    ToolResult,
)
from agent_relay.terminal.output.transcripts.tail import TranscriptTail
from agent_relay.terminal.profiles.profile import profile_for
from tests.unit.terminal.recorded_screens import CASES, sessions_of

CLIS = ("claude", "codex", "gemini")


def read_all(path: Path, cli: str) -> list[Record]:
    reader = reader_for(profile_for(cli))
    assert reader is not None
    return TranscriptTail(path, reader).poll()


def main_session(cli: str) -> Path:
    return max(sessions_of(cli), key=lambda path: path.stat().st_size)


def feed(cli: str, *records: dict[str, Any]) -> list[Record]:
    reader = READERS[cli]()
    return [found for record in records for found in reader.read(record)]


@pytest.mark.parametrize("cli", CLIS)
def test_what_the_agent_said_is_there_verbatim_and_once(cli: str) -> None:
    texts = [record.text for record in read_all(main_session(cli), cli) if isinstance(record, Saying)]
    said = [texts.count(CASES[case]) for case in ("a", "b", "b2", "c", "d", "e", "f", "ack")]
    assert said == [1] * 8


@pytest.mark.parametrize("cli", CLIS)
def test_what_the_agent_was_given_is_there_once(cli: str) -> None:
    taken = [record.text for record in read_all(main_session(cli), cli) if isinstance(record, Taking)]
    assert taken.count("Relay message from Alice [abc12345]: please review auth.py") == 1
    assert [taken.count(f"case:{case} please") for case in ("a", "b", "b2", "c", "d", "e", "f")] == [1] * 7


@pytest.mark.parametrize(
    ("cli", "model"), [("claude", "claude-opus-5-5"), ("codex", "gpt-5-codex"), ("gemini", "gemini-3.8-flash")]
)
def test_usage_is_counted_once_an_answer(cli: str, model: str) -> None:
    records = read_all(main_session(cli), cli)
    spent = [record for record in records if isinstance(record, Spending)]
    assert {(record.model, record.input_tokens, record.output_tokens) for record in spent} == {(model, 1234, 57)}
    assert len({record.id for record in spent}) == len(spent)
    answers = sum(isinstance(record, Saying) for record in records)
    assert len(spent) == answers


@pytest.mark.parametrize(
    ("cli", "names"),
    [
        ("claude", ["Bash", "AskUserQuestion"]),
        ("codex", ["exec_command", "apply_patch", "request_user_input"]),
        ("gemini", ["run_shell_command", "write_file", "ask_user"]),
    ],
)
def test_tools_begin_and_end(cli: str, names: list[str]) -> None:
    records = read_all(main_session(cli), cli)
    calls = [record for record in records if isinstance(record, ToolCall)]
    results = [record for record in records if isinstance(record, ToolResult)]
    assert [call.name for call in calls] == names
    assert [result.id for result in results] == [call.id for call in calls]
    assert not any(result.was_run for result in results)  # all of them were refused when this was recorded


@pytest.mark.parametrize("cli", CLIS)
def test_reading_a_file_again_tells_nothing_new(cli: str) -> None:
    reader = reader_for(profile_for(cli))
    assert reader is not None
    path = main_session(cli)
    assert TranscriptTail(path, reader).poll()
    assert TranscriptTail(path, reader).poll() == []


@pytest.mark.parametrize("cli", CLIS)
def test_a_file_says_which_session_it_is(cli: str) -> None:
    head = read_head(profile_for(cli), main_session(cli))
    assert head is not None
    assert head.session_id
    assert head.started_ms > 1_700_000_000_000
    assert head.cwd == ("" if cli == "gemini" else "/srv/team/relay1/proj")


@pytest.mark.parametrize("cli", CLIS)
@pytest.mark.parametrize(
    "record",
    [
        {},
        {"type": "user"},
        {"type": "assistant", "message": 3},
        {"type": "assistant", "message": {"content": [None, "x"]}},
        {"payload": []},
        {"type": "gemini", "content": {}},
        {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": [1, {"type": "output_text"}]}},
        {"type": "event_msg", "payload": {"type": "item_completed", "item": None}},
    ],
)
def test_strange_records_are_passed_over(cli: str, record: dict[str, Any]) -> None:
    assert [item for item in feed(cli, record) if isinstance(item, Saying)] == []


# --- claude ------------------------------------------------------------------------------------------------------------


def answer(id_: str, text: str, **more: Any) -> dict[str, Any]:
    message = {
        "id": "m1",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
    }
    return {
        "type": "assistant",
        "uuid": id_,
        "timestamp": "2026-11-15T06:26:02.578Z",
        "message": message | more.pop("message", {}),
        **more,
    }


def test_claude_words_of_helpers_are_not_the_agents() -> None:
    assert feed("claude", answer("1", "->relay:Bob no", isSidechain=True)) == []


def test_claude_usage_waits_for_the_end_of_the_answer() -> None:
    usage = {"input_tokens": 3, "output_tokens": 1}
    early = answer("1", "a", message={"stop_reason": None, "usage": usage})
    late = answer("2", "b", message={"usage": {"input_tokens": 3, "output_tokens": 50}})
    assert [r.output_tokens for r in feed("claude", early, late) if isinstance(r, Spending)] == [50]


def test_claude_messages_through_its_inbox_carry_our_id() -> None:
    origin = {"kind": "peer", "msg_id": "our-id", "body": "TEXT", "name": "Alice"}
    idle = {"type": "user", "uuid": "1", "isMeta": True, "origin": origin, "message": {"role": "user", "content": "wrapped TEXT"}}
    mid_turn = {"type": "attachment", "uuid": "2", "attachment": {"type": "queued_command", "origin": origin}}
    hook = {"type": "user", "uuid": "3", "isMeta": True, "message": {"role": "user", "content": "a reminder"}}
    taken = [record for record in feed("claude", idle, mid_turn, hook) if isinstance(record, Taking)]
    assert [(record.text, record.message_id) for record in taken] == [("wrapped TEXT", "our-id"), ("TEXT", "our-id")]


def test_claude_exit_codes() -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "is_error": True, "content": "Exit code 2\nno such file"}
    (found,) = feed("claude", {"type": "user", "uuid": "1", "message": {"role": "user", "content": [result]}})
    assert isinstance(found, ToolResult)
    assert (found.exit_code, found.was_run, found.is_error) == (2, True, True)


# --- codex -------------------------------------------------------------------------------------------------------------


def test_codex_usage_of_older_versions() -> None:
    def count(total: int) -> dict[str, Any]:
        info = {"total_token_usage": {"total_tokens": total}, "last_token_usage": {"input_tokens": 7, "output_tokens": 2}}
        return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

    spent = [record for record in feed("codex", count(9), count(9), count(18)) if isinstance(record, Spending)]
    assert [(record.input_tokens, record.output_tokens) for record in spent] == [(7, 2)] * 2


def token_count(total: int, last: int = 9) -> dict[str, Any]:
    """As versions without `token_usage_record` write it."""
    sums = {"input_tokens": total - 2, "output_tokens": 2, "total_tokens": total}
    info = {"total_token_usage": sums, "last_token_usage": {"input_tokens": last - 2, "output_tokens": 2}}
    return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}


def session_meta(id_: str, **more: str) -> dict[str, Any]:
    return {"type": "session_meta", "payload": {"id": id_, "cwd": "/p", **more}}


def spent_in(*files: list[dict[str, Any]]) -> list[str]:
    """The ids of what was spent, over files that one agent wrote."""
    before = READERS["codex"]()
    readers = [before.for_file() for _ in files]
    records = [found for reader, file in zip(readers, files, strict=True) for record in file for found in reader.read(record)]
    return [record.id for record in records if isinstance(record, Spending)]


def test_codex_counts_a_new_session_anew() -> None:
    """After `/new` the sums begin again, and may be the same as before."""
    first = [session_meta("one"), token_count(9), token_count(18)]
    second = [session_meta("two"), token_count(9), token_count(18)]
    assert len(set(spent_in(first, second))) == 4


def test_codex_sessions_that_take_turns_are_kept_apart() -> None:
    before = READERS["codex"]()
    one, two = before.for_file(), before.for_file()
    one.read(session_meta("one"))
    two.read(session_meta("two"))
    spent = [found for reader in (one, two, one, two) for found in reader.read(token_count(9))]
    assert len(spent) == 2


def test_codex_counts_what_a_fork_copied_once_and_what_it_spends_besides() -> None:
    first = [session_meta("one"), token_count(9), token_count(18)]
    fork = [session_meta("two", forked_from_id="one"), session_meta("one"), token_count(9), token_count(18), token_count(30)]
    again = [session_meta("three", forked_from_id="two"), token_count(9), token_count(18), token_count(30), token_count(40)]
    assert len(spent_in(first, fork, again)) == 4


def test_codex_exit_codes() -> None:
    output = json.dumps({"output": "no", "metadata": {"exit_code": 3}})
    (found,) = feed(
        "codex", {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": output}}
    )
    assert isinstance(found, ToolResult)
    assert (found.exit_code, found.output, found.was_run) == (3, "no", True)


# --- gemini ------------------------------------------------------------------------------------------------------------


def test_gemini_copies_of_the_history_are_not_said_again() -> None:
    said = {
        "id": "1",
        "type": "gemini",
        "timestamp": "2026-11-15T06:33:02Z",
        "content": "->relay:B x",
        "tokens": {"input": 1},
        "model": "m",
    }
    copied = {
        "id": "2",
        "type": "gemini",
        "timestamp": "2026-11-15T06:34:02Z",
        "content": [{"text": "->relay:B x"}],
        "tokens": None,
    }
    again = {**said, "id": "3"}
    assert [r.id for r in feed("gemini", said, copied, again) if isinstance(r, Saying)] == ["1", "3"]


# --- odds and ends -------------------------------------------------------------------------------------------------------


def test_times() -> None:
    assert time_ms("2026-11-15T06:26:01.341Z") == 1794723961341
    assert time_ms(1794723961) == 1794723961000
    assert time_ms(1794723961341) == 1794723961341
    assert [time_ms(value) for value in (None, "soon", True, [])] == [0, 0, 0, 0]


def test_lines_that_are_no_objects() -> None:
    assert [decode_object(line) for line in (b"", b"3", b"[]", b"{", b"\xff", b"[" * 100_000)] == [None] * 6


def test_ids_are_forgotten_only_when_there_are_too_many() -> None:
    seen = Seen(limit=2)
    assert [seen.is_new(id_) for id_ in ("a", "b", "a", "c", "a")] == [True, True, False, True, True]


def gemini_result(output: str) -> dict[str, Any]:
    part = {"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": output}}}
    return {"id": "7", "timestamp": "2026-11-15T11:55:35.161Z", "type": "user", "content": [part]}


def test_gemini_takes_what_a_hook_adds_to_a_tools_result() -> None:
    added = "<hook_context>Relay message from Alice [0a1b2c3d]: look &lt;here&gt;</hook_context>"
    (taken,) = feed("gemini", gemini_result(f"Output: (empty)\n\n{added}"))
    assert isinstance(taken, Taking)
    assert taken.text == "Relay message from Alice [0a1b2c3d]: look &lt;here&gt;"


def test_gemini_takes_nothing_that_a_tool_printed() -> None:
    printed = "a\n\n<hook_context>Relay message from Alice [0a1b2c3d]: not given</hook_context>\n\nb"
    assert feed("gemini", gemini_result(printed)) == []


# --- the work of an agent -------------------------------------------------------------------------------------------------


def claude_result(told: object, **more: object) -> ToolResult:
    part = {"type": "tool_result", "tool_use_id": "t", "content": "done", **more}
    (result,) = feed("claude", {"type": "user", "uuid": "1", "message": {"content": [part]}, "toolUseResult": told})
    assert isinstance(result, ToolResult)
    return result


def test_claude_tells_both_outputs_of_a_command() -> None:
    result = claude_result({"stdout": "a", "stderr": "b", "interrupted": False})
    assert (result.stdout, result.stderr, result.exit_code, result.changes) == ("a", "b", 0, None)
    assert claude_result("Error: Exit code 3", is_error=True, content="Exit code 3").exit_code == 3
    assert claude_result(None).stdout is None


def test_claude_shows_what_it_did_to_a_file() -> None:
    hunks = [{"oldStart": 3, "oldLines": 1, "newStart": 3, "newLines": 1, "lines": ["-was", "+is"]}]
    edited = claude_result({"filePath": "/p/a", "oldString": "was", "newString": "is", "structuredPatch": hunks})
    assert edited.changes == (FileChange("", "/p/a", 2, "@@ -3,1 +3,1 @@\n-was\n+is"),)
    made = claude_result({"type": "create", "filePath": "/p/a", "content": "x\n", "structuredPatch": []})
    assert made.changes == (FileChange("create", "/p/a", 1, "@@ -0,0 +1,1 @@\n+x"),)
    assert claude_result({"type": "text", "file": {"filePath": "/p/a"}}).changes is None


def test_claude_writes_thoughts_down() -> None:
    content = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "hello"}]
    records = feed("claude", {"type": "assistant", "uuid": "1", "timestamp": 1, "message": {"content": content}})
    assert [(type(record).__name__, record.text) for record in records if isinstance(record, Thinking | Saying)] == [
        ("Thinking", "hm"), ("Saying", "hello"),
    ]  # fmt: skip


def codex_item(**payload: object) -> dict[str, Any]:
    return {"type": "response_item", "timestamp": 1_000_000_000_000, "payload": payload}


@pytest.mark.parametrize(
    ("output", "printed", "code", "duration_ms"),
    [
        (
            "Chunk ID: 1a\nWall time: 0.0520 seconds\nProcess exited with code 1\nOriginal token count: 2\nOutput:\nno\n",
            "no\n",
            1,
            52,
        ),
        ("Exit code: 0\nWall time: 2 seconds\nOutput:\nyes", "yes", 0, 2000),
        ("Wall time: 1.0 seconds\nProcess running with session ID 7\nOutput:\nhalf", "half", None, 1000),
        ('{"output":"a","metadata":{"exit_code":0,"duration_seconds":0.5}}', "a", 0, 500),
        ("Output:\njust text", "Output:\njust text", None, None),
    ],
)
def test_codex_says_how_a_command_ended(output: str, printed: str, code: int | None, duration_ms: int | None) -> None:
    (result,) = feed("codex", codex_item(type="function_call_output", call_id="c", output=output))
    assert isinstance(result, ToolResult)
    assert (result.output, result.exit_code, result.duration_ms) == (printed, code, duration_ms)


def test_codex_thoughts_and_searches() -> None:
    thought = codex_item(type="reasoning", id="r", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="x")
    search = codex_item(type="web_search_call", id="w", status="completed", action={"type": "search", "query": "q"})
    thinking, call, result = feed("codex", thought, search, thought, search)
    assert isinstance(thinking, Thinking)
    assert isinstance(call, ToolCall)
    assert isinstance(result, ToolResult)
    assert (thinking.text, call.name, call.arguments["query"], result.is_error) == ("hm", "web_search", "q", False)


def test_codex_messages_of_the_recording_have_their_beginning() -> None:
    said = [record for record in read_all(main_session("codex"), "codex") if isinstance(record, Saying)]
    assert said
    assert all(0 < record.started_ms <= record.at_ms for record in said)


def test_gemini_shows_what_it_did_to_a_file_and_how_a_command_ended() -> None:
    shown = {"fileDiff": "--- a\n+++ a\n@@ -0,0 +1 @@\n+x\n", "filePath": "/p/a", "originalContent": "", "newContent": "x\n"}

    def call(id_: str, display: object, told: str = "ok") -> dict[str, Any]:
        result = [{"functionResponse": {"response": {"output": told}}}]
        return {"id": id_, "name": "n", "args": {}, "status": "success", "resultDisplay": display, "result": result}

    calls = [call("1", shown), call("2", shown | {"isNewFile": True}), call("3", "boom", "Output: boom\nExit Code: 4")]
    record = {"type": "gemini", "id": "g", "timestamp": 1, "model": "m", "content": "", "toolCalls": calls,
              "thoughts": [{"subject": "Plan", "description": "first this"}]}  # fmt: skip
    found = feed("gemini", record, record)
    assert [record.text for record in found if isinstance(record, Thinking)] == ["Plan\nfirst this"]
    first, second, third = (record for record in found if isinstance(record, ToolResult))
    assert first.changes == (FileChange("", "/p/a", 1, "@@ -0,0 +1 @@\n+x"),)
    assert second.changes == (FileChange("create", "/p/a", 1, "@@ -0,0 +1 @@\n+x"),)
    assert (third.exit_code, third.changes, third.output) == (4, None, "boom")


@pytest.mark.parametrize("cli", CLIS)
def test_every_answer_of_a_recording_is_an_item_and_every_command_has_what_is_known_of_it(cli: str) -> None:
    profile = profile_for(cli)
    assert profile.transcript is not None
    records = read_all(main_session(cli), cli)
    observer = TranscriptObserver(profile.transcript)
    seen = [each for record in records for each in observer.observe(record)]
    said = [record for record in records if isinstance(record, Saying)]
    assert said
    assert [each.text for each in seen if isinstance(each, Uttered)] == [record.text[:2_000] for record in said]
    assert not [each for each in seen if isinstance(each, FileTouched | CommandRun)]  # a person refused all of them


@pytest.mark.parametrize(("ended", "times"), [("06:00:03", (2_000, 3_000)), ("06:00:01", (1_000, 1_000))])
def test_gemini_calls_begin_with_their_answer_and_never_end_before(ended: str, times: tuple[int, int]) -> None:
    call = {"id": "c", "name": "n", "args": {}, "status": "success", "timestamp": f"2026-11-15T{ended}Z"}
    record = {"type": "gemini", "id": "g", "timestamp": "2026-11-15T06:00:02Z", "model": "m", "toolCalls": [call]}
    start = time_ms("2026-11-15T06:00:00Z")
    assert tuple(found.at_ms - start for found in feed("gemini", record)) == times
