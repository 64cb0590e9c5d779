"""Codex's hooks: trusted by the person once, they tell what is asked and hand messages over; without that nothing changes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.terminal.doors.codex.hooks import SCRIPT_FILE, are_trusted
from agent_relay.terminal.doors.codex.launch import CodexLauncher
from agent_relay.terminal.doors.door import Decision, Door, DoorError, DoorShut, NotTaken, Resolution, Whereabouts
from tests.real_clis.bare import Bare, message, play
from tests.real_clis.codex_trust import (
    PASS_OVER,
    READY,
    REVIEW,
    TRUST,
    UNSERVED,
    choose,
    start_queueless,
    start_trusting,
)
from tests.real_clis.harness import Agent, Lab, until
from tests.real_clis.model.script import Turn, on_message

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900), pytest.mark.parametrize("cli", ["codex"])]

COUNT = Turn(when="count", say="counted to the end", drips=True)
LONG = "rm -rf build; " + "; ".join(f"echo and this is number {number}" for number in range(12))


@pytest.fixture
def trusting(installed: Path, cli: str) -> Iterator[Bare]:
    """One whose person has just trusted the hooks."""
    with Bare(installed, cli, UNSERVED, launcher=CodexLauncher(asks_for_hooks=True)) as bare:
        assert not are_trusted(bare.home / ".codex")
        choose(TRUST, lambda: bare.screen, bare.press)
        yield bare


def test_codex_hooks_trusted(trusting: Bare) -> None:
    """Once is enough: the next start has them without asking, and so has every other agent."""
    assert are_trusted(trusting.home / ".codex")
    trusting.restart(CodexLauncher())

    async def scene(doors: list[Door]) -> None:
        assert [door.name for door in doors] == ["codex queue", "codex stop hook"]
        assert (await doors[1].open()).version == trusting.version
        await trusting.until(lambda: READY in trusting.screen, "it is ready")
        assert REVIEW not in trusting.screen
        await trusting.enter("hello")
        await trusting.until(lambda: trusting.heard.of("session"), "a hook tells which conversation it is")

    play(trusting, scene)


def test_codex_hooks_resumed(trusting: Bare) -> None:
    """A conversation that is taken up holds no words of ours: a hook tells which it is, and `codex queue` reaches it."""

    async def begin(doors: list[Door]) -> None:
        await doors[1].open()
        await trusting.enter("hello first")
        await trusting.until(lambda: "Worked for" in trusting.screen, "it has answered")

    async def scene(doors: list[Door]) -> None:
        await doors[0].open()
        await trusting.until(lambda: "hello first" in trusting.screen and READY in trusting.screen, "it is taken up")
        await trusting.enter("hello again")
        await trusting.try_to_deliver(doors[0], message(1, "by the queue"))
        await trusting.until_read(message(1, ""))
        assert len(set(trusting.heard.of("session"))) == 1

    play(trusting, begin)
    trusting.restart(CodexLauncher(), "codex", "resume", "--last", "-s", "read-only", "--no-alt-screen")
    assert not trusting.prepared.is_introduced
    play(trusting, scene)


def test_codex_stop_hook(trusting: Bare) -> None:
    """At the end of a turn, all at once, in order, each once; what Codex would rewrite is not taken."""
    burst = [message(number, f"number {number}.") for number in range(1, 21)]

    async def scene(doors: list[Door]) -> None:
        door = doors[1]
        await door.open()
        with pytest.raises(NotTaken, match="idle"):
            await door.deliver(burst[0])
        trusting.play(COUNT)
        await trusting.enter("count")
        await trusting.until_works()
        await trusting.try_to_deliver(door, burst[0])
        for one in burst[1:]:
            await door.deliver(one)
        with pytest.raises(NotTaken, match="angle"):
            await door.deliver(message(99, "a < b"))
        assert await door.look_up(burst[-1]) is Whereabouts.HELD
        assert trusting.heard.read == []
        trusting.model.script.release()
        await trusting.until_read(*burst)
        assert trusting.heard.read == [one.id for one in burst]
        await trusting.until(lambda: trusting.model.times_given(burst[-1].text), "the model is told")
        assert all(trusting.model.times_given(one.text) == 1 for one in burst)
        assert all(answered.is_whole for answered in trusting.model.answered)
        assert await door.look_up(burst[0]) is Whereabouts.READ

    play(trusting, scene)


def test_codex_stop_hook_broken_off(trusting: Bare) -> None:
    """What waits when a person breaks the turn off is given back."""

    async def scene(doors: list[Door]) -> None:
        door = doors[1]
        await door.open()
        trusting.play(COUNT)
        await trusting.enter("count")
        await trusting.until_works()
        await trusting.try_to_deliver(door, message(1, "too late"))
        trusting.press("Escape")
        await trusting.until(lambda: trusting.heard.of("refused"), "it is given back")
        assert trusting.model.times_given("too late") == 0

    play(trusting, scene)


def test_codex_hook_permission(trusting: Bare) -> None:
    """The whole command; refused and permitted by the person, and by nobody through the hook."""

    async def scene(doors: list[Door]) -> None:
        door = doors[1]
        await door.open()
        trusting.play(Turn(when="clean up", command=LONG))
        for number, (key, resolution) in enumerate([("Escape", Resolution.DENIED), ("Enter", Resolution.ALLOWED)], 1):
            await trusting.enter(f"clean up {number}")
            request_id = await trusting.until_asked(number)
            request = trusting.heard.of("asked")[-1]
            assert (request.tool, request.subject, request.is_exact) == ("shell", LONG, True)
            await trusting.until(lambda: trusting.cli.dialog in trusting.screen, "the dialog is open")
            with pytest.raises(DoorError, match="on the screen"):
                await door.answer(request_id, Decision(is_allowed=True))
            assert (trusting.project / "build").exists()
            trusting.press(key)
            assert await trusting.until_resolved(request_id) == (resolution, "person")
            await trusting.until(lambda: READY in trusting.screen, "it is idle")
        assert not (trusting.project / "build").exists()

    play(trusting, scene)


def test_codex_hooks_gone(trusting: Bare) -> None:
    """They lead nowhere in the middle of everything: nothing is blocked, nothing is said, and what waits is given back."""

    async def scene(doors: list[Door]) -> None:
        door = doors[1]
        await door.open()
        trusting.play(COUNT, Turn(when="clean up", command="rm -rf build"))
        await trusting.enter("count")
        await trusting.until_works()
        await trusting.try_to_deliver(door, message(1, "before they went"))
        (Path(trusting.place.folder) / SCRIPT_FILE).unlink()
        trusting.model.script.release()
        await trusting.until(lambda: trusting.heard.of("refused"), "it is given back")
        await door.close()
        await trusting.enter("clean up")
        await trusting.until(lambda: trusting.cli.dialog in trusting.screen, "the person is asked")
        trusting.press("Enter")
        await trusting.until(lambda: not (trusting.project / "build").exists(), "it is done")
        assert trusting.model.times_given("before they went") == 0
        assert not re.search(r"Hook failed|Blocked by hook", trusting.screen)

    play(trusting, scene)


def test_codex_hooks_untrusted(installed: Path, cli: str) -> None:
    """Not passed where nobody wanted it; passed over by the person, none is run, and the door says what to do."""
    with Bare(installed, cli, UNSERVED) as bare:
        assert [door.name for door in bare.doors()] == ["codex queue"]
        assert "`wrap --codex-hooks`" in bare.prepared.notes[-1].whole
        until(lambda: READY in bare.screen, "it is ready", lambda: bare.screen)
        bare.restart(CodexLauncher(asks_for_hooks=True))
        choose(PASS_OVER, lambda: bare.screen, bare.press)
        assert not are_trusted(bare.home / ".codex")

        async def scene(doors: list[Door]) -> None:
            with pytest.raises(DoorShut) as shut:
                await doors[1].open()
            assert "Trust all and continue" in shut.value.mend
            await doors[0].open()
            await bare.enter("hello")
            await bare.until(lambda: bare.heard.of("session"), "the conversation is found by its words")
            await bare.try_to_deliver(doors[0], message(1, "by the queue"))
            await bare.until_read(message(1, ""))

        play(bare, scene)


# --- under the wrapper -------------------------------------------------------------------------------------------------------


def note_of(lab: Lab, agent: Agent) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(lab.command("agents", "--json").stdout)["agents"]
    return next(each for each in found if each["name"] == agent.name)


def test_codex_hooks_review(lab: Lab, cli: str) -> None:
    """While Codex asks about them it counts as waiting, nothing is typed, and nobody outside can answer it."""
    bob = lab.start(cli, "Bob", (), "--codex-hooks", doors=True, flags=[UNSERVED])
    bob.until(lambda: REVIEW in bob.screen, "Codex asks")
    bob.until(lambda: note_of(lab, bob).get("state") == "waiting", "it counts as waiting")
    assert "Trust all and continue" in note_of(lab, bob)["door_note"]
    before = bob.screen
    sent = lab.send("Bob", "hello")
    questions = bob.until(lambda: json.loads(lab.command("questions", "--json").stdout)["questions"], "it is told")
    assert [each["options"] for each in questions] == [[]]
    lab.command("questions", "answer", questions[0]["id"], TRUST)
    time.sleep(5.0)  # that nothing happens meanwhile is what is tested
    assert bob.screen == before, bob.describe()
    assert not are_trusted(lab.folder / "home-Bob" / ".codex")
    choose(TRUST, lambda: bob.screen, bob.press)
    lab.wait_until_settled(bob, 1)
    assert bob.told() == ["hello"], bob.describe()
    bob.until(lambda: "read" in lab.trail(sent), "it is read")


def test_codex_hook_request(lab: Lab, cli: str) -> None:
    """The hook and the dialog are one request, in exact words, permitted from outside by keys."""
    bob = start_trusting(lab, "Bob", [Turn(on_message("clean up"), command=LONG, then="It is clean.")])
    lab.send("Bob", "clean up")

    def asked() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(lab.command("permissions", "--json").stdout or "{}").get("permissions", [])
        assert len(found) <= 1, found
        return [each for each in found if each.get("can_allow") is not False]

    (request,) = bob.until(asked, "it is asked outside")
    told = (request["command"], request["description"], request["tool"])
    assert told == (LONG, f"Codex asks to run {LONG}", "shell"), request

    def is_permitted() -> bool:
        """On a busy machine the keys may leave the dialog open: then once more."""
        return lab.command("permissions", "approve", request["id"]).returncode == 0 or not bob.is_asking

    bob.until(is_permitted, "it is permitted")
    bob.until(lambda: not (lab.project / "build").exists(), "it is done")
    bob.until(lambda: not asked(), "it is not asked any more")


def test_codex_stop_hook_alone(lab: Lab, cli: str) -> None:
    """Without `codex queue` it is the way to an agent that works; an idle one is typed to, and so is what it does not take."""
    counting = Turn(on_message("count"), say="counted to the end", drips=True)
    ann = start_queueless(lab, "Ann", [counting])
    assert ann.cli.name == cli
    assert note_of(lab, ann)["door"] == "codex stop hook"
    first = lab.send("Ann", "count")
    ann.until(ann.model.script.is_dripping.is_set, "it works")
    bodies = ["one", "two", "a < b", "three"]
    sent = [lab.send("Ann", body) for body in bodies]
    ann.until(lambda: "handed" in lab.trail(sent[1]), "two are handed over")
    ann.model.script.release()
    lab.wait_until_settled(ann, 5)
    assert [body.removesuffix("</hook_prompt>") for body in ann.told()] == ["count", *bodies], ann.describe()
    doors = [str(lab.trail(each)["injected"]["door"]) for each in (first, *sent)]
    assert doors[:4] == ["typing", "codex stop hook", "codex stop hook", "typing"], ann.describe()
    ann.until(lambda: all("read" in lab.trail(each) for each in sent), "all are read")
