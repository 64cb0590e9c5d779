"""Claude Code's own doors against the real program: its inbox, its hooks, and what a person does meanwhile."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.ports.door import Decision, Door, DoorMessage, DoorShut, DoorState, NotOpen, NotTaken, Resolution, Whereabouts
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.doors.claude import ClaudeKit
from agent_relay.terminal.doors.launching import AgentPlace, Program
from agent_relay.terminal.message_text import Room, Shown, render
from scripts.real_clis import read_manifest
from tests.real_clis.clis import CLIS, environment_of
from tests.real_clis.model import anthropic
from tests.real_clis.model.dialects import shell_call
from tests.real_clis.model.script import Asked, Turn
from tests.real_clis.model.server import ModelServer
from tests.unit.terminal.doors.claude_cli import Heard

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(300), pytest.mark.parametrize("cli", ["claude"])]

DEADLINE_S = 90.0
QUESTION = {"question": "Which database?", "header": "Store", "multiSelect": False}
OPTIONS = [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL", "description": "a server"}]
ASK = f"AskUserQuestion {json.dumps({'questions': [{**QUESTION, 'options': OPTIONS}]})}"


class Bare:
    """Claude Code as the wrapper starts it, without the wrapper, in a tmux of its own."""

    def __init__(self, installed: Path, *flags: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="relay-rd-"))
        self.project, self.home = self.folder / "project", self.folder / "home"
        (self.project / "build").mkdir(parents=True)
        self.model = ModelServer()
        self.model.__enter__()
        programs = read_manifest()["claude"].programs(installed)
        launch = CLIS["claude"].prepare(self.home, self.project, self.model.url)
        own = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm-256color"}
        environment = {**own, **environment_of(self.home), **launch.environment, "CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN": "1"}
        self.place = AgentPlace("Bob", str(self.folder / "team"), "0123456789ab")
        os.mkdir(self.place.folder, 0o700)
        program = Program((*launch.argv, *flags), str(self.project), environment)
        self.prepared = ClaudeKit().prepare(program, self.place, "Relay notice [0a1b2c3d]: you are Bob, one of several agents.")
        self.heard = Heard()
        self._tmux = [find_tmux().path, "-S", str(self.folder / "tmux.sock"), "-f", os.devnull]
        self._start(environment)

    def _start(self, environment: dict[str, str]) -> None:
        variables = [f"{name}={value}" for name, value in environment.items()]
        words = ["env", "-i", "-C", str(self.project), *variables, *self.prepared.program.argv]
        self.run("new-session", "-d", "-s", "bob", "-x", "120", "-y", "40", shlex.join(words))

    def run(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=False, timeout=20).stdout

    def press(self, *keys: str) -> None:
        self.run("send-keys", "-t", "bob", *keys)

    def type(self, text: str) -> None:
        self.run("send-keys", "-t", "bob", "-l", "--", text)

    @property
    def screen(self) -> str:
        return self.run("capture-pane", "-p", "-t", "bob").rstrip()

    def script(self, *turns: Turn) -> None:
        self.model.script = type(self.model.script)(turns)

    def doors(self) -> list[Door]:
        return ClaudeKit().doors(self.prepared.program, self.place, self.prepared.facts, self.heard)

    async def until(self, condition: Callable[[], object], what: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not condition():
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(
                f"It did not happen: {what}.\n{self.screen}\n{self.heard.all}\n{self.model.given[-3:]}"
            ) from None

    async def until_state(self, state: DoorState) -> None:
        await self.until(lambda: self.heard.of("state") and self.heard.of("state")[-1][0] is state, f"it is {state}")

    async def until_read(self, one: DoorMessage) -> None:
        await self.until(lambda: (one.id, "transcript") in self.heard.of("read"), f"{one.id} is read")

    async def until_resolved(self, request_id: str) -> tuple[Resolution, str]:
        await self.until(lambda: any(entry[0] == request_id for entry in self.heard.of("resolved")), "it is resolved")
        ((_, resolution, by),) = (entry for entry in self.heard.of("resolved") if entry[0] == request_id)
        return resolution, by

    async def until_asked(self, count: int) -> str:
        """The id of the newest request, once its dialog is on the screen."""
        await self.until(lambda: len(self.heard.of("asked")) == count, "it is asked")
        await self.until_state(DoorState.WAITING)
        request_id: str = self.heard.of("asked")[-1][0].id
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
        return (name, json.loads(arguments)) if name in ("AskUserQuestion", "SendMessage") else shell_call(command, asked)

    monkeypatch.setattr(anthropic, "shell_call", call)
    one = Bare(installed)
    yield one
    one.close()


def play(bare: Bare, scene: Callable[[Door, Door], Awaitable[None]]) -> None:
    async def run() -> None:
        inbox, stop = bare.doors()
        try:
            await scene(inbox, stop)
        finally:
            await inbox.close()
            await stop.close()

    asyncio.run(run())


def message(number: int, body: str) -> DoorMessage:
    id_ = f"msg_{number:04d}"
    return DoorMessage(id_, str(uuid.uuid5(uuid.NAMESPACE_URL, id_)), "Alice", body, render(Shown(id_, "Alice", body), Room()))


def test_door_message_in(bare: Bare) -> None:
    """Idle, and with a half-written draft, which stays."""

    async def scene(inbox: Door, _: Door) -> None:
        assert (await inbox.open()).version == read_manifest()["claude"].version
        await bare.until_state(DoorState.IDLE)
        await inbox.deliver(message(1, "look at auth.py"))
        await bare.until_read(message(1, ""))
        await bare.until(lambda: bare.model.answered, "it is answered")
        await bare.until_state(DoorState.IDLE)
        bare.type("half a draft")
        await bare.until(lambda: "half a draft" in bare.screen, "the draft is seen")
        await inbox.deliver(message(2, "and at the tests"))
        await bare.until_read(message(2, ""))
        await bare.until(lambda: bare.model.times_given("and at the tests") == 1, "the model is told")
        await bare.until_state(DoorState.IDLE)
        assert "half a draft" in bare.screen
        assert bare.model.times_given(message(1, "look at auth.py").text) == 1

    play(bare, scene)


def test_door_while_it_works(bare: Bare) -> None:
    """Twenty at once, in order, once; the answer that was being written is not cut off."""
    burst = [message(number, f"burst {number}.") for number in range(10, 30)]

    async def scene(inbox: Door, _: Door) -> None:
        bare.script(Turn(when="count", say="counted", drips=True))
        await inbox.open()
        await inbox.deliver(message(1, "count"))
        await bare.until(bare.model.script.is_dripping.is_set, "it works")
        for one in burst:
            await inbox.deliver(one)
        assert await inbox.look_up(burst[-1]) is Whereabouts.HELD
        assert await inbox.look_up(message(99, "")) is Whereabouts.NOWHERE
        bare.model.script.release()
        await bare.until_read(burst[-1])
        await bare.until_state(DoorState.IDLE)
        assert [entry[0] for entry in bare.heard.of("read")] == ["msg_0001", *(one.id for one in burst)]
        given = "\n".join(bare.model.given)
        places = [given.find(one.text) for one in burst]
        assert places == sorted(places)
        assert all(given.count(one.text) == 1 for one in burst)
        assert bare.model.answered[0].is_whole
        assert await inbox.look_up(burst[0]) is Whereabouts.READ

    play(bare, scene)


def test_door_open_dialog(bare: Bare) -> None:
    """A message waits and leaves the dialog alone; the person's answer counts, whichever it is."""

    async def scene(inbox: Door, _: Door) -> None:
        bare.script(Turn(when="clean up", command="rm -rf build"))
        await inbox.open()
        for number, (key, resolution) in enumerate([("Escape", Resolution.DENIED), ("Enter", Resolution.ALLOWED)], 1):
            await inbox.deliver(message(number, f"clean up {number}"))
            request_id = await bare.until_asked(number)
            await bare.until(lambda: "Do you want to proceed" in bare.screen, "the dialog is open")
            if resolution is Resolution.ALLOWED:
                await inbox.deliver(message(9, "wait for it"))
                await bare.until(lambda: "wait for it" in bare.screen, "it is shown")
                assert "Do you want to proceed" in bare.screen
            assert (bare.project / "build").exists()
            bare.press(key)
            assert await bare.until_resolved(request_id) == (resolution, "person")
            with pytest.raises(NotOpen):
                await inbox.answer(request_id, Decision(True))
            await bare.until_state(DoorState.IDLE)
        await bare.until_read(message(9, ""))
        assert not (bare.project / "build").exists()

    play(bare, scene)


