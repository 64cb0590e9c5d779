"""What Gemini CLI asks: others hear of it, the person answers, and only before the dialog can it be refused from outside."""

from __future__ import annotations

import asyncio

import pytest

from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen, Resolution
from agent_relay.terminal.doors.gemini.requests import GeminiRequests
from tests.unit.terminal.doors.gemini_cli import Stage, play
from tests.unit.terminal.doors.heard import Heard, until

COMMAND = {"command": "rm -rf build", "description": "Run the command"}
DETAILS = {"type": "exec", "title": "Confirm Shell Command", "command": "rm -rf build", "rootCommand": "rm"}
OPTIONS = [{"label": "SQLite"}, {"label": "PostgreSQL"}]
QUESTIONS = {"questions": [{"question": "Which database?", "options": OPTIONS}, {"question": "Why?", "type": "text"}]}


async def resolved(stage: Stage, *wanted: tuple[str, Resolution, str]) -> None:
    await until(lambda: stage.heard.of("resolved") == [*wanted], f"{wanted}, and not {stage.heard.all}")


@pytest.mark.parametrize(
    ("status", "resolution"), [("success", Resolution.ALLOWED), ("cancelled", Resolution.DENIED), ("error", Resolution.ALLOWED)]
)
def test_the_person_decides(status: str, resolution: Resolution) -> None:
    async def scene(stage: Stage) -> None:
        door = await stage.open()
        await stage.cli.prompt("clean up")
        answer = stage.cli.say()
        await stage.cli.ask(**DETAILS)
        (request,) = stage.heard.of("asked")
        assert (request.kind, request.tool, request.subject) == ("permission", "run_shell_command", "rm -rf build")
        assert not request.can_allow
        for decision in (Decision(True), Decision(False)):
            with pytest.raises(DoorError, match="only the person"):
                await door.answer(request.id, decision)
        stage.cli.end_tool(answer, "run_shell_command", COMMAND, status)
        await resolved(stage, (request.id, resolution, "person"))
        with pytest.raises(NotOpen):
            await door.answer(request.id, Decision(False))

    play(scene)


def test_a_tool_that_ran_was_permitted() -> None:
    """Long before the file tells, where several tools run at once."""

    async def scene(stage: Stage) -> None:
        await stage.open()
        await stage.cli.prompt("clean up")
        await stage.cli.ask(**DETAILS)
        await stage.cli.ask(type="edit", title="Confirm Write: a.txt", filePath="/srv/project/src/a.txt")
        first, second = stage.heard.of("asked")
        await stage.cli.use_tool("write_file", {"file_path": "./src/a.txt"}, is_told=False)
        await resolved(stage, (second.id, Resolution.ALLOWED, "person"))
        await stage.cli.use_tool("run_shell_command", COMMAND, is_told=False)
        await resolved(stage, (second.id, Resolution.ALLOWED, "person"), (first.id, Resolution.ALLOWED, "person"))

    play(scene)


def test_questions_are_told_whole() -> None:
    async def scene(stage: Stage) -> None:
        await stage.open()
        await stage.cli.prompt("choose")
        await stage.cli.hook("BeforeTool", tool_name="ask_user", tool_input=QUESTIONS)
        await stage.cli.ask(type="ask_user", title="Answer")
        one, two = stage.heard.of("asked")
        assert (one.kind, one.question, one.options) == ("question", "Which database?", ("SQLite", "PostgreSQL"))
        assert (two.question, two.options) == ("Why?", ())
        await stage.cli.use_tool("ask_user", QUESTIONS, is_told=False)
        await resolved(stage, (one.id, Resolution.ANSWERED, "person"), (two.id, Resolution.ANSWERED, "person"))

    play(scene)


@pytest.mark.parametrize("ending", ["end", "cancel", "clear"])
def test_what_is_open_when_the_turn_ends_is_gone(ending: str) -> None:
    async def scene(stage: Stage) -> None:
        await stage.open()
        await stage.cli.prompt("fetch")
        await stage.cli.ask(type="mcp", title="Confirm MCP", serverName="files", toolName="erase", toolDisplayName="erase")
        (request,) = stage.heard.of("asked")
        assert request.tool == "erase"
        if ending == "end":
            await stage.cli.end()
        elif ending == "cancel":
            stage.cli.cancel()
        else:
            await stage.cli.clear()
        await resolved(stage, (request.id, Resolution.GONE, ""))

    play(scene)


# --- the time before the dialog ------------------------------------------------------------------------------------------


async def begin_tool(stage: Stage, name: str = "run_shell_command") -> asyncio.Task[dict[str, object]]:
    await stage.open()
    await stage.cli.prompt("clean up")
    return asyncio.create_task(stage.cli.hook("BeforeTool", tool_name=name, tool_input=COMMAND))


def test_refused_in_time() -> None:
    async def scene(stage: Stage) -> None:
        tool = await begin_tool(stage)
        await until(lambda: stage.heard.of("asked"), "it is asked")
        (request,) = stage.heard.of("asked")
        door = stage.made[0]
        with pytest.raises(DoorError, match="only the person"):
            await door.answer(request.id, Decision(True))
        await door.answer(request.id, Decision(False, reason="not today", by="Ann"))
        assert await tool == {"decision": "deny", "reason": "Denied by Ann: not today"}
        with pytest.raises(NotOpen):
            await door.answer(request.id, Decision(False))
        answer = stage.cli.say()
        stage.cli.end_tool(answer, "run_shell_command", COMMAND, "error", "Tool execution blocked: Denied by Ann: not today")
        await resolved(stage, (request.id, Resolution.DENIED, "door"))

    play(scene, veto_s=20)


def test_refused_too_late() -> None:
    async def scene(stage: Stage) -> None:
        assert await (await begin_tool(stage)) == {}
        await stage.cli.ask(**DETAILS)
        (request,) = stage.heard.of("asked")  # told once
        with pytest.raises(DoorError, match="only the person"):
            await stage.made[0].answer(request.id, Decision(False))
        await stage.cli.use_tool("run_shell_command", COMMAND)
        await resolved(stage, (request.id, Resolution.ALLOWED, "person"))

    play(scene, veto_s=0.2)


def test_nobody_waits_for_what_is_harmless() -> None:
    async def scene(stage: Stage) -> None:
        assert await (await begin_tool(stage, "read_file")) == {}
        assert stage.heard.of("asked") == []

    play(scene, veto_s=20)


def test_closing_lets_a_tool_go_that_waits() -> None:
    async def scene(stage: Stage) -> None:
        tool = await begin_tool(stage)
        await until(lambda: stage.heard.of("asked"), "it is asked")
        await stage.made[0].close()
        assert await tool == {}

    play(scene, veto_s=20)


def test_no_hook_is_held_for_ever() -> None:
    async def scene() -> None:
        requests = GeminiRequests(Heard())
        holding = asyncio.create_task(requests.hold("run_shell_command", COMMAND, 60))
        await until(lambda: requests.is_open, "it is held")
        requests.close()
        assert await asyncio.wait_for(holding, 30) is None

    asyncio.run(scene())


def test_without_that_time_no_tool_waits() -> None:
    async def scene(stage: Stage) -> None:
        assert await (await begin_tool(stage)) == {}
        assert stage.heard.of("asked") == []

    play(scene)
