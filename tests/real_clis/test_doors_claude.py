"""What only Claude Code has: questions that are answered from outside, its own tool for answers, its settings, its hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.doors.door import Decision, Door, DoorShut, DoorState, NotTaken, Resolution, Whereabouts
from tests.real_clis.bare import Bare, message, play
from tests.real_clis.harness import Lab
from tests.real_clis.model.script import Turn, on_message

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900), pytest.mark.parametrize("cli", ["claude"])]

OPTIONS = [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL", "description": "a server"}]
QUESTION = {"question": "Which database?", "header": "Store", "multiSelect": False, "options": OPTIONS}
COUNT = Turn(when="count", say="counted", drips=True)


def test_claude_question(bare: Bare) -> None:
    async def scene(doors: list[Door]) -> None:
        inbox = doors[0]
        bare.play(Turn(when="choose", command=f"AskUserQuestion {json.dumps({'questions': [QUESTION]})}"))
        assert (await inbox.open()).version == bare.version
        await inbox.deliver(message(1, "choose"))
        request_id = await bare.until_asked(1)
        await bare.until_state(DoorState.WAITING)
        assert bare.heard.of("asked")[-1].options == ("SQLite", "PostgreSQL")
        await inbox.answer(request_id, Decision(True, answer="SQLite"))
        assert await bare.until_resolved(request_id) == (Resolution.ANSWERED, "door")
        await bare.until(lambda: "→ SQLite" in bare.screen, "the answer is shown")

    play(bare, scene)


def test_claude_reason(bare: Bare) -> None:
    """Why a permission was refused is shown to the person and the agent."""

    async def scene(doors: list[Door]) -> None:
        inbox = doors[0]
        bare.play(Turn(when="clean up", command="rm -rf build"))
        await inbox.open()
        await inbox.deliver(message(1, "clean up"))
        request_id = await bare.until_asked(1)
        await bare.until_state(DoorState.WAITING)
        await inbox.answer(request_id, Decision(False, reason="not today", by="Ann"))
        assert await bare.until_resolved(request_id) == (Resolution.DENIED, "door")
        await bare.until(lambda: "Denied by Ann: not today" in bare.screen, "the reason is shown")
        assert (bare.project / "build").exists()

    play(bare, scene)


def test_claude_own_tool(bare: Bare) -> None:
    """The agent answers with `SendMessage`, to the address the message came from."""

    async def scene(doors: list[Door]) -> None:
        inbox = doors[0]
        await inbox.open()
        await inbox.deliver(message(1, "hello"))
        await bare.until_read(message(1, ""))
        await bare.until(lambda: "uds:" in "".join(bare.model.given), "the model is told")
        address = "uds:" + "".join(bare.model.given).split('from="uds:')[1].partition('"')[0]
        said = json.dumps({"to": address, "message": "hello\nto you", "summary": "a greeting"})
        bare.play(Turn(when="write back", command=f"SendMessage {said}"))
        await bare.until_state(DoorState.IDLE)
        await inbox.deliver(message(2, "write back"))
        await bare.until(lambda: bare.heard.of("said"), "it answers")
        ((to, body, _),) = bare.heard.of("said")
        assert (to, body) == ("Alice", "hello\nto you")

    play(bare, scene)


def test_claude_refused(installed: Path, cli: str) -> None:
    """By the user's own setting, which ours does not change."""
    with Bare(installed, cli, "--settings", json.dumps({"crossSessionInbound": "refuse"})) as strict:

        async def scene(doors: list[Door]) -> None:
            (inbox,) = doors
            await inbox.open()
            await inbox.deliver(message(1, "hello"))
            await strict.until(lambda: strict.heard.of("rejected"), "it is rejected")
            assert strict.heard.of("rejected")[0][0] == "msg_0001"

        play(strict, scene)


