"""What only Codex has: a server beside each terminal, conversations one after the other, a queue, changes of files to permit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from agent_relay.terminal.doors.door import Decision, Door, DoorState, NotTaken, Resolution, Whereabouts
from tests.real_clis.bare import Bare, message, play
from tests.real_clis.model.script import Turn

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(900), pytest.mark.parametrize("cli", ["codex"])]

INTRODUCED = "you are Bob, one of several agents"
PATCH = "*** Begin Patch\n*** Add File: notes.txt\n+hello\n*** End Patch\n"
WRITE = f"exec_command {json.dumps({'cmd': f'apply_patch <<END{chr(10)}{PATCH}END'})}"


def processes(words: str) -> list[int]:
    done = subprocess.run(["pgrep", "-f", "--", words], capture_output=True, text=True, check=False)
    return [int(pid) for pid in done.stdout.split()]


def servers(bare: Bare) -> list[int]:
    return processes(rf"^\S+ app-server --listen unix://{bare.place.folder}/")


def test_codex_next_conversation(bare: Bare) -> None:
    """Messages follow the person, and each conversation is introduced once."""

    async def scene(doors: list[Door]) -> None:
        door = doors[0]
        assert (await door.open()).version == bare.version
        await door.deliver(message(1, "in the first"))
        await bare.until_read(message(1, ""))
        await bare.until_state(DoorState.IDLE)
        assert bare.model.times_given(INTRODUCED) == 1
        await bare.enter("/new")
        await bare.until(lambda: len(bare.heard.of("session")) == 2, "another conversation is the agent's")
        await door.deliver(message(2, "in the second"))
        await bare.until_read(message(2, ""))
        await bare.until(lambda: bare.model.times_given("in the second") == 1, "the model is told")
        assert bare.model.times_given("in the first") == 0
        assert bare.model.times_given(INTRODUCED) == 1
        await bare.until(lambda: "in the second" in bare.screen, "it is on the screen")

    play(bare, scene)


def test_codex_broken_turn(bare: Bare) -> None:
    """After a turn that a person broke off Codex lets its queue stand: it is set going again."""

    async def scene(doors: list[Door]) -> None:
        door = doors[0]
        bare.play(Turn(when="clean up", command="rm -rf build"))
        await door.open()
        await door.deliver(message(1, "clean up"))
        request_id = await bare.until_asked(1)
        await bare.until(lambda: bare.cli.dialog in bare.screen, "its dialog is on the screen")
        await door.deliver(message(2, "this waits behind"))
        bare.press("Escape")
        assert await bare.until_resolved(request_id) == (Resolution.DENIED, "person")
        await bare.until_read(message(2, ""))
        assert (bare.project / "build").exists()

    play(bare, scene)


def test_codex_file_change(bare: Bare) -> None:
    """Refused and permitted from outside."""
    notes = bare.project / "notes.txt"

    async def scene(doors: list[Door]) -> None:
        door = doors[0]
        bare.play(Turn(when="write it down", command=WRITE))
        await door.open()
        await door.deliver(message(1, "write it down"))
        first = await bare.until_asked(1)
        request = bare.heard.of("asked")[-1]
        assert (request.tool, Path(request.subject).name) == ("apply_patch", "notes.txt")
        await door.answer(first, Decision(False, by="Ann"))
        assert await bare.until_resolved(first) == (Resolution.DENIED, "door")
        assert not notes.exists()
        await door.deliver(message(2, "write it down after all"))
        second = await bare.until_asked(2)
        await door.answer(second, Decision(True))
        assert await bare.until_resolved(second) == (Resolution.ALLOWED, "door")
        await bare.until(lambda: notes.exists() and notes.read_text() == "hello\n", "the file is written")

    play(bare, scene)


def test_codex_server_ends(bare: Bare) -> None:
    """With the terminal's program, however that ends."""

    async def scene(doors: list[Door]) -> None:
        await doors[0].open()
        assert len(servers(bare)) == 1
        [program] = bare.run("list-panes", "-t", "bob", "-F", "#{pane_pid}").split()
        os.kill(int(program), signal.SIGKILL)
        await bare.until(lambda: not processes(bare.place.folder), "nothing of it is left")

    play(bare, scene)


def test_codex_own_name(bare: Bare) -> None:
    """What it runs knows whose it is."""

    async def scene(doors: list[Door]) -> None:
        door = doors[0]
        bare.play(Turn(when="who", command="echo $AGENT_RELAY_NAME > name.txt"))
        await door.open()
        await door.deliver(message(1, "who are you"))
        await door.answer(await bare.until_asked(1), Decision(is_allowed=True))
        name = bare.project / "name.txt"
        await bare.until(lambda: name.exists() and name.read_text() == "Bob\n", "the command runs")

    play(bare, scene)


def test_codex_queue(installed: Path, cli: str) -> None:
    """The second door, for one without a server of its own, once a conversation has begun."""
    with Bare(installed, cli, "--no-daemon") as bare:
        assert "server" not in bare.prepared.facts

        async def scene(doors: list[Door]) -> None:
            (door,) = doors
            await door.open()
            with pytest.raises(NotTaken):
                await door.deliver(message(1, "too early"))
            await bare.until(lambda: "Ask Codex" in bare.screen, "it is ready")
            await bare.enter("hello")
            await bare.try_to_deliver(door, message(2, "by the queue"))
            await door.deliver(message(3, "and one more"))
            await bare.until_read(message(3, ""))
            assert bare.heard.read == ["msg_0002", "msg_0003"]
            assert bare.model.times_given("by the queue") == 1
            assert await door.look_up(message(2, "by the queue")) is Whereabouts.READ
            assert await door.look_up(message(4, "never sent")) is Whereabouts.NOWHERE

        play(bare, scene)
