"""opencode's own door against the real program: its server, what its terminal shows, and what a person does meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.ports.door import Decision, Door, DoorMessage, DoorShut, DoorState, NotOpen, Resolution, Whereabouts
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.doors.launching import AgentPlace, Program
from agent_relay.terminal.doors.opencode import OpencodeKit
from agent_relay.terminal.doors.opencode_view import View, read_view
from agent_relay.terminal.message_text import Room, Shown, introduction_for_start, render
from scripts.real_clis import read_manifest
from tests.real_clis.clis import CLIS, environment_of
from tests.real_clis.model import chat
from tests.real_clis.model.dialects import shell_call
from tests.real_clis.model.script import Asked, Turn
from tests.real_clis.model.server import ModelServer
from tests.unit.terminal.doors.heard import Heard

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(400), pytest.mark.parametrize("cli", ["opencode"])]

DEADLINE_S = 120.0
OPTIONS = [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL", "description": "a server"}]
FIRST = {"question": "Which database?", "header": "Store", "options": OPTIONS}
SECOND = {"question": "Which name?", "header": "Name", "options": OPTIONS}
ASK = f"question {json.dumps({'questions': [FIRST, SECOND]})}"
DIALOG = CLIS["opencode"].dialog


class Bare:
    """opencode as the wrapper starts it, without the wrapper, in a tmux of its own."""

    def __init__(self, installed: Path, *flags: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="relay-ro-"))
        self.project, self.home = self.folder / "project", self.folder / "home"
        (self.project / "build").mkdir(parents=True)
        self.model = ModelServer()
        self.model.__enter__()
        programs = read_manifest()["opencode"].programs(installed)
        launch = CLIS["opencode"].prepare(self.home, self.project, self.model.url)
        own = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm-256color"}
        environment = {**own, **environment_of(self.home), **launch.environment}
        self.place = AgentPlace("Bob", str(self.folder / "team"), "0123456789ab")
        os.mkdir(self.place.folder, 0o700)
        program = Program((*launch.argv, *flags), str(self.project), environment)
        self.prepared = OpencodeKit().prepare(program, self.place, introduction_for_start("Bob"))
        self.heard = Heard()
        self._tmux = [find_tmux().path, "-S", str(self.folder / "tmux.sock"), "-f", os.devnull]
        words = ["-c", str(self.project), "-x", "120", "-y", "40", shlex.join(self.prepared.program.argv)]
        # The variables come with the environment: the password must not be seen in the list of processes.
        started = dict(self.prepared.program.environment)
        subprocess.run([*self._tmux, "new-session", "-d", "-s", "bob", *words], env=started, check=True, timeout=20)

    def run(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=False, timeout=20).stdout

    def press(self, *keys: str) -> None:
        self.run("send-keys", "-t", "bob", *keys)

    def type(self, text: str) -> None:
        self.run("send-keys", "-t", "bob", "-l", "--", text)

    @property
    def screen(self) -> str:
        return self.run("capture-pane", "-p", "-t", "bob").rstrip()

    @property
    def view(self) -> View | None:
        return read_view(self.place.folder)

    def script(self, *turns: Turn) -> None:
        self.model.script = type(self.model.script)(turns)

    def door(self) -> Door:
        (door,) = OpencodeKit().doors(self.prepared.program, self.place, self.prepared.facts, self.heard)
        return door

    async def until(self, condition: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(
                f"It did not happen: {what}.\n{self.screen}\n{self.heard.all}\n{self.model.given[-3:]}\n{self.view}"
            ) from None

    async def until_state(self, state: DoorState) -> None:
        await self.until(lambda: self.heard.of("state") and self.heard.of("state")[-1][0] is state, f"it is {state}")

    async def until_read(self, one: DoorMessage) -> None:
        await self.until(lambda: one.id in self.heard.read, f"{one.id} is read")

    async def until_resolved(self, request_id: str) -> tuple[Resolution, str]:
        await self.until(lambda: any(entry[0] == request_id for entry in self.heard.of("resolved")), "it is resolved")
        ((_, resolution, by),) = (entry for entry in self.heard.of("resolved") if entry[0] == request_id)
        return resolution, by

    async def until_asked(self, count: int) -> str:
        """The id of the newest request, once its dialog is on the screen."""
        await self.until(lambda: len(self.heard.of("asked")) == count, "it is asked")
        await self.until_state(DoorState.WAITING)
        request_id: str = self.heard.of("asked")[-1].id
        return request_id

    def close(self) -> None:
        self.model.script.release()
        self.run("kill-server")
        self.model.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def bare(installed: Path, cli: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bare]:
    del cli

    def call(command: str, asked: Asked) -> tuple[str, dict[str, Any]]:
        """A command that begins with the name of a tool calls that one."""
        name, _, arguments = command.partition(" ")
        return (name, json.loads(arguments)) if name == "question" else shell_call(command, asked)

    monkeypatch.setattr(chat, "shell_call", call)
    one = Bare(installed)
    yield one
    one.close()


def play(bare: Bare, scene: Callable[[Door], Awaitable[None]]) -> None:
    async def run() -> None:
        door = bare.door()
        try:
            await scene(door)
        finally:
            await door.close()

    asyncio.run(run())


def message(number: int, body: str) -> DoorMessage:
    id_ = f"msg_{number:04d}"
    return DoorMessage(id_, str(uuid.uuid5(uuid.NAMESPACE_URL, id_)), "Alice", body, render(Shown(id_, "Alice", body), Room()))


def test_door_message_in(bare: Bare) -> None:
    """Idle, and with a half-written draft, which stays, also when a session has to be begun."""

    async def scene(door: Door) -> None:
        assert (await door.open()).version == read_manifest()["opencode"].version
        await bare.until_state(DoorState.IDLE)
        assert bare.view == View("home")
        bare.type("half a draft")
        await bare.until(lambda: "half a draft" in bare.screen, "the draft is seen")
        await door.deliver(message(1, "look at auth.py"))
        await bare.until_read(message(1, ""))
        await bare.until(lambda: bare.model.answered, "it is answered")
        await bare.until_state(DoorState.IDLE)
        await bare.until(lambda: "look at auth.py" in bare.screen and "half a draft" in bare.screen, "both are shown")
        begun = time.monotonic()
        await door.deliver(message(2, "and at the tests"))
        stored = time.monotonic()
        await bare.until_read(message(2, ""))
        print(f"stored after {stored - begun:.2f} s, read after {time.monotonic() - begun:.2f} s")
        await bare.until(lambda: bare.model.times_given("and at the tests") == 1, "the model is told")
        await bare.until_state(DoorState.IDLE)
        assert "half a draft" in bare.screen
        assert bare.model.times_given(message(1, "look at auth.py").text) == 1
        assert len(bare.model.answered) == 2

    play(bare, scene)


def test_door_introduction(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    """With its instructions, and without a turn; the user's own settings count as before."""
    systems: list[str] = []
    read = chat.read

    def keep(body: dict[str, Any]) -> Asked:
        systems.extend(str(one.get("content")) for one in body.get("messages") or [] if one.get("role") == "system")
        return read(body)

    monkeypatch.setattr(chat, "read", keep)

    async def scene(door: Door) -> None:
        await door.open()
        assert bare.model.answered == []
        await door.deliver(message(1, "hello"))
        await bare.until_read(message(1, ""))
        assert any(introduction_for_start("Bob") in text for text in systems)

    play(bare, scene)


