"""Claude Code's hooks as a way in: only while the agent works, several at once, and nothing kept when it is idle."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from agent_relay.terminal.doors.claude import record as claude_record
from agent_relay.terminal.doors.claude import session as claude_session
from agent_relay.terminal.doors.door import DoorShut, DoorState, NotTaken, Whereabouts
from agent_relay.terminal.doors.spool import MAX_BYTES
from tests.unit.terminal.doors.claude_cli import Stage, message, play, until


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_record, "WRITTEN_S", 0.1)


def context(output: str) -> str:
    return json.loads(output)["hookSpecificOutput"]["additionalContext"] if output else ""


def note_context(stage: Stage, text: str) -> None:
    """As the session file has it."""
    given: dict[str, Any] = {"type": "hook_additional_context", "content": [text], "hookEvent": "Stop"}
    stage.cli.write({"type": "attachment", "attachment": given})


def test_an_idle_agent_is_not_reached_this_way() -> None:
    async def scene(stage: Stage) -> None:
        _, stop = stage.doors()
        assert not stop.can_start_turns
        await stage.start()
        await stop.open()
        with pytest.raises(NotTaken, match="idle"):
            await stop.deliver(message(1))

    play(scene)


@pytest.mark.parametrize("event", ["Stop", "PostToolUse"])
def test_what_waits_goes_together_and_in_order(event: str) -> None:
    async def scene(stage: Stage) -> None:
        stop = await stage.open_stop()
        assert await stage.cli.run_hook(stage.settings, event) == ""
        for number in range(20):
            await stop.deliver(message(number))
        assert await stop.look_up(message(0)) is Whereabouts.HELD
        output = await stage.cli.run_hook(stage.settings, event)
        assert json.loads(output)["hookSpecificOutput"]["hookEventName"] == event
        assert context(output) == "\n\n".join(message(number).text for number in range(20))
        assert stage.heard.of("read") == []
        note_context(stage, context(output))
        assert [entry[0] for entry in await stage.heard.until("read", 20)] == [message(number).id for number in range(20)]
        assert await stop.look_up(message(7)) is Whereabouts.READ
        assert await stage.cli.run_hook(stage.settings, event) == ""

    play(scene)


def test_long_ones_go_in_several_parts_and_the_longest_another_way() -> None:
    async def scene(stage: Stage) -> None:
        stop = await stage.open_stop()
        half = "é" * (MAX_BYTES // 4)
        await stop.deliver(message(1, half))
        await stop.deliver(message(2, half))
        await stop.deliver(message(3, half * 2))
        assert [entry[0] for entry in await stage.heard.until("refused")] == ["msg_0003"]
        assert context(await stage.cli.run_hook(stage.settings, "Stop")) == message(1, half).text
        assert context(await stage.cli.run_hook(stage.settings, "Stop")) == message(2, half).text

    play(scene)


def test_a_helpers_tool_does_not_get_the_agents_messages() -> None:
    async def scene(stage: Stage) -> None:
        stop = await stage.open_stop()
        await stop.deliver(message(1))
        assert await stage.cli.run_hook(stage.settings, "PostToolUse", agent_id="a1") == ""
        assert context(await stage.cli.run_hook(stage.settings, "PostToolUse")) == message(1).text

    play(scene)


def test_what_no_hook_asked_for_is_given_back_when_the_turn_is_over() -> None:
    async def scene(stage: Stage) -> None:
        stop = await stage.open_stop()
        await stop.deliver(message(1))
        await stop.deliver(message(2))
        stage.cli.be("idle")
        assert [entry[0] for entry in await stage.heard.until("refused", 2)] == ["msg_0001", "msg_0002"]
        assert await stage.cli.run_hook(stage.settings, "Stop") == ""
        assert await stop.look_up(message(1)) is Whereabouts.NOWHERE

    play(scene)


def test_what_a_hook_gave_in_vain_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_session, "UNREAD_S", 0.3)

    async def scene(stage: Stage) -> None:
        stop = await stage.open_stop()
        await stop.deliver(message(1))
        assert await stage.cli.run_hook(stage.settings, "Stop")
        stage.cli.be("idle")
        assert [entry[0] for entry in await stage.heard.until("refused")] == ["msg_0001"]

    assert play(scene).heard.of("lost") == []


def test_it_follows_the_inbox_with_the_same_hooks() -> None:
    async def scene(stage: Stage) -> None:
        inbox, stop = stage.doors()
        await stage.start()
        await inbox.open()
        stage.cli.inbox.unlink()
        with pytest.raises(DoorShut):
            await inbox.deliver(message(1))
        await inbox.close()
        stage.cli.be("busy")
        await stop.open()
        await until(lambda: ("state", DoorState.WORKING, "") in stage.heard.all, "it is seen to work")
        await stop.deliver(message(1))
        assert context(await stage.cli.run_hook(stage.settings, "Stop")) == message(1).text

    play(scene)


def test_the_mark_for_hooks_is_gone_when_it_closes() -> None:
    async def scene(stage: Stage) -> None:
        stop = await stage.open_stop()
        await stop.deliver(message(1))
        assert "claude-waiting" in os.listdir(stage.place.folder)
        await stop.close()
        assert "claude-waiting" not in os.listdir(stage.place.folder)

    play(scene)