def test_claude_stop_hook(bare: Bare) -> None:
    """The inbox goes in the middle of everything: the hooks are the next way in, and then the program ends."""

    async def scene(doors: list[Door]) -> None:
        inbox, stop = doors
        bare.play(COUNT)
        await inbox.open()
        await inbox.deliver(message(1, "count"))
        await bare.until_works()
        await inbox.deliver(message(2, "before."))
        for path in (bare.home / "run" / "cc-socks").glob("[0-9]*.sock"):
            path.unlink()
        with pytest.raises(DoorShut):
            await inbox.deliver(message(3, "after."))
        assert len(bare.heard.of("lost")) == 1
        assert await inbox.look_up(message(2, "")) is Whereabouts.HELD
        assert await inbox.look_up(message(3, "")) is Whereabouts.NOWHERE
        await inbox.close()
        await stop.open()
        await stop.look_up(message(2, ""))  # as the wrapper does: from then on its reading is looked for
        await stop.deliver(message(3, "after."))
        await stop.deliver(message(4, "the last."))
        bare.model.script.release()
        await bare.until_read(*(message(number, "") for number in (2, 3, 4)))
        await bare.until_state(DoorState.IDLE)
        assert all(bare.model.times_given(words) == 1 for words in ("before.", "after.", "the last."))
        with pytest.raises(NotTaken):
            await stop.deliver(message(5, "too late"))
        await bare.enter("/exit")
        await bare.until(lambda: len(bare.heard.of("lost")) == 2, "the end is noticed")

    play(bare, scene)


def test_claude_tools(lab: Lab, cli: str) -> None:
    """A hook tells when a tool begins and ends, the session file tells it again: one item, with what it was given and said."""
    bob = lab.start(cli, "Bob", [Turn(on_message("clean up"), command="rm -rf build && echo cleaned")], doors=True)
    lab.send("Bob", "clean up")
    bob.until(lambda: bob.is_asking, "it asks")

    def told() -> list[dict[str, Any]]:
        said = lab.command("events", "--json", "--since", "0", "--types", "item.*", "--agent", "Bob").stdout
        events = [json.loads(line) for line in said.splitlines()]
        tools = {event["itemId"] for event in events if event.get("itemType") == "tool_call"}
        return [event for event in events if event["itemId"] in tools]

    bob.until(lambda: any(event["type"] == "item.started" for event in told()), "its beginning is told while it asks")
    bob.approve()
    bob.until(lambda: any(event["type"] == "item.completed" for event in told()), "its end is told")
    lab.wait_until_settled(bob, 1)
    bob.until(lambda: bob.is_idle, "its turn is over, and all of it is in the session file")
    found = told()
    assert [event["type"] for event in found] == ["item.started", "item.delta", "item.delta", "item.completed"], found
    given, printed = (event["delta"]["content"] for event in found[1:3])
    assert ("rm -rf build" in given, printed) == (True, "cleaned")


def test_claude_bypass(installed: Path, cli: str) -> None:
    """Where it asks for nothing it holds messages from outside for a person: so the inbox is left, and nothing is set that
    would let them in."""
    variables = {"IS_SANDBOX": "1"}  # else it refuses to run so as root
    with Bare(installed, cli, "--dangerously-skip-permissions", environ=variables) as bare:
        assert "crossSessionInbound" not in "".join(path.read_text() for path in Path(bare.place.folder).glob("*.json"))

        async def scene(doors: list[Door]) -> None:
            inbox, stop = doors
            with pytest.raises(DoorShut) as shut:
                await inbox.open()
            assert "crossSessionInbound" in shut.value.mend
            bare.play(COUNT)
            await bare.until(lambda: "Yes, I accept" in bare.screen, "it asks whether the person means it")
            bare.press("Down", "Enter")
            await stop.open()
            await bare.until_state(DoorState.IDLE)
            await bare.enter("count")
            await bare.until_works()
            await bare.until_state(DoorState.WORKING)
            await stop.deliver(message(1, "while it works"))
            bare.model.script.release()
            await bare.until_read(message(1, ""))
            assert bare.model.times_given("while it works") == 1

        play(bare, scene)