def test_door_while_it_works(bare: Bare) -> None:
    """Twenty at once, in order, once; the answer that was being written is not cut off, and a later wrapper finds them."""
    burst = [message(number, f"burst {number}.") for number in range(10, 30)]

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", say="->relay:Carol counted", drips=True))
        await door.open()
        await door.deliver(message(1, "count"))
        await bare.until(bare.model.script.is_dripping.is_set, "it works")
        for one in burst:
            await door.deliver(one)
        assert bare.heard.read == ["msg_0001"]
        await door.close()
        later = bare.door()
        await later.open()
        assert await later.look_up(message(1, "count")) is Whereabouts.READ
        assert [await later.look_up(one) for one in burst] == [Whereabouts.HELD] * 20
        assert await later.look_up(message(99, "")) is Whereabouts.NOWHERE
        bare.model.script.release()
        await bare.until_read(burst[-1])
        await bare.until_state(DoorState.IDLE)
        await later.close()
        assert bare.heard.read == ["msg_0001", *(one.id for one in burst)]
        given = "\n".join(bare.model.given)
        places = [given.find(one.text) for one in burst]
        assert places == sorted(places)
        assert all(given.count(one.text) == 1 for one in burst)
        assert bare.model.answered[0].is_whole
        assert [text.partition("\n\n")[2] for text, _ in bare.heard.of("heard")][:1] == ["->relay:Carol counted"]

    play(bare, scene)


