"""Dialogs of a scripted agent answered on its screen, in tmux and in a PTY: it records every byte it is given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen
from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.requests.screen_answers import ScreenAnswerer
from agent_relay.terminal.screen.dialogs import OpenDialog
from tests.unit.terminal.backends.recorder import ENVIRONMENT, Recorder, ScriptedFiles, eventually_async, own_tmux

pytestmark = pytest.mark.terminals
ALLOW, DENY = Decision(is_allowed=True), Decision(is_allowed=False)
OPTIONS = ["Yes", "Yes, and don't ask again", "No"]
ALWAYS = Decision(is_allowed=True, option=OPTIONS[1])
DOWN, ENTER = b"\x1b[B", b"\r"


def asks(question: str, options: list[str] = OPTIONS, **more: Any) -> dict[str, Any]:
    return {"question": question, "options": options, **more}


@pytest.fixture(params=["tmux", "pty"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[], TmuxTerminal | PtyTerminal]]:
    if request.param == "pty":
        yield lambda: PtyTerminal(Recorder())
        return
    with own_tmux() as server:
        yield lambda: TmuxTerminal(server, "Bob", Recorder())


class Scene:
    """A scripted agent that looks like a CLI, and somebody who can answer for it."""

    def __init__(self, terminal: TmuxTerminal | PtyTerminal, folder: Path, look: str, **script: Any) -> None:
        self.terminal = terminal
        self.files = ScriptedFiles(folder, look=look, **script)
        self.watcher = Watcher(load_profiles()[look])
        self.answerer = ScreenAnswerer(terminal, self.watcher, self.watcher.profile, self.read)

    async def read(self) -> None:
        self.watcher.saw(await self.terminal.screen(), asyncio.get_running_loop().time())

    async def sees(self, question: str) -> OpenDialog:
        async def found() -> OpenDialog | None:
            await self.read()
            dialog = self.watcher.dialog
            return dialog if dialog is not None and question in dialog.question else None

        dialog: OpenDialog = await eventually_async(found)
        return dialog

    @property
    def chosen(self) -> list[str]:
        return [event["option"] for event in self.files.events("answered")]

    @property
    def keys(self) -> bytes:
        return self.files.bytes_in("dialog").replace(b"\x1bO", b"\x1b[")


def play(scene: Scene, act: Callable[[Scene], Awaitable[None]]) -> None:
    async def run() -> None:
        await scene.terminal.start(scene.files.argv, cwd="/", environment=ENVIRONMENT)
        try:
            async with asyncio.timeout(120):
                await act(scene)
        finally:
            await scene.terminal.stop(2)
            await scene.terminal.close()

    asyncio.run(run())


Make = Callable[[], TmuxTerminal | PtyTerminal]


@pytest.mark.parametrize("look", ["claude", "codex"])
@pytest.mark.parametrize(
    ("decision", "option", "keys"),
    [(ALLOW, "Yes", ENTER), (ALWAYS, OPTIONS[1], DOWN + ENTER), (DENY, "No", DOWN * 2 + ENTER)],
)
def test_a_permission_is_allowed_once_or_more_or_denied(
    make: Make, tmp_path: Path, look: str, decision: Decision, option: str, keys: bytes
) -> None:
    async def act(scene: Scene) -> None:
        dialog = await scene.sees("Do you want to proceed?")
        await scene.answerer.answer(dialog.digest, decision)
        assert scene.chosen == [option]
        assert scene.keys == keys
        assert scene.watcher.dialog is None

    play(Scene(make(), tmp_path, look, start={"dialog": asks("Do you want to proceed?"), "say": ["done"]}), act)


@pytest.mark.parametrize("script", [{"alternate": True}, {"redraw_ms": 150}, {"titles": False}], ids=str)
def test_however_it_draws(make: Make, tmp_path: Path, script: dict[str, Any]) -> None:
    async def act(scene: Scene) -> None:
        dialog = await scene.sees("Do you want to proceed?")
        await scene.answerer.answer(dialog.digest, DENY)
        assert (scene.chosen, scene.keys) == (["No"], DOWN * 2 + ENTER)

    play(Scene(make(), tmp_path, "claude", start={"dialog": asks("Do you want to proceed?")}, **script), act)


def test_a_question_is_answered(make: Make, tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        dialog = await scene.sees("Which database")
        with pytest.raises(DoorError, match="not one of the options"):
            await scene.answerer.answer(dialog.digest, Decision(is_allowed=True, answer="Oracle"))
        assert scene.keys == b""
        await scene.answerer.answer(dialog.digest, Decision(is_allowed=True, answer="sqlite"))
        assert (scene.chosen, scene.keys) == (["SQLite"], DOWN + ENTER)

    options = ["Postgres", "SQLite", "Something else"]
    play(Scene(make(), tmp_path, "codex", start={"dialog": asks("  Which database should we use?", options)}), act)


def test_a_dialog_that_was_replaced_gets_nothing(make: Make, tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        first = await scene.sees("proceed with the first")
        await scene.terminal.write(b"y")
        await scene.files.until("answered")
        await scene.files.until("mode", mode="prompt")
        await scene.terminal.write(b"more")
        await scene.terminal.write(b"\r")
        second = await scene.sees("proceed with the second")
        before = scene.keys
        with pytest.raises(NotOpen, match="no longer on the screen"):
            await scene.answerer.answer(first.digest, ALLOW)
        assert scene.keys == before
        await scene.answerer.answer(second.digest, DENY)
        assert scene.chosen == ["Yes", "No"]

    script = {
        "start": {"dialog": asks("Do you want to proceed with the first?")},
        "turns": [{"when": "more", "dialog": asks("Do you want to proceed with the second?")}],
    }
    play(Scene(make(), tmp_path, "claude", **script), act)


def test_a_dialog_that_closed_by_itself_gets_nothing(make: Make, tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        dialog = await scene.sees("Do you want to proceed?")
        await scene.files.until("answered")

        async def is_gone() -> bool:  # the program notes it before it draws
            await scene.read()
            return scene.watcher.dialog is None

        await eventually_async(is_gone)
        with pytest.raises(NotOpen):
            await scene.answerer.answer(dialog.digest, ALLOW)
        assert scene.files.events("input") == []

    play(Scene(make(), tmp_path, "claude", start={"dialog": asks("Do you want to proceed?", close_ms=1500)}), act)


def test_a_program_that_ends_is_not_answered(make: Make, tmp_path: Path) -> None:
    async def act(scene: Scene) -> None:
        dialog = await scene.sees("Do you want to proceed?")
        await scene.terminal.stop(2)
        with pytest.raises(NotOpen):
            await scene.answerer.answer(dialog.digest, ALLOW)

    play(Scene(make(), tmp_path, "claude", start={"dialog": asks("Do you want to proceed?")}), act)
