"""Gemini CLI's hooks as a way in: with a tool's result or at the end of a turn, in order, once, and nothing lost with a turn."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.doors.door import Door, DoorMessage, DoorShut, NotTaken, Whereabouts
from agent_relay.terminal.doors.gemini import hooks as gemini_hooks
from agent_relay.terminal.doors.gemini.hooks import MAX_CONTEXT_CHARACTERS, GeminiHooks
from agent_relay.terminal.doors.gemini.record import KNOWN
from agent_relay.terminal.doors.hooks import hook_words
from tests.unit.terminal.doors.gemini_cli import Stage, message, play
from tests.unit.terminal.doors.heard import Heard, until

SHELL: dict[str, Any] = {"command": "make"}


async def working(stage: Stage, text: str = "go") -> Door:
    door = await stage.open()
    await stage.cli.prompt(text)
    return door


async def hand(door: Door, *messages: DoorMessage) -> None:
    for one in messages:
        await door.deliver(one)


async def read(stage: Stage, *numbers: int) -> None:
    wanted = [message(number).id for number in numbers]
    await until(lambda: len(stage.heard.read) >= len(wanted), f"{wanted} are read, and not {stage.heard.all}")
    assert stage.heard.read == wanted


def ids(entries: list[Any]) -> list[str]:
    return [entry[0] for entry in entries]


# --- opening -------------------------------------------------------------------------------------------------------------


def test_it_opens_with_the_first_hook() -> None:
    async def scene(stage: Stage) -> None:
        door = await stage.open()
        assert not door.can_start_turns
        assert stage.heard.of("session") == [stage.cli.session_id[:8]]

    play(scene)


def test_it_does_not_open_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemini_hooks, "START_S", 0.1)

    async def scene(stage: Stage) -> None:
        with pytest.raises(DoorShut, match="none of the relay's hooks"):
            await stage.door().open()

    play(scene)


def test_a_place_where_nothing_can_be_listened_to() -> None:
    async def scene(stage: Stage) -> None:
        door = GeminiHooks(stage.place, {"hooks": "/proc/none/hooks.sock"}, stage.heard)
        with pytest.raises(DoorShut, match="listened"):
            await door.open()
        await door.close()

    play(scene)


def test_closed_it_takes_nothing_and_leaves_nothing() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        await door.close()
        with pytest.raises(DoorShut):
            await hand(door, message(2))
        assert sorted(os.listdir(stage.place.folder)) == ["gemini-hook.sh", KNOWN.name]
        assert await stage.cli.end() == ""
        assert stage.heard.of("refused") == []

    play(scene)


# --- handing over --------------------------------------------------------------------------------------------------------


def test_an_idle_agent_is_not_reached_this_way() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        stage.cli.say()
        assert await stage.cli.end() == ""
        with pytest.raises(NotTaken, match="idle"):
            await hand(door, message(1))

    play(scene)


def test_a_burst_goes_together_and_in_order_at_the_end_of_the_turn() -> None:
    burst = [message(number, f"use <b> {number}") for number in range(20)]

    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, *burst)
        assert await door.look_up(burst[0]) is Whereabouts.HELD
        assert await stage.cli.use_tool("run_shell_command", SHELL) == ""  # it would come with other signs
        stage.cli.say()
        assert await stage.cli.end() == "\n\n".join(one.text for one in burst)
        await read(stage, *range(20))
        assert await door.look_up(burst[7]) is Whereabouts.READ
        assert await door.look_up(message(99)) is Whereabouts.NOWHERE
        stage.cli.say()
        assert await stage.cli.end() == ""

    play(scene)


def test_a_burst_goes_with_a_tools_result() -> None:
    burst = [message(number) for number in range(20)]

    async def scene(stage: Stage) -> None:
        door = await working(stage)
        assert await stage.cli.use_tool("run_shell_command", SHELL) == ""
        await hand(door, *burst)
        assert await stage.cli.use_tool("run_shell_command", SHELL) == "\n\n".join(one.text for one in burst)
        await read(stage, *range(20))
        assert await stage.cli.use_tool("run_shell_command", SHELL) == ""
        stage.cli.say()
        assert await stage.cli.end() == ""

    play(scene)


def test_order_is_kept_where_not_all_can_go_with_a_tool() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1), message(2, "a < b"), message(3))
        assert await stage.cli.use_tool("run_shell_command", SHELL) == message(1).text
        await hand(door, message(4, "x" * MAX_CONTEXT_CHARACTERS))
        assert await stage.cli.use_tool("run_shell_command", SHELL) == ""
        stage.cli.say()
        rest = [message(2, "a < b"), message(3), message(4, "x" * MAX_CONTEXT_CHARACTERS)]
        assert await stage.cli.end() == "\n\n".join(one.text for one in rest)
        await read(stage, 1, 2, 3, 4)

    play(scene)


def test_a_helpers_tool_does_not_get_the_agents_messages() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await stage.cli.hook("BeforeTool", tool_name="invoke_agent", tool_input={})
        await hand(door, message(1))
        assert await stage.cli.use_tool("run_shell_command", SHELL) == ""
        given = {"tool_name": "invoke_agent", "tool_input": {}, "tool_response": {}}
        output = await stage.cli.hook("AfterTool", **given)
        assert output["hookSpecificOutput"]["additionalContext"] == message(1).text

    play(scene)


def test_a_tool_that_failed_carries_nothing() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        assert await stage.cli.use_tool("run_shell_command", SHELL, "not found") == ""
        stage.cli.say()
        assert await stage.cli.end() == message(1).text

    play(scene)


def test_what_a_tools_result_lost_is_given_at_the_end_and_no_third_time() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        assert await stage.cli.use_tool("run_shell_command", SHELL, is_told=False) == message(1).text
        stage.cli.say()
        output = await stage.cli.hook("AfterAgent")
        assert output["reason"] == message(1).text
        assert stage.heard.read == []
        assert await stage.cli.hook("AfterAgent") == {}
        assert ids(stage.heard.of("refused")) == ["msg_0001"]

    play(scene)


def test_a_notice_without_a_mark_is_known_by_its_words() -> None:
    notice = DoorMessage("notice-1", "u", "relay", "Relay notice: not sent.", "Relay notice: not sent.")

    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, notice)
        assert await stage.cli.end() == notice.text
        await until(lambda: stage.heard.read == ["notice-1"], "it is read")
        assert await stage.cli.end() == ""

    play(scene)


def test_reading_is_not_claimed_before_the_file_has_it() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        output = await stage.cli.hook("AfterAgent")
        await stage.cli.hook("BeforeAgent", prompt=output["reason"])
        assert stage.heard.read == []
        assert await door.look_up(message(1)) is Whereabouts.HELD
        stage.cli.record("user", [{"text": output["reason"]}])
        await read(stage, 1)

    play(scene)


def test_a_session_without_a_file_is_believed_by_its_hooks() -> None:
    async def scene(stage: Stage) -> None:
        stage.cli.keeps_file = False
        door = await working(stage)
        await hand(door, message(1))
        assert await stage.cli.use_tool("run_shell_command", SHELL) == ""  # nothing would tell that it arrived
        assert await stage.cli.end() == message(1).text
        assert stage.heard.of("read") == [("msg_0001", "hook")]
        assert await door.look_up(message(1)) is Whereabouts.UNKNOWN

    play(scene)


# --- turns that end in another way ---------------------------------------------------------------------------------------


def test_a_cancelled_turn_gives_back_what_was_not_read_and_tells_again_what_was() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        await stage.cli.use_tool("run_shell_command", SHELL)
        await read(stage, 1)
        await hand(door, message(2, "<2>"), message(3))
        stage.cli.cancel()
        assert await stage.cli.end() == ""  # the hook is run all the same, and its answer dropped
        assert ids(stage.heard.of("refused")) == ["msg_0002", "msg_0003"]
        with pytest.raises(NotTaken):
            await hand(door, message(4))
        added = await stage.cli.prompt("go on")
        assert message(1).text in added
        assert "you are Bob" in added  # that was taken back too
        stage.cli.say()
        assert await stage.cli.end() == ""
        assert await stage.cli.prompt("more") == ""

    play(scene)


def test_a_cancelled_turn_is_noticed_without_a_hook() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        stage.cli.cancel()
        await until(lambda: ids(stage.heard.of("refused")) == ["msg_0001"], "it is given back")

    play(scene)


def test_a_turn_whose_end_nobody_told() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1), message(2, "<2>"))
        assert await stage.cli.use_tool("run_shell_command", SHELL, is_told=False) == message(1).text
        await stage.cli.prompt("another")
        assert await stage.cli.end() == f"{message(1).text}\n\n{message(2, '<2>').text}"
        await read(stage, 1, 2)

    play(scene)


@pytest.mark.parametrize("ends_by_hook", [True, False])
def test_what_a_version_that_was_not_tested_may_have_shown_is_not_handed_over_again(ends_by_hook: bool) -> None:
    """Its session file may tell it in another way."""

    async def scene(stage: Stage) -> None:
        stage.prepared.facts["version"] = "99.1.0"
        door = await working(stage)
        await hand(door, message(1), message(2, "<2>"))
        assert await stage.cli.use_tool("run_shell_command", SHELL, is_told=False) == message(1).text
        if not ends_by_hook:
            await stage.cli.prompt("another")
        assert await stage.cli.end() == message(2, "<2>").text
        await read(stage, 2)
        assert ids(stage.heard.of("refused")) == ["msg_0001"]
        assert stage.heard.given_back == {"msg_0001"}

    play(scene)


def test_an_end_that_another_hook_insists_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemini_hooks, "UNTAKEN_S", 0.3)

    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        await stage.cli.hook("AfterAgent")
        await until(lambda: ids(stage.heard.of("refused")) == ["msg_0001"], "it is given back")

    play(scene)


def test_a_long_silence_gives_back_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gemini_hooks, "QUIET_S", 0.3)

    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await stage.cli.ask(type="exec", title="Confirm", command="make")
        await hand(door, message(1), message(2))
        await asyncio.sleep(0.6)  # a person may take as long as they like
        assert stage.heard.of("refused") == []
        await stage.cli.use_tool("run_shell_command", SHELL, "failed")
        await until(lambda: ids(stage.heard.of("refused")) == ["msg_0001", "msg_0002"], "they are given back")

    play(scene)


def test_what_was_handed_over_long_ago_is_not_there_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an agent that is idle is asked about: no tool runs that could still bring it."""

    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        assert await stage.cli.use_tool("run_shell_command", SHELL, is_told=False) == message(1).text
        assert await door.look_up(message(1)) is Whereabouts.HELD
        monkeypatch.setattr(gemini_hooks, "QUIET_S", -1.0)
        assert await door.look_up(message(1)) is Whereabouts.NOWHERE

    play(scene)


