"""The agent's work as opencode's recorded events tell it."""

from __future__ import annotations

from typing import Any

from agent_relay.terminal.doors.opencode.events import Notices
from agent_relay.terminal.output.observations import CommandRun, FileTouched, Observation, TokensUsed, ToolEnded, ToolStarted

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
