"""What Codex asks, answered through its app-server: who was first, and how it is known."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.doors.codex import requests as codex_requests
from agent_relay.terminal.doors.codex import server as codex_server
from agent_relay.terminal.doors.codex.server import CodexServer
from agent_relay.terminal.doors.door import Decision, DoorError, DoorState, NotOpen, Resolution
from tests.unit.terminal.doors.codex_cli import CodexCli, Thread, message, only, play
from tests.unit.terminal.doors.heard import Heard, until

Scene = Callable[[CodexCli, Thread, Heard, CodexServer], Awaitable[None]]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"POLL_S": 0.01, "GREETING_S": 0.05, "TEND_S": 0.05, "SOON_S": 0.02, "WRITTEN_S": 0.05}.items():
        monkeypatch.setattr(codex_server, name, value)
    monkeypatch.setattr(codex_requests, "SETTLE_S", 0.1)


def play_working(folder: Path, scene: Scene) -> Heard:
    """In the middle of a turn."""

    async def work(cli: CodexCli, heard: Heard, door: CodexServer) -> None:
        cli.is_working = True
        await door.deliver(message(1))
        await until(lambda: heard.read, "it works")
        await scene(cli, only(cli), heard, door)

    return play(folder, work)


async def answer(cli: CodexCli, door: CodexServer, id_: str, decision: Decision) -> tuple[asyncio.Task[None], dict[str, Any]]:
    """Begun, and what the server was told."""
    task = asyncio.create_task(door.answer(id_, decision))
    await until(lambda: cli.answers or task.done(), "the server is told")
    if task.done():
        await task
    return task, cli.answers[-1]


def test_allowed_from_outside(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        request = cli.ask(thread)
        await until(lambda: heard.of("asked"), "it is told")
        [asked] = heard.of("asked")
        assert (asked.kind, asked.tool, asked.subject) == ("permission", "shell", "rm -rf build")
        assert asked.description == "Codex asks to run rm -rf build"
        assert heard.of("state")[-1] == (DoorState.WAITING, "permission")
        task, told = await answer(cli, door, asked.id, Decision(is_allowed=True))
        assert told == {"id": request["id"], "result": {"decision": "accept"}}
        cli.resolve(thread, request, "")  # a command that runs for long
        await task
        with pytest.raises(NotOpen):
            await door.answer(asked.id, Decision(is_allowed=False))

    assert play_working(tmp_path, scene).of("resolved") == [("codex-1", Resolution.ALLOWED, "door")]


def test_denied_from_outside(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        request = cli.ask(thread, "item/fileChange/requestApproval")
        await until(lambda: heard.of("asked"), "it is told")
        task, told = await answer(cli, door, "codex-1", Decision(is_allowed=False))
        assert told["result"] == {"decision": "decline"}
        cli.resolve(thread, request, "declined", "fileChange")
        await task

    assert play_working(tmp_path, scene).of("resolved") == [("codex-1", Resolution.DENIED, "door")]


@pytest.mark.parametrize(("status", "resolution"), [("declined", Resolution.DENIED), ("", Resolution.ALLOWED)])
def test_a_person_was_first(tmp_path: Path, status: str, resolution: Resolution) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        request = cli.ask(thread)
        await until(lambda: heard.of("asked"), "it is told")
        cli.resolve(thread, request, status)
        await until(lambda: heard.of("resolved"), "the answer is told")
        with pytest.raises(NotOpen):
            await door.answer("codex-1", Decision(is_allowed=True))
        assert cli.answers == []

    assert play_working(tmp_path, scene).of("resolved") == [("codex-1", resolution, "person")]


def test_a_person_was_a_moment_faster(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        request = cli.ask(thread)
        await until(lambda: heard.of("asked"), "it is told")
        task, _ = await answer(cli, door, "codex-1", Decision(is_allowed=True))
        cli.resolve(thread, request, "declined")
        with pytest.raises(NotOpen, match="answered first"):
            await task

    assert play_working(tmp_path, scene).of("resolved") == [("codex-1", Resolution.DENIED, "person")]


def test_a_person_breaks_off_the_turn(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        request = cli.ask(thread)
        await until(lambda: heard.of("asked"), "it is told")
        cli.resolve(thread, request, "")
        cli.interrupt(thread)
        await until(lambda: heard.of("resolved"), "the answer is told")

    assert play_working(tmp_path, scene).of("resolved") == [("codex-1", Resolution.DENIED, "person")]


def test_the_turn_is_over_without_an_answer(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        cli.ask(thread)
        await until(lambda: heard.of("asked"), "it is told")
        cli.finish(thread)
        await until(lambda: heard.of("resolved"), "the end is told")

    assert play_working(tmp_path, scene).of("resolved") == [("codex-1", Resolution.GONE, "")]


def test_a_question_of_two_parts(tmp_path: Path) -> None:
    questions = [
        {"id": "db", "header": "Store", "question": "Which database?", "options": [{"label": "SQLite", "description": "a file"}]},
        {"id": "why", "header": "Why", "question": "And why?", "options": None},
    ]

    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        request = cli.ask(thread, "item/tool/requestUserInput", questions=questions)
        await until(lambda: len(heard.of("asked")) == 2, "both are told")
        first, second = heard.of("asked")
        assert (first.kind, first.question, first.options) == ("question", "Which database?", ("SQLite",))
        with pytest.raises(DoorError):
            await door.answer(first.id, Decision(is_allowed=False))
        await door.answer(first.id, Decision(is_allowed=True, answer="SQLite"))
        task, told = await answer(cli, door, second.id, Decision(is_allowed=True, answer="one file"))
        assert told["result"] == {"answers": {"db": {"answers": ["SQLite"]}, "why": {"answers": ["one file"]}}}
        cli.resolve(thread, request, "")
        await task

    heard = play_working(tmp_path, scene)
    assert heard.of("resolved") == [("codex-1-1", Resolution.ANSWERED, "door"), ("codex-1-2", Resolution.ANSWERED, "door")]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("item/tool/call", {}),
        ("mcpServer/elicitation/request", {}),
        ("something/new", {}),
        ("item/tool/requestUserInput", {"questions": [{"id": "pw", "question": "Password?", "isSecret": True}]}),
        ("item/commandExecution/requestApproval", {"threadId": "another"}),
    ],
)
def test_what_is_not_ours_to_answer_is_left_alone(tmp_path: Path, method: str, params: dict[str, Any]) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        cli.ask(thread, method, **params)
        request = cli.ask(thread)
        await until(lambda: heard.of("asked"), "the next is told")
        assert len(heard.of("asked")) == 1
        cli.resolve(thread, request, "declined")
        await until(lambda: heard.of("resolved"), "it is over")
        assert cli.answers == []

    play_working(tmp_path, scene)


def test_what_cannot_be_allowed_from_outside(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        cli.ask(thread, availableDecisions=["cancel"])
        await until(lambda: heard.of("asked"), "it is told")
        assert not heard.of("asked")[0].can_allow
        with pytest.raises(DoorError, match="approved remotely"):
            await door.answer("codex-1", Decision(is_allowed=True))
        assert cli.answers == []

    play_working(tmp_path, scene)


def test_a_server_that_ends_takes_its_questions_along(tmp_path: Path) -> None:
    async def scene(cli: CodexCli, thread: Thread, heard: Heard, door: CodexServer) -> None:
        cli.ask(thread)
        await until(lambda: heard.of("asked"), "it is told")
        await cli.crash()
        await until(lambda: heard.of("resolved"), "the end is told")

    assert play_working(tmp_path, scene).of("resolved") == [("codex-1", Resolution.GONE, "")]