def test_hooks_that_are_not_run_any_more() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        for _ in range(gemini_hooks.UNHEARD_ANSWERS):
            stage.cli.say()
        await until(lambda: stage.heard.of("lost"), "it is lost")
        stage.cli.say()
        with pytest.raises(DoorShut):
            await hand(door, message(2))
        assert await door.look_up(message(1)) is Whereabouts.NOWHERE
        assert await stage.cli.end() == ""
        assert len(stage.heard.of("lost")) == 1

    play(scene)


def test_clearing_begins_another_session() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        await stage.cli.clear()
        assert ids(stage.heard.of("refused")) == ["msg_0001"]
        assert "you are Bob" in await stage.cli.prompt("go")
        await hand(door, message(2))
        assert await stage.cli.end() == message(2).text
        await read(stage, 2)
        assert len(set(stage.heard.of("session"))) == 2

    play(scene)


# --- a later wrapper -----------------------------------------------------------------------------------------------------


def test_a_later_wrapper_finds_what_was_read() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1), message(2, "<2>"), message(3))
        await stage.cli.use_tool("run_shell_command", SHELL)
        await read(stage, 1)
        await door.close()
        heard = Heard()
        later = stage.door(heard)
        await later.open()  # without another hook
        assert heard.of("session") == [stage.cli.session_id[:8]]
        assert await later.look_up(message(1)) is Whereabouts.READ
        assert await later.look_up(message(2, "<2>")) is Whereabouts.NOWHERE
        await hand(later, message(2, "<2>"))  # it may be working: nobody knows
        assert await stage.cli.end() == message(2, "<2>").text
        await until(lambda: heard.read == ["msg_0002"], "it is read")
        assert await stage.cli.prompt("more") == ""  # introduced before

    play(scene)


