"""The stand-in behaves like the CLIs it stands for; what a test concludes from its record is true."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agent_relay.cli.demo.agent_script import LOOKS
from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.terminal import Key
from agent_relay.terminal.profiles.profile import profile_for
from agent_relay.terminal.screen.state import State, look
from tests.unit.terminal.backends.recorder import ENVIRONMENT, Recorder, ScriptedFiles, eventually_async

Scene = Callable[[PtyTerminal, Recorder, ScriptedFiles], Awaitable[None]]
LONG = {"when": "long", "busy_ms": 60_000, "say": ["done"]}


def play(folder: Path, scene: Scene, **script: Any) -> None:
    async def within() -> None:
        files, recorder = ScriptedFiles(folder, **script), Recorder()
        terminal = PtyTerminal(recorder)
        await terminal.start(files.argv, cwd=str(folder), environment=ENVIRONMENT, columns=60, rows=15)
        try:
            async with asyncio.timeout(120):
                await files.until("started")
                await recorder.until(LOOKS[script.get("look", "plain")].prompt.encode())
                await scene(terminal, recorder, files)
        finally:
            await terminal.stop(0.5)

    asyncio.run(within())


async def shows(terminal: PtyTerminal, text: str) -> None:
    async def found() -> bool:
        return any(text in line.text for line in (await terminal.screen()).visible)

    await eventually_async(found)


async def submit(terminal: PtyTerminal, files: ScriptedFiles, text: str) -> None:
    count = len(files.events("pasted"))
    await terminal.paste(text)
    await files.until("pasted", count + 1)
    await terminal.press(Key.ENTER)


def test_a_queueing_composer_takes_what_comes_while_it_is_busy(tmp_path: Path) -> None:
    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        await submit(terminal, files, "long one")
        await shows(terminal, "• Working (esc to interrupt)")
        await submit(terminal, files, "second")
        await files.until("queued", text="second")
        await shows(terminal, "queued: second")
        await terminal.press(Key.ESCAPE)
        await files.until("aborted")
        await files.until("submitted", text="second")
        await shows(terminal, "• heard: second")
        assert (await terminal.screen()).title == "◇ Ready"

    play(tmp_path, scene, turns=[LONG])


def test_a_composer_that_does_not_queue_aborts_on_enter_and_queues_on_tab(tmp_path: Path) -> None:
    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        await submit(terminal, files, "long one")
        await files.until("mode", mode="busy")
        await terminal.paste("later")
        await files.until("pasted", 2)
        await terminal.press(Key.TAB)
        await files.until("queued", text="later")
        assert not files.events("aborted")
        await submit(terminal, files, "long two")
        await files.until("aborted")

    play(tmp_path, scene, turns=[LONG], queueing=False)


def test_what_is_pasted_into_a_dialog_answers_it(tmp_path: Path) -> None:
    """The harm a relay must never do, seen here so that a test elsewhere can see its absence."""

    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        await submit(terminal, files, "rm it")
        await shows(terminal, "Do you want to proceed?")
        assert files.bytes_in("dialog") == b""
        await terminal.paste("hey")
        await files.until("answered", option="Yes")
        assert files.bytes_in("dialog") == b"\x1b[200~hey"
        await shows(terminal, "• removed")

    play(tmp_path, scene, turns=[{"when": "rm", "dialog": {}, "say": ["removed"]}], alternate=True)


def test_text_and_enter_in_one_write_is_a_line_break_where_the_script_says_so(tmp_path: Path) -> None:
    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        await terminal.write(b"hello there\r")
        await shows(terminal, "› hello there")
        await terminal.press(Key.ENTER)
        await files.until("submitted", text="hello there\n")

    play(tmp_path, scene, single_write_limit=5)


def test_a_long_paste_is_a_placeholder_and_a_slow_redraw_is_empty_for_a_while(tmp_path: Path) -> None:
    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        await terminal.paste("line\n" * 41 + "end")
        await shows(terminal, "› [Pasted text #1 +42 lines]")
        await terminal.press(Key.ENTER)
        await files.until("submitted", text="line\n" * 41 + "end")
        assert b"\x1b[J" in recorder.data

    play(tmp_path, scene, placeholder_from=100, redraw_ms=20)


def test_it_says_what_the_script_says_and_ends_with_its_code(tmp_path: Path) -> None:
    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        await shows(terminal, "• welcome")
        await terminal.resize(50, 10)
        await shows(terminal, "• welcome")
        await submit(terminal, files, "bye Bob")
        assert (await terminal.wait()).code == 7
        assert b"->relay:Bob so long" in recorder.data
        assert files.events()[-1]["event"] == "ended"

    turns = [{"when": r"bye (\w+)", "say": ["one", r"->relay:\1 so long"], "line_ms": 20, "exit": 7}]
    play(tmp_path, scene, start={"say": ["welcome"]}, turns=turns, titles=False)


def test_a_dialog_opens_with_a_paste_and_closes_by_itself(tmp_path: Path) -> None:
    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        await terminal.paste("one")
        await recorder.until(b"Do you want to proceed?")
        await files.until("answered", option="")
        await shows(terminal, "› one")
        await terminal.press(Key.ENTER)
        await files.until("submitted", text="one")
        assert files.bytes_in("dialog") == b""

    play(tmp_path, scene, at_paste={"1": {"close_ms": 200}})


def test_a_dialog_in_the_middle_of_a_turn_lets_it_go_on(tmp_path: Path) -> None:
    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        await submit(terminal, files, "long one")
        await shows(terminal, "(esc to interrupt)")
        await terminal.paste("second")
        await files.until("answered", option="")
        await shows(terminal, "• done")
        assert [event["mode"] for event in files.events("mode")][:4] == ["busy", "dialog", "busy", "prompt"]

    play(tmp_path, scene, turns=[LONG], at_paste={"2": {"close_ms": 500}})


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_with_the_look_of_a_cli_it_is_taken_for_it(tmp_path: Path, name: str) -> None:
    """Idle, working and asking, by that CLI's own profile."""
    asking = {"when": "ask", "busy_ms": 60_000, "dialog": {"question": "Do you want to run it?"}}
    profile = profile_for(name)

    async def scene(terminal: PtyTerminal, recorder: Recorder, files: ScriptedFiles) -> None:
        async def is_in(state: State) -> bool:
            return look(profile, await terminal.screen(), State.WORKING).state is state

        await eventually_async(lambda: is_in(State.IDLE))
        await submit(terminal, files, "ask")
        await eventually_async(lambda: is_in(State.WORKING))
        await terminal.press(Key.ESCAPE)
        await eventually_async(lambda: is_in(State.IDLE))
        await terminal.paste("two")
        await eventually_async(lambda: is_in(State.DIALOG))

    play(tmp_path, scene, look=name, turns=[asking], at_paste={"2": {}})
