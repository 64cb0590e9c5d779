"""What only opencode has: instructions at its start, questions in pairs, sessions that its terminal shows, a queue in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agent_relay.terminal.delivery.message_text import Wording, introduction_for_start
from agent_relay.terminal.doors.door import Decision, Door, DoorShut, DoorState, Resolution, Whereabouts
from agent_relay.terminal.doors.opencode.sessions import TerminalView, read_view
from tests.real_clis.bare import Bare, message, play
from tests.real_clis.model import chat
from tests.real_clis.model.script import Asked, Turn

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900), pytest.mark.parametrize("cli", ["opencode"])]

OPTIONS = [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL", "description": "a server"}]
FIRST = {"question": "Which database?", "header": "Store", "options": OPTIONS}
SECOND = {"question": "Which name?", "header": "Name", "options": OPTIONS}
COUNT = Turn(when="count", say="->relay:Carol counted", drips=True)


def view(bare: Bare) -> TerminalView | None:
    return read_view(bare.place.folder)


def test_opencode_introduction(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its instructions, and without a turn."""
    systems: list[str] = []
    read = chat.read

    def keep(body: dict[str, Any]) -> Asked:
        systems.extend(str(one.get("content")) for one in body.get("messages") or [] if one.get("role") == "system")
        return read(body)

    monkeypatch.setattr(chat, "read", keep)

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        assert (await door.open()).version == bare.version
        assert bare.model.answered == []
        await door.deliver(message(1, "hello"))
        await bare.until_read(message(1, ""))
        assert any(introduction_for_start(Wording("Bob")) in text for text in systems)

    play(bare, scene)


def test_opencode_home(bare: Bare) -> None:
    """Where no session is shown one is begun, around a half-written draft."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        await door.open()
        await bare.until_state(DoorState.IDLE)
        assert view(bare) == TerminalView("home")
        bare.type("half a draft")
        await bare.until(lambda: "half a draft" in bare.screen, "the draft is seen")
        await door.deliver(message(1, "look at auth.py"))
        await bare.until_read(message(1, ""))
        await bare.until(lambda: "look at auth.py" in bare.screen and "half a draft" in bare.screen, "both are shown")
        assert bare.model.times_given(message(1, "look at auth.py").text) == 1

    play(bare, scene)


def test_opencode_questions(bare: Bare) -> None:
    """Two in one dialog: answered from outside when both are, with an option and in one's own words."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(Turn(when="choose", command=f"question {json.dumps({'questions': [FIRST, SECOND]})}"))
        await door.open()
        await door.deliver(message(1, "choose"))
        await bare.until_asked(2)
        first, second = bare.heard.of("asked")
        assert first.options == ("SQLite", "PostgreSQL")
        await door.answer(second.id, Decision(True, answer="in my own words"))
        assert bare.heard.of("resolved") == []
        await door.answer(first.id, Decision(True, answer="SQLite"))
        assert await bare.until_resolved(first.id) == (Resolution.ANSWERED, "door")
        await bare.until(lambda: bare.model.times_given("in my own words"), "the agent is told the answers")
        await bare.until_state(DoorState.IDLE)

    play(bare, scene)


def test_opencode_reason(bare: Bare) -> None:
    """Why a permission was refused is told to the agent."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(Turn(when="clean up", command="rm -rf build"))
        await door.open()
        await door.deliver(message(1, "clean up"))
        request_id = await bare.until_asked(1)
        request = bare.heard.of("asked")[-1]
        assert (request.tool, request.subject) == ("bash", "rm -rf build")
        await door.answer(request_id, Decision(False, reason="not today", by="Ann"))
        assert await bare.until_resolved(request_id) == (Resolution.DENIED, "door")
        await bare.until(lambda: bare.model.times_given("Denied by Ann: not today"), "the agent is told the reason")
        assert (bare.project / "build").exists()

    play(bare, scene)


def test_opencode_stopped(bare: Bare) -> None:
    """By the person: what was said half is not passed on, and what waited waits on."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(COUNT)
        await door.open()
        await door.deliver(message(1, "count"))
        await bare.until(lambda: "tick 3" in bare.screen, "it works")
        await door.deliver(message(2, "queued"))
        bare.press("Escape")
        await bare.until(lambda: "again to interrupt" in bare.screen, "it asks once more")
        bare.press("Escape")
        await bare.until_state(DoorState.IDLE)
        assert bare.heard.of("heard") == []
        assert await door.look_up(message(2, "")) is Whereabouts.HELD
        assert bare.heard.read == ["msg_0001"]
        await door.deliver(message(3, "go on"))
        await bare.until_read(message(3, ""))
        assert bare.heard.read[:2] == ["msg_0001", "msg_0002"]

    play(bare, scene)


def test_opencode_shown_session(bare: Bare) -> None:
    """Messages go into the session that is shown, whichever that is."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        await door.open()
        await door.deliver(message(1, "in the first"))
        await bare.until_read(message(1, ""))
        await bare.until_state(DoorState.IDLE)
        first = view(bare)
        await bare.enter("/new")
        await bare.until(lambda: view(bare) == TerminalView("home"), "it shows its home")
        await door.deliver(message(2, "in the second"))
        await bare.until_read(message(2, ""))
        await bare.until_state(DoorState.IDLE)
        assert view(bare) not in (first, TerminalView("home"))
        assert "in the first" not in "\n".join(bare.model.asked[-1].given)
        assert "in the second" in bare.screen

    play(bare, scene)


def test_opencode_end(bare: Bare) -> None:
    """Told once, and nothing that was not read is called so."""

    async def scene(doors: list[Door]) -> None:
        (door,) = doors
        bare.play(COUNT)
        await door.open()
        await door.deliver(message(1, "count"))
        await bare.until_works()
        await door.deliver(message(2, "before."))
        bare.run("kill-server")
        await bare.until(lambda: bare.heard.of("lost"), "it is lost")
        with pytest.raises(DoorShut):
            await door.deliver(message(3, "after."))
        assert await door.look_up(message(2, "")) is Whereabouts.UNKNOWN
        assert len(bare.heard.of("lost")) == 1
        assert bare.heard.read == ["msg_0001"]

    play(bare, scene)
