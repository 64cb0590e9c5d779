"""What the session file tells about messages and about how a tool's question ended."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.terminal.doors.claude.record import ClaudeSignals
from agent_relay.terminal.doors.signals import Decided, Given, Queued
from agent_relay.terminal.output.transcripts.claude import ClaudeReader
from agent_relay.terminal.output.transcripts.records import ToolCall, ToolResult


def result(output: str, **more: Any) -> dict[str, Any]:
    part = {"type": "tool_result", "tool_use_id": "t1", "content": output, "is_error": True}
    return {"type": "user", "uuid": "u1", "message": {"role": "user", "content": [part]}, **more}


@pytest.mark.parametrize("kind", ["permission-rule", "user-rejected"])
def test_a_tool_that_was_denied_was_not_run_whatever_the_words(kind: str) -> None:
    (found,) = ClaudeReader().read(result("Denied by Ann: too risky", toolDenialKind=kind))
    assert isinstance(found, ToolResult)
    assert not found.was_run


def test_a_tool_that_failed_was_run() -> None:
    (found,) = ClaudeReader().read(result("Exit code 2"))
    assert isinstance(found, ToolResult)
    assert found.was_run


def test_a_decision_is_known_by_the_call_it_is_about() -> None:
    reader = ClaudeSignals()
    part = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    reader.read({"type": "assistant", "uuid": "a1", "message": {"id": "m1", "content": [part]}})
    reader.read(result("no", toolDenialKind="user-rejected"))
    made = {"type": "hook_permission_decision", "decision": "allow", "toolUseID": "another"}
    reader.read({"type": "attachment", "uuid": "x1", "attachment": made})
    assert reader.take() == [Decided(ToolCall("t1", "Bash", {"command": "make"}, 0), was_run=False, by_hook=False)]
    assert reader.take() == []


def test_what_waits_and_what_was_given_are_told_apart() -> None:
    reader = ClaudeSignals()
    reader.read({"type": "queue-operation", "operation": "enqueue", "content": "one"})
    reader.read({"type": "queue-operation", "operation": "remove", "content": "one", "reason": "absorbed_mid_turn"})
    queued = {"type": "queued_command", "prompt": "<x>one</x>", "origin": {"kind": "peer", "msg_id": "id-1", "body": "one"}}
    reader.read({"type": "attachment", "uuid": "x2", "attachment": queued})
    reader.read({"type": "attachment", "uuid": "x3", "attachment": {"type": "hook_additional_context", "content": ["two", 3]}})
    assert reader.take() == [Queued("one", True), Queued("one", False), Given("one", "id-1"), Given("two\n")]
