"""What only Gemini CLI has: hooks that reach a working agent, turns that are taken back, dialogs of which others only hear."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agent_relay.terminal.doors.door import Decision, Door, DoorError, DoorShut, NotOpen, NotTaken, Resolution, Whereabouts
from agent_relay.terminal.doors.gemini import hooks as gemini_hooks
from agent_relay.terminal.doors.gemini.launch import GeminiLauncher
from tests.real_clis.bare import Bare, message, play
from tests.real_clis.model.script import Turn

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900), pytest.mark.parametrize("cli", ["gemini"])]

OPTIONS = [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL", "description": "a server"}]
QUESTION = {"question": "Which database?", "header": "Store", "type": "choice", "options": OPTIONS}
ASK = f"ask_user {json.dumps({'questions': [QUESTION]})}"
WRITE = f"write_file {json.dumps({'file_path': 'a.txt', 'content': 'hello'})}"
COUNT = Turn(when="count", drips=True)
CLEAN = Turn(when="clean up", command="rm -rf build")


async def prompt(bare: Bare, text: str) -> None:
    """As a person does it."""
    await bare.until(lambda: "Type your message" in bare.screen, "the composer is empty")
    await bare.enter(text)


async def until_idle(bare: Bare) -> None:
    """The turn is over for the door too: it takes nothing any more."""
    await bare.until(lambda: "esc to cancel" not in bare.screen and "Type your message" in bare.screen, "it is idle")


async def until_dialog(bare: Bare) -> None:
    await bare.until(lambda: bare.cli.dialog in bare.screen, "the dialog is open")


def test_gemini_introduction(bare: Bare) -> None:
    """It comes with the first prompt of a person; an idle agent is not reached."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        probe = await door.open()
        assert (probe.version, probe.introduces) == (bare.version, True)
        await prompt(bare, "hello")
        await bare.until(lambda: bare.model.answered, "it is answered")
        await until_idle(bare)
        assert "you are Bob" in bare.model.given[0]
        assert bare.model.times_given("you are Bob") == 1
        with pytest.raises(NotTaken):
            await door.deliver(message(1, "too late"))
        assert bare.heard.of("session")

    play(bare, scene)


def test_gemini_brackets(bare: Bare) -> None:
    """Messages with angle brackets come word for word, in one go, at the end of the turn."""
    burst = [message(number, f"burst {number} with <tags>.") for number in range(10, 15)]

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(Turn(when="count", say="counted", drips=True))
        await door.open()
        await prompt(bare, "count")
        await bare.until_works()
        for one in burst:
            await door.deliver(one)
        assert await door.look_up(burst[-1]) is Whereabouts.HELD
        bare.model.script.release()
        await bare.until_read(*burst)
        assert bare.heard.read == [one.id for one in burst]
        assert all(bare.model.times_given(one.text) == 1 for one in burst)
        await bare.until(lambda: "Agent Relay hands over 5 messages from Alice." in bare.screen, "the person is told")

    play(bare, scene)


def test_gemini_dialog(bare: Bare) -> None:
    """Others are told of it and cannot answer it; the person's answer counts, whichever it is."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(CLEAN)
        await door.open()
        for number, (key, resolution) in enumerate([("Escape", Resolution.DENIED), ("Enter", Resolution.ALLOWED)], 1):
            await prompt(bare, f"clean up {number}")
            await until_dialog(bare)
            request_id = await bare.until_asked(number)
            request = bare.heard.of("asked")[-1]
            assert (request.tool, request.subject, request.can_allow) == ("run_shell_command", "rm -rf build", False)
            for decision in (Decision(True), Decision(False)):
                with pytest.raises(DoorError, match="only the person"):
                    await door.answer(request_id, decision)
            bare.press(key)
            assert await bare.until_resolved(request_id) == (resolution, "person")
            with pytest.raises(NotOpen):
                await door.answer(request_id, Decision(False))
            await until_idle(bare)
        assert not (bare.project / "build").exists()

    play(bare, scene)


def test_gemini_cancelled(bare: Bare) -> None:
    """A turn that a person breaks off is taken out of the conversation: what was read in it comes with the next prompt."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(CLEAN, Turn(when="read this", drips=True))
        await door.open()
        await prompt(bare, "clean up")
        await until_dialog(bare)
        await door.deliver(message(1, "read this"))
        bare.press("Enter")
        await bare.until_read(message(1, ""))
        await bare.until_works()
        await door.deliver(message(2, "and this"))
        bare.press("Escape")
        await bare.until(lambda: bare.heard.of("refused"), "what was not read is given back")
        assert [one[0] for one in bare.heard.of("refused")] == ["msg_0002"]
        bare.play()
        await prompt(bare, "go on")
        await bare.until(lambda: "go on" in "\n".join(bare.model.given), "it goes on")
        await until_idle(bare)
        assert bare.model.times_given(message(1, "read this").text) == 1
        assert bare.model.times_given("you are Bob") == 1
        assert bare.model.times_given("and this") == 0

    play(bare, scene)


