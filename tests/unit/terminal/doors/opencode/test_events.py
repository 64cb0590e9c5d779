"""The agent's work as opencode's recorded events tell it."""

from __future__ import annotations

from typing import Any

from agent_relay.terminal.doors.opencode.events import Notices
from agent_relay.terminal.output.observations import (
    CommandRun,
    FileTouched,
    Observation,
    TokensUsed,
    ToolEnded,
    ToolStarted,
    Uttered,
)

COMMAND = {"command": "rm -rf build", "description": "Run the command"}
GIVEN = '{"command":"rm -rf build","description":"Run the command"}'
RUNNING = {"status": "running", "input": COMMAND, "time": {"start": 1_794_742_847_509}}
COMPLETED = {
    "status": "completed", "input": COMMAND, "output": "(no output)", "title": "rm -rf build",
    "metadata": {"output": "(no output)", "exit": 0, "truncated": False},
    "time": {"start": 1_794_742_847_509, "end": 1_794_742_848_550},
}  # fmt: skip


def tool(state: dict[str, Any], name: str = "bash") -> dict[str, Any]:
    return {"id": "prt_1", "type": "tool", "tool": name, "callID": "call_1", "messageID": "msg_1", "state": state}


def noticed(*parts: dict[str, Any]) -> list[Observation]:
    found: list[Observation] = []
    notices = Notices(found.append)
    notices.note_message({"id": "msg_1", "role": "assistant", "modelID": "some-model"})
    for part in parts:
        notices.note_part(part)
    return found


def test_a_command_from_its_start_to_its_end_told_once() -> None:
    pending = {"status": "pending", "input": {}, "raw": ""}
    assert noticed(tool(pending), tool(RUNNING), tool(RUNNING), tool(COMPLETED), tool(COMPLETED)) == [
        ToolStarted("call_1", "bash", GIVEN),
        ToolEnded("call_1", "bash", False, "(no output)"),
        CommandRun("rm -rf build", 0, 1_041, "(no output)"),
    ]


def test_a_refused_command_was_not_run() -> None:
    refused = {"status": "error", "input": COMMAND, "error": "The user rejected permission", "time": {"start": 1, "end": 2}}
    assert noticed(tool(RUNNING), tool(refused)) == [
        ToolStarted("call_1", "bash", GIVEN),
        ToolEnded("call_1", "bash", True, "The user rejected permission"),
    ]


def test_a_file_that_was_changed() -> None:
    state = {"status": "completed", "input": {"filePath": "/a/b.py"}, "output": "", "time": {"start": 1, "end": 2}}
    assert noticed(tool(state, "edit"))[-1] == FileTouched("edit", "/a/b.py")


def test_the_lines_that_were_changed() -> None:
    diff = "--- /a/b.py\n+++ /a/b.py\n@@ -1 +1 @@\n-was\n+is\n"
    state = {"status": "completed", "output": "", "time": {"start": 1, "end": 2}}
    edited = state | {"input": {"filePath": "/a/b.py"}, "metadata": {"diff": diff}}
    assert noticed(tool(edited, "edit"))[-1] == FileTouched("edit", "/a/b.py", 2, "@@ -1 +1 @@\n-was\n+is")
    made = state | {"input": {"filePath": "/a/n", "content": "x"}, "metadata": {"exists": False}}
    assert noticed(tool(made, "write"))[-1] == FileTouched("create", "/a/n", 1, "@@ -0,0 +1,1 @@\n+x")
    files = [{"filePath": "/a/b.py", "type": "delete", "patch": diff}, {"filePath": "/a/c", "type": "add", "patch": ""}]
    patched = state | {"input": {"patchText": "…"}, "metadata": {"files": files}}
    assert noticed(tool(patched, "apply_patch"))[-2:] == [
        FileTouched("delete", "/a/b.py", 2, "@@ -1 +1 @@\n-was\n+is"), FileTouched("create", "/a/c"),
    ]  # fmt: skip


def test_thoughts_are_told_once_they_are_whole() -> None:
    part = {"id": "prt_3", "type": "reasoning", "messageID": "msg_1", "text": "hm", "time": {"start": 5}}
    assert noticed(part) == []
    assert noticed(part, part | {"time": {"start": 5, "end": 9}}) == [Uttered("prt_3", "thinking", "hm", 9, 5)]


def test_the_tokens_of_an_answer() -> None:
    tokens = {"total": 1260, "input": 1200, "output": 60, "reasoning": 0, "cache": {"write": 3, "read": 5}}
    step = {"id": "prt_2", "type": "step-finish", "messageID": "msg_1", "reason": "stop", "tokens": tokens, "cost": 0}
    assert noticed(step, step) == [TokensUsed(1200, 60, "some-model", 5, 3, id="prt_2")]


def test_what_is_not_understood_is_passed_over() -> None:
    parts: list[dict[str, Any]] = [
        {}, {"type": "tool"}, {"type": "tool", "state": 5}, {"type": ["tool"]},
        {"type": "tool", "callID": 1, "state": {"status": "running", "input": [], "time": 7}},
    ]  # fmt: skip
    assert noticed(*parts) == [ToolStarted("", "")]
