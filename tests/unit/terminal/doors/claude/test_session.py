"""What Claude Code's hooks tell beside messages and permissions: its tools, that it waits, and that its session is over."""

from __future__ import annotations

from typing import Any

import pytest

from agent_relay.terminal.doors.claude import session as claude_session
from agent_relay.terminal.doors.claude.session import TOOL_ENDED, TOOL_STARTED, observe_tool
from agent_relay.terminal.doors.door import DoorState
from agent_relay.terminal.output.observations import ToolEnded, ToolStarted
from tests.unit.terminal.doors.claude_cli import Stage, play
from tests.unit.terminal.doors.heard import until

TOOL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"}


@pytest.mark.parametrize(
    ("response", "is_error", "output"),
    [
        ({"stdout": "a", "stderr": "b", "interrupted": False}, False, "a\nb"),
        ({"stdout": "", "stderr": "", "interrupted": True}, True, ""),
        ({"filePath": "/x"}, False, '{"filePath":"/x"}'),
        ("plain", False, "plain"),
        (None, False, ""),
    ],
)
def test_a_tool_is_told_with_what_it_was_given_and_what_it_said(response: Any, is_error: bool, output: str) -> None:
    assert observe_tool(TOOL_STARTED, TOOL) == ToolStarted("toolu_1", "Bash", '{"command":"ls"}')
    assert observe_tool(TOOL_ENDED, {**TOOL, "tool_response": response}) == ToolEnded("toolu_1", "Bash", is_error, output)


def test_a_hook_tells_what_kind_of_work_begins() -> None:
    tool = {**TOOL, "tool_name": "Bash", "tool_input": {"command": "pytest -q"}}
    started = observe_tool(TOOL_STARTED, tool)
    assert isinstance(started, ToolStarted)
    assert started.item_type == "test_run"
    searched = observe_tool(TOOL_STARTED, {**TOOL, "tool_name": "Grep", "tool_input": {}})
    assert isinstance(searched, ToolStarted)
    assert searched.item_type == "search"


def test_a_helpers_tool_and_one_without_an_id_are_not_told() -> None:
    assert observe_tool(TOOL_STARTED, {**TOOL, "agent_id": "a1"}) is None
    assert observe_tool(TOOL_ENDED, {"tool_name": "Bash"}) is None


def test_tools_are_told_by_either_door() -> None:
    async def scene(stage: Stage) -> None:
        await stage.start()
        stage.cli.be("busy")
        for number, door in enumerate(stage.doors(), 1):
            await door.open()
            tool = {**TOOL, "tool_use_id": f"toolu_{number}"}
            assert await stage.cli.run_hook(stage.settings, "PreToolUse", **tool) == ""
            await until(lambda number=number: len(stage.heard.of("noticed")) == 2 * number - 1, "it is told")  # type: ignore[misc]
            assert await stage.cli.run_hook(stage.settings, "PostToolUse", **tool, tool_response={"stdout": "a"}) == ""
            await until(lambda number=number: len(stage.heard.of("noticed")) == 2 * number, "its end is told")  # type: ignore[misc]
            await door.close()

    told = play(scene).heard.of("noticed")
    assert [(type(seen), seen.id) for (seen,) in told] == [
        (kind, f"toolu_{number}") for number in (1, 2) for kind in (ToolStarted, ToolEnded)
    ]


def test_a_session_that_says_that_it_ends_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record may be missing while it is written anew; after its own word it is gone."""
    monkeypatch.setattr(claude_session, "GONE_S", 3_600.0)

    async def scene(stage: Stage) -> None:
        await stage.open_inbox()
        await stage.cli.run_hook(stage.settings, "SessionEnd", reason="prompt_input_exit")
        stage.cli.record_path.unlink()
        await until(lambda: stage.heard.of("lost"), "the end is noticed")

    assert play(scene).heard.of("lost") == [("The session of Claude Code has ended.",)]


def test_a_session_that_is_cleared_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_session, "GONE_S", 3_600.0)
    looks: list[object] = []
    note_record = claude_session.ClaudeSession._note_record

    def count(self: claude_session.ClaudeSession, record: Any, now: float) -> None:
        looks.append(record)
        note_record(self, record, now)

    monkeypatch.setattr(claude_session.ClaudeSession, "_note_record", count)

    async def scene(stage: Stage) -> None:
        await stage.open_inbox()
        await stage.cli.run_hook(stage.settings, "SessionEnd", reason="clear")
        await until(lambda: looks, "it is looked at")
        stage.cli.record_path.unlink()
        await until(lambda: None in looks, "its record is missing")

    assert play(scene).heard.of("lost") == []


def test_that_it_waits_is_told_by_a_notification_where_its_record_says_nothing_we_know() -> None:
    async def scene(stage: Stage) -> None:
        inbox = await stage.open_inbox()
        notice = {"notification_type": "permission_prompt", "message": "Claude needs your permission"}
        stage.cli.be("pondering")  # of a version to come
        await stage.cli.run_hook(stage.settings, "UserPromptSubmit", prompt="x")
        await inbox.look()  # type: ignore[attr-defined]
        await stage.cli.run_hook(stage.settings, "Notification", **notice)
        await until(lambda: len(stage.heard.of("state")) == 2, "it is told")

    assert play(scene).heard.of("state")[-1] == (DoorState.WAITING, "Claude needs your permission")