def test_door_open_dialog(bare: Bare) -> None:
    """A message waits and leaves the dialog alone; the person's answer counts, whichever it is."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="clean up", command="rm -rf build"))
        await door.open()
        for number, resolution in enumerate([Resolution.DENIED, Resolution.ALLOWED], 1):
            await door.deliver(message(number, f"clean up {number}"))
            request_id = await bare.until_asked(number)
            await bare.until(lambda: DIALOG in bare.screen, "the dialog is open")
            if resolution is Resolution.ALLOWED:
                await door.deliver(message(9, "wait for it"))
                await bare.until(lambda: "wait for it" in bare.screen, "it is shown")
                assert DIALOG in bare.screen
                assert "msg_0009" not in bare.heard.read
                bare.press("Enter")
            else:
                bare.press("Right", "Right", "Enter")
                await bare.until(lambda: "Reject permission" in bare.screen or bare.heard.of("resolved"), "it is refused")
                if not bare.heard.of("resolved"):
                    bare.press("Enter")
            assert await bare.until_resolved(request_id) == (resolution, "person")
            with pytest.raises(NotOpen):
                await door.answer(request_id, Decision(True))
            await bare.until_state(DoorState.IDLE)
            assert (bare.project / "build").exists() is (resolution is Resolution.DENIED)
        await bare.until_read(message(9, ""))

    play(bare, scene)


def test_door_answers(bare: Bare) -> None:
    """Refused, permitted and answered from outside."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="clean up", command="rm -rf build"), Turn(when="choose", command=ASK))
        await door.open()
        await door.deliver(message(1, "clean up"))
        request_id = await bare.until_asked(1)
        request = bare.heard.of("asked")[-1]
        assert (request.tool, request.subject) == ("bash", "rm -rf build")
        await door.answer(request_id, Decision(False, reason="not today", by="Ann"))
        assert await bare.until_resolved(request_id) == (Resolution.DENIED, "door")
        await bare.until(lambda: bare.model.times_given("Denied by Ann: not today"), "the agent is told the reason")
        await bare.until_state(DoorState.IDLE)
        assert (bare.project / "build").exists()
        await door.deliver(message(2, "clean up again"))
        request_id = await bare.until_asked(2)
        await door.answer(request_id, Decision(True, by="Ann"))
        assert await bare.until_resolved(request_id) == (Resolution.ALLOWED, "door")
        await bare.until(lambda: not (bare.project / "build").exists(), "it is run")
        await bare.until_state(DoorState.IDLE)
        await door.deliver(message(3, "choose"))
        await bare.until_asked(4)
        first, second = bare.heard.of("asked")[-2:]
        assert first.options == ("SQLite", "PostgreSQL")
        await door.answer(second.id, Decision(True, answer="in my own words"))
        assert len(bare.heard.of("resolved")) == 2
        await door.answer(first.id, Decision(True, answer="SQLite"))
        assert await bare.until_resolved(first.id) == (Resolution.ANSWERED, "door")
        await bare.until(lambda: bare.model.times_given("in my own words"), "the agent is told the answers")
        await bare.until_state(DoorState.IDLE)

    play(bare, scene)


def test_door_person_stops_it(bare: Bare) -> None:
    """What was said half is not passed on, and what waited waits on."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", say="->relay:Carol counted", drips=True))
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


def test_door_follows_the_terminal(bare: Bare) -> None:
    """Into the session that is shown, whichever that is."""

    async def scene(door: Door) -> None:
        await door.open()
        await door.deliver(message(1, "in the first"))
        await bare.until_read(message(1, ""))
        await bare.until_state(DoorState.IDLE)
        first = bare.view
        bare.type("/new")
        await bare.until(lambda: "/new" in bare.screen, "the command is there")
        bare.press("Enter")
        await bare.until(lambda: bare.view == View("home"), "it shows its home")
        await door.deliver(message(2, "in the second"))
        await bare.until_read(message(2, ""))
        await bare.until_state(DoorState.IDLE)
        assert bare.view not in (first, View("home"))
        assert "in the first" not in "\n".join(bare.model.asked[-1].given)
        assert "in the second" in bare.screen

    play(bare, scene)


def test_door_removed(bare: Bare) -> None:
    """The program ends in the middle of everything: told once, and nothing that was not read is called so."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", say="counted", drips=True))
        await door.open()
        await door.deliver(message(1, "count"))
        await bare.until(bare.model.script.is_dripping.is_set, "it works")
        await door.deliver(message(2, "before."))
        bare.run("kill-server")
        await bare.until(lambda: bare.heard.of("lost"), "it is lost")
        with pytest.raises(DoorShut):
            await door.deliver(message(3, "after."))
        assert await door.look_up(message(2, "")) is Whereabouts.UNKNOWN
        assert len(bare.heard.of("lost")) == 1
        assert bare.heard.read == ["msg_0001"]

    play(bare, scene)