def test_door_answers(bare: Bare) -> None:
    """Refused, permitted and answered from outside."""

    async def scene(inbox: Door, _: Door) -> None:
        bare.script(Turn(when="clean up", command="rm -rf build"), Turn(when="choose", command=ASK))
        await inbox.open()
        await inbox.deliver(message(1, "clean up"))
        request_id = await bare.until_asked(1)
        await inbox.answer(request_id, Decision(False, reason="not today", by="Ann"))
        assert await bare.until_resolved(request_id) == (Resolution.DENIED, "door")
        await bare.until(lambda: "Denied by Ann: not today" in bare.screen, "the reason is shown")
        assert (bare.project / "build").exists()
        await bare.until_state(DoorState.IDLE)
        await inbox.deliver(message(2, "clean up again"))
        request_id = await bare.until_asked(2)
        await inbox.answer(request_id, Decision(True, by="Ann"))
        assert await bare.until_resolved(request_id) == (Resolution.ALLOWED, "door")
        await bare.until(lambda: not (bare.project / "build").exists(), "it is run")
        await bare.until_state(DoorState.IDLE)
        await inbox.deliver(message(3, "choose"))
        request_id = await bare.until_asked(3)
        assert bare.heard.of("asked")[-1][0].options == ("SQLite", "PostgreSQL")
        await inbox.answer(request_id, Decision(True, answer="SQLite"))
        assert await bare.until_resolved(request_id) == (Resolution.ANSWERED, "door")
        await bare.until(lambda: "→ SQLite" in bare.screen, "the answer is shown")

    play(bare, scene)