def test_gemini_question(bare: Bare) -> None:
    """Told whole, and answered by the person."""

    async def scene(doors: list[Door]) -> None:
        bare.play(Turn(when="choose", command=ASK))
        await doors[0].open()
        await prompt(bare, "choose")
        request_id = await bare.until_asked(1)
        await bare.until(lambda: "Which database?" in bare.screen, "it asks")
        (request,) = bare.heard.of("asked")
        assert (request.question, request.options, request.can_allow) == ("Which database?", ("SQLite", "PostgreSQL"), False)
        bare.press("Enter")
        assert await bare.until_resolved(request_id) == (Resolution.ANSWERED, "person")

    play(bare, scene)


def test_gemini_file_change(bare: Bare) -> None:
    async def scene(doors: list[Door]) -> None:
        bare.play(Turn(when="write", command=WRITE))
        await doors[0].open()
        await prompt(bare, "write")
        request_id = await bare.until_asked(1)
        await bare.until(lambda: "Apply this change" in bare.screen, "it asks")
        assert bare.heard.of("asked")[0].subject == str(bare.project / "a.txt")
        bare.press("Enter")
        assert await bare.until_resolved(request_id) == (Resolution.ALLOWED, "person")

    play(bare, scene)


def test_gemini_veto(installed: Path, cli: str) -> None:
    """Refused from outside before the dialog, where that is switched on; once it is open the person decides."""
    with Bare(installed, cli, launcher=GeminiLauncher(veto_s=4.0)) as bare:

        async def scene(doors: list[Door]) -> None:
            (door,) = doors
            bare.play(CLEAN)
            await door.open()
            await prompt(bare, "clean up")
            first = await bare.until_asked(1)
            await door.answer(first, Decision(False, reason="not today", by="Ann"))
            assert await bare.until_resolved(first) == (Resolution.DENIED, "door")
            await until_idle(bare)
            assert (bare.project / "build").exists()
            await prompt(bare, "clean up again")
            await until_dialog(bare)
            second = await bare.until_asked(2)
            with pytest.raises(DoorError):
                await door.answer(second, Decision(False))
            bare.press("Enter")
            assert await bare.until_resolved(second) == (Resolution.ALLOWED, "person")

        play(bare, scene)


def test_gemini_clear(bare: Bare) -> None:
    """Another wrapper finds the session after `/clear`, and what was read before it; the new one is introduced again."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(COUNT)
        await door.open()
        await prompt(bare, "count")
        await bare.until_works()
        await door.deliver(message(1, "before"))
        bare.model.script.release()
        await bare.until_read(message(1, ""))
        await until_idle(bare)
        await door.close()
        await prompt(bare, "/clear")
        await bare.until(lambda: "tick" not in bare.screen, "it is cleared")
        await until_idle(bare)
        (later,) = bare.doors()
        try:
            await later.open()
            assert await later.look_up(message(1, "")) is Whereabouts.READ
            assert await later.look_up(message(2, "")) is Whereabouts.NOWHERE
            bare.play(COUNT)
            await prompt(bare, "count")
            await bare.until_works()
            await later.deliver(message(2, "after"))
            bare.model.script.release()
            await bare.until_read(message(2, ""))
            assert bare.model.times_given("you are Bob") == 1
        finally:
            await later.close()

    play(bare, scene)


def test_gemini_hooks_gone(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lead nowhere in the middle of everything: nothing is blocked, and what waits is given back."""
    monkeypatch.setattr(gemini_hooks, "QUIET_S", 3.0)

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(COUNT)
        await door.open()
        await prompt(bare, "count")
        await bare.until_works()
        await door.deliver(message(1, "before"))
        (Path(bare.place.folder) / "gemini-hook.sh").unlink()
        bare.model.script.release()
        await bare.until(lambda: bare.heard.of("refused"), "it is given back")
        await until_idle(bare)
        await prompt(bare, "still there")
        await bare.until(lambda: "still there" in "\n".join(bare.model.given), "prompts go on")
        assert bare.model.times_given("before") == 0
        assert "blocked" not in bare.screen

    play(bare, scene)


def test_gemini_not_linked(installed: Path, cli: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extension there is no door, and a note that says how to get one; a door that hears no hook does not open."""
    monkeypatch.setattr(gemini_hooks, "START_S", 5.0)
    with Bare(installed, cli, is_admitted=False) as bare:
        assert bare.doors() == []
        assert "gemini extensions link" in bare.prepared.notes[0].whole
        door = gemini_hooks.GeminiHooks(bare.place, {"hooks": str(bare.folder / "hooks.sock")}, bare.heard)

        async def run() -> None:
            try:
                with pytest.raises(DoorShut):
                    await door.open()
            finally:
                await door.close()

        asyncio.run(run())