def test_what_is_remembered_may_be_garbage() -> None:
    async def scene(stage: Stage) -> None:
        Path(stage.place.folder, KNOWN.name).write_text('{"sessions": 7')
        door = await stage.open()
        assert await door.look_up(message(1)) is Whereabouts.NOWHERE

    play(scene)


# --- peers that talk nonsense --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {}, {"session_id": 7, "transcript_path": ["x"], "prompt": {}}, {"session_id": "s", "transcript_path": "not/absolute"},
        {"session_id": "s", "transcript_path": "/nowhere/at/all.jsonl", "tool_name": None, "tool_input": [], "tool_response": 1},
        {"notification_type": "ToolPermission", "details": "none"}, {"notification_type": 3},
    ],
)  # fmt: skip
def test_hooks_that_say_nonsense(given: dict[str, Any]) -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        hooks = door._take_hook  # type: ignore[attr-defined]
        for event in (
            "SessionStart",
            "BeforeAgent",
            "BeforeTool",
            "BeforeAnyTool",
            "AfterTool",
            "Notification",
            "Other",
            "AfterAgent",
        ):
            await hooks(event, given)
        assert stage.heard.of("lost") == []
        await stage.cli.prompt("go")
        await hand(door, message(1))
        assert await stage.cli.end() == message(1).text

    play(scene)


def test_a_session_file_of_nonsense() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        with stage.cli.transcript.open("ab") as file:
            file.write(b'\xff\xfe{"id"\n[1, 2]\n{"type": "user", "content": 7}\n{"type": "info", "content": {}}\n')
            content = [{"functionResponse": 3}, {"functionResponse": {"response": {"output": ["x"]}}}]
            file.write(json.dumps({"id": "z", "type": "user", "content": content}).encode() + b"\n")
        assert await stage.cli.end() == message(1).text
        await read(stage, 1)

    play(scene)


def test_a_stranger_without_the_token_gets_nothing() -> None:
    async def scene(stage: Stage) -> None:
        door = await working(stage)
        await hand(door, message(1))
        socket = stage.prepared.facts["hooks"]
        Path(f"{socket}.token").write_text("guessed")
        process = await asyncio.create_subprocess_exec(
            *hook_words(socket, "AfterAgent", 5), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await process.communicate(b"{}")
        assert output == b""
        assert await door.look_up(message(1)) is Whereabouts.HELD

    play(scene)