def test_door_agent_answers(bare: Bare) -> None:
    """With the program's own tool, to the address the message came from."""

    async def scene(inbox: Door, _: Door) -> None:
        await inbox.open()
        await inbox.deliver(message(1, "hello"))
        await bare.until_read(message(1, ""))
        await bare.until(lambda: "uds:" in "".join(bare.model.given), "the model is told")
        address = "uds:" + "".join(bare.model.given).split('from="uds:')[1].partition('"')[0]
        said = json.dumps({"to": address, "message": "hello\nto you", "summary": "a greeting"})
        bare.script(Turn(when="write back", command=f"SendMessage {said}"))
        await bare.until_state(DoorState.IDLE)
        await inbox.deliver(message(2, "write back"))
        await bare.until(lambda: bare.heard.of("said"), "it answers")
        ((to, body, _),) = bare.heard.of("said")
        assert (to, body) == ("Alice", "hello\nto you")

    play(bare, scene)


def test_door_refused(installed: Path, cli: str) -> None:
    """By the user's own setting, which ours does not change."""
    del cli
    strict = Bare(installed, "--settings", json.dumps({"crossSessionInbound": "refuse"}))

    async def run() -> None:
        (inbox,) = strict.doors()
        try:
            await inbox.open()
            await inbox.deliver(message(1, "hello"))
            await strict.until(lambda: strict.heard.of("rejected"), "it is rejected")
            assert strict.heard.of("rejected")[0][0] == "msg_0001"
        finally:
            await inbox.close()

    try:
        asyncio.run(run())
    finally:
        strict.close()


def test_door_removed(bare: Bare) -> None:
    """The inbox goes in the middle of everything: the hooks are the next way in, and then the program ends."""

    async def scene(inbox: Door, stop: Door) -> None:
        bare.script(Turn(when="count", say="counted", drips=True))
        await inbox.open()
        await inbox.deliver(message(1, "count"))
        await bare.until(bare.model.script.is_dripping.is_set, "it works")
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
        for number in (2, 3, 4):
            await bare.until_read(message(number, ""))
        await bare.until_state(DoorState.IDLE)
        assert all(bare.model.times_given(words) == 1 for words in ("before.", "after.", "the last."))
        with pytest.raises(NotTaken):
            await stop.deliver(message(5, "too late"))
        bare.type("/exit")
        await bare.until(lambda: "/exit" in bare.screen, "it is typed")
        bare.press("Enter")
        await bare.until(lambda: len(bare.heard.of("lost")) == 2, "the end is noticed")

    play(bare, scene)
