"""Gemini CLI's hooks against the real program: what reaches an agent that works, what a person does meanwhile, and the end."""

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
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent_relay.ports.door import Decision, Door, DoorError, DoorMessage, DoorShut, NotOpen, NotTaken, Resolution, Whereabouts
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.doors import gemini_hooks
from agent_relay.terminal.doors.gemini import EXTENSION, GeminiKit
from agent_relay.terminal.doors.launching import AgentPlace, Program
from agent_relay.terminal.message_text import Room, Shown, introduction_for_start, render
from scripts.real_clis import read_manifest
from tests.real_clis.clis import CLIS, environment_of
from tests.real_clis.harness import Lab
from tests.real_clis.model import gemini
from tests.real_clis.model.script import Asked, Turn, on_message
from tests.real_clis.model.server import ModelServer
from tests.unit.terminal.doors.heard import Heard

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(300), pytest.mark.parametrize("cli", ["gemini"])]

DEADLINE_S = 90.0
DIALOG = "Allow execution"
OPTIONS = [{"label": "SQLite", "description": "one file"}, {"label": "PostgreSQL", "description": "a server"}]
QUESTION = {"question": "Which database?", "header": "Store", "type": "choice", "options": OPTIONS}
ASK = f"ask_user {json.dumps({'questions': [QUESTION]})}"


def link(home: Path, environment: Mapping[str, str]) -> None:
    """As a person does it, once, and answers what is asked."""
    done = subprocess.run(
        ["gemini", "extensions", "link", str(EXTENSION)], cwd=home, env=environment, input="y\n",
        capture_output=True, text=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert (home / ".gemini" / "extensions" / "agent-relay").is_dir(), done


class Bare:
    """Gemini CLI as the wrapper starts it, without the wrapper, in a tmux of its own, with the extension linked."""

    def __init__(self, installed: Path, veto_s: float = 0.0, *, is_linked: bool = True) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="relay-rd-"))
        self.project, self.home = self.folder / "project", self.folder / "home"
        (self.project / "build").mkdir(parents=True)
        self.model = ModelServer()
        self.model.__enter__()
        launch = CLIS["gemini"].prepare(self.home, self.project, self.model.url)
        programs = read_manifest()["gemini"].programs(installed)
        own = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm-256color"}
        self.environment = {**own, **environment_of(self.home), **launch.environment}
        if is_linked:
            link(self.home, self.environment)
        self.place = AgentPlace("Bob", str(self.folder / "team"), "0123456789ab")
        os.mkdir(self.place.folder, 0o700)
        self.kit = GeminiKit(veto_s)
        program = Program(tuple(launch.argv), str(self.project), self.environment)
        self.prepared = self.kit.prepare(program, self.place, introduction_for_start("Bob"))
        self.heard = Heard()
        self._tmux = [find_tmux().path, "-S", str(self.folder / "tmux.sock"), "-f", os.devnull]
        variables = [f"{name}={value}" for name, value in self.prepared.program.environment.items()]
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

    @property
    def hears(self) -> list[str]:
        return [str(entry) for entry in self.heard.all]

    def script(self, *turns: Turn) -> None:
        self.model.script = type(self.model.script)(turns)

    def door(self) -> Door:
        (door,) = self.kit.doors(self.prepared.program, self.place, self.prepared.facts, self.heard)
        return door

    async def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"It did not happen: {what}.\n{self.screen}\n{self.hears}\n{self.model.given[-3:]}")
            await asyncio.sleep(0.05)

    async def prompt(self, text: str) -> None:
        """As a person does it."""
        await self.until(lambda: "Type your message" in self.screen, "the composer is empty")
        self.type(text)
        await self.until(lambda: text in self.screen, "it is typed")
        await asyncio.sleep(0.3)  # keys that come faster are a paste, and so is an Enter among them
        self.press("Enter")

    async def until_idle(self) -> None:
        """The turn is over for the door too: it takes nothing any more."""
        await self.until(lambda: "esc to cancel" not in self.screen and "Type your message" in self.screen, "it is idle")

    async def until_read(self, *some: DoorMessage) -> None:
        await self.until(lambda: {one.id for one in some} <= set(self.heard.read), f"{[one.id for one in some]} are read")

    async def until_resolved(self, count: int) -> None:
        await self.until(lambda: len(self.heard.of("resolved")) == count, "it is resolved")

    def close(self) -> None:
        self.model.script.release()
        self.run("kill-server")
        self.model.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _tools(monkeypatch: pytest.MonkeyPatch) -> None:
    shell_call = gemini.shell_call

    def call(command: str, asked: Asked) -> tuple[str, dict[str, Any]]:
        """A command that begins with the name of a tool calls that one."""
        name, _, arguments = command.partition(" ")
        return (name, json.loads(arguments)) if name in ("ask_user", "write_file") else shell_call(command, asked)

    monkeypatch.setattr(gemini, "shell_call", call)


@pytest.fixture
def bare(installed: Path, cli: str) -> Iterator[Bare]:
    del cli
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


async def until_works(bare: Bare) -> None:
    await bare.until(bare.model.script.is_dripping.is_set, "it works")


def test_door_idle(bare: Bare) -> None:
    """It opens, introduces the relay with the first prompt of a person, and takes nothing from an idle agent."""

    async def scene(door: Door) -> None:
        probe = await door.open()
        assert probe.version == read_manifest()["gemini"].version
        assert probe.introduces
        await bare.prompt("hello")
        await bare.until(lambda: bare.model.answered, "it is answered")
        await bare.until_idle()
        assert "you are Bob" in bare.model.given[0]
        assert bare.model.times_given("you are Bob") == 1
        with pytest.raises(NotTaken):
            await door.deliver(message(1, "too late"))
        assert bare.heard.of("session")

    play(bare, scene)


def test_door_while_it_works(bare: Bare) -> None:
    """Twenty at once, in order, once, at the end of the turn; neither an answer nor a draft that is being written is cut off."""
    burst = [message(number, f"burst {number} with <tags>.") for number in range(10, 30)]

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", say="counted", drips=True))
        await door.open()
        await bare.prompt("count")
        await until_works(bare)
        bare.type("half a draft")
        await bare.until(lambda: "half a draft" in bare.screen, "the draft is seen")
        for one in burst:
            await door.deliver(one)
        assert await door.look_up(burst[-1]) is Whereabouts.HELD
        assert await door.look_up(message(99, "")) is Whereabouts.NOWHERE
        bare.model.script.release()
        await bare.until_read(*burst)
        await bare.until(lambda: len(bare.model.answered) == 2 and "esc to cancel" not in bare.screen, "it is idle")
        assert "half a draft" in bare.screen
        assert bare.heard.read == [one.id for one in burst]
        given = "\n".join(bare.model.given)
        places = [given.find(one.text) for one in burst]
        assert places == sorted(places)
        assert all(given.count(one.text) == 1 for one in burst)
        assert bare.model.answered[0].is_whole
        assert await door.look_up(burst[0]) is Whereabouts.READ
        assert "Agent Relay hands over 20 messages from Alice." in bare.screen

    play(bare, scene)


def test_door_open_dialog(bare: Bare) -> None:
    """A message leaves the dialog alone, and is read with the tool's result; the person's answer counts, whichever it is."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="clean up", command="rm -rf build", then="Done."))
        await door.open()
        for number, (key, resolution) in enumerate([("Escape", Resolution.DENIED), ("Enter", Resolution.ALLOWED)], 1):
            await bare.prompt(f"clean up {number}")
            await bare.until(lambda: DIALOG in bare.screen, "the dialog is open")
            request = bare.heard.of("asked")[-1]
            assert (request.tool, request.subject, request.can_allow) == ("run_shell_command", "rm -rf build", False)
            await door.deliver(message(number, "wait for it"))
            assert DIALOG in bare.screen
            assert (bare.project / "build").exists()
            for decision in (Decision(True), Decision(False)):
                with pytest.raises(DoorError, match="only the person"):
                    await door.answer(request.id, decision)
            bare.press(key)
            await bare.until_resolved(number)
            assert bare.heard.of("resolved")[-1] == (request.id, resolution, "person")
            with pytest.raises(NotOpen):
                await door.answer(request.id, Decision(False))
            await bare.until_idle()
        assert [one[0] for one in bare.heard.of("refused")] == ["msg_0001"]  # with the turn the person broke off
        await bare.until_read(message(2, ""))
        assert not (bare.project / "build").exists()
        assert bare.model.times_given(message(2, "wait for it").text) == 1
        assert bare.model.times_given(message(1, "wait for it").text) == 0

    play(bare, scene)


def test_door_cancelled(bare: Bare) -> None:
    """A turn that a person breaks off is taken out of the conversation: what was read in it comes with the next prompt."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="clean up", command="rm -rf build"), Turn(when="read this", drips=True))
        await door.open()
        await bare.prompt("clean up")
        await bare.until(lambda: DIALOG in bare.screen, "the dialog is open")
        await door.deliver(message(1, "read this"))
        bare.press("Enter")
        await bare.until_read(message(1, ""))
        await until_works(bare)
        await door.deliver(message(2, "and this"))
        bare.press("Escape")
        await bare.until(lambda: bare.heard.of("refused"), "what was not read is given back")
        assert [one[0] for one in bare.heard.of("refused")] == ["msg_0002"]
        bare.script()
        await bare.prompt("go on")
        await bare.until(lambda: "go on" in "\n".join(bare.model.given), "it goes on")
        await bare.until_idle()
        assert bare.model.times_given(message(1, "read this").text) == 1
        assert bare.model.times_given("you are Bob") == 1
        assert bare.model.times_given("and this") == 0

    play(bare, scene)


def test_door_question(bare: Bare) -> None:
    async def scene(door: Door) -> None:
        bare.script(Turn(when="choose", command=ASK))
        await door.open()
        await bare.prompt("choose")
        await bare.until(lambda: "Which database?" in bare.screen and bare.heard.of("asked"), "it asks")
        (request,) = bare.heard.of("asked")
        assert (request.text, request.options, request.can_allow) == ("Which database?", ("SQLite", "PostgreSQL"), False)
        bare.press("Enter")
        await bare.until_resolved(1)
        assert bare.heard.of("resolved") == [(request.id, Resolution.ANSWERED, "person")]

    play(bare, scene)


def test_door_edit(bare: Bare) -> None:
    async def scene(door: Door) -> None:
        bare.script(Turn(when="write", command=f"write_file {json.dumps({'file_path': 'a.txt', 'content': 'hello'})}"))
        await door.open()
        await bare.prompt("write")
        await bare.until(lambda: "Apply this change" in bare.screen and bare.heard.of("asked"), "it asks")
        (request,) = bare.heard.of("asked")
        assert request.subject == str(bare.project / "a.txt")
        bare.press("Enter")
        await bare.until_resolved(1)
        assert bare.heard.of("resolved") == [(request.id, Resolution.ALLOWED, "person")]

    play(bare, scene)


def test_door_veto(installed: Path, cli: str) -> None:
    """Refused from outside before the dialog; once it is open the person decides."""
    del cli
    bare = Bare(installed, veto_s=4.0)

    async def scene(door: Door) -> None:
        bare.script(Turn(when="clean up", command="rm -rf build"))
        await door.open()
        await bare.prompt("clean up")
        await bare.until(lambda: bare.heard.of("asked"), "it is asked")
        (request,) = bare.heard.of("asked")
        await door.answer(request.id, Decision(False, reason="not today", by="Ann"))
        await bare.until_resolved(1)
        assert bare.heard.of("resolved") == [(request.id, Resolution.DENIED, "door")]
        await bare.until_idle()
        assert (bare.project / "build").exists()
        await bare.prompt("clean up again")
        await bare.until(lambda: DIALOG in bare.screen, "nobody refuses it, and the dialog opens")
        _, request = bare.heard.of("asked")
        with pytest.raises(DoorError):
            await door.answer(request.id, Decision(False))
        bare.press("Enter")
        await bare.until_resolved(2)
        assert bare.heard.of("resolved")[-1] == (request.id, Resolution.ALLOWED, "person")

    try:
        play(bare, scene)
    finally:
        bare.close()


def test_door_restart(bare: Bare) -> None:
    """Another wrapper finds the session, after `/clear` too, and what was read before it."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", drips=True))
        await door.open()
        await bare.prompt("count")
        await until_works(bare)
        await door.deliver(message(1, "before"))
        bare.model.script.release()
        await bare.until_read(message(1, ""))
        await bare.until_idle()
        await door.close()
        await bare.prompt("/clear")
        await bare.until(lambda: "tick" not in bare.screen, "it is cleared")
        await bare.until_idle()
        later = bare.door()
        try:
            await later.open()
            assert await later.look_up(message(1, "")) is Whereabouts.READ
            assert await later.look_up(message(2, "")) is Whereabouts.NOWHERE
            bare.script(Turn(when="count", drips=True))
            await bare.prompt("count")
            await until_works(bare)
            await later.deliver(message(2, "after"))
            bare.model.script.release()
            await bare.until_read(message(2, ""))
            assert bare.model.times_given("you are Bob") == 1  # the new conversation knew nothing of the relay
        finally:
            await later.close()

    play(bare, scene)


def test_door_removed(bare: Bare, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hooks go in the middle of everything: nothing is blocked, and what waits is given back."""
    monkeypatch.setattr(gemini_hooks, "QUIET_S", 3.0)

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", drips=True))
        await door.open()
        await bare.prompt("count")
        await until_works(bare)
        await door.deliver(message(1, "before"))
        (Path(bare.place.folder) / "gemini-hook.sh").unlink()
        bare.model.script.release()
        await bare.until(lambda: bare.heard.of("refused"), "it is given back")
        await bare.until_idle()
        await bare.prompt("still there")
        await bare.until(lambda: "still there" in "\n".join(bare.model.given), "prompts go on")
        assert bare.model.times_given("before") == 0
        assert "blocked" not in bare.screen

    play(bare, scene)


def test_door_not_linked(installed: Path, cli: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extension there is no door, and a note that says how to get one; a door that hears no hook does not open."""
    del cli
    monkeypatch.setattr(gemini_hooks, "START_S", 5.0)
    bare = Bare(installed, is_linked=False)
    try:
        assert bare.kit.doors(bare.prepared.program, bare.place, bare.prepared.facts, bare.heard) == []
        assert "gemini extensions link" in bare.prepared.notes[0]
        door = gemini_hooks.GeminiHooks(bare.place, {"hooks": str(bare.folder / "hooks.sock")}, bare.heard)

        async def run() -> None:
            try:
                with pytest.raises(DoorShut):
                    await door.open()
            finally:
                await door.close()

        asyncio.run(run())
    finally:
        bare.close()


# --- through the wrapper -------------------------------------------------------------------------------------------------


def test_wrapped_again_after_a_kill(lab: Lab, cli: str) -> None:
    """An idle agent is typed to, one that works is reached by its hooks; what a wrapper held that was killed is not lost."""
    home = lab.folder / "home-Bob"
    path = f"{read_manifest()[cli].programs(lab.installed)}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, **environment_of(home)}
    CLIS[cli].prepare(home, lab.project, "")
    link(home, environment)
    bob = lab.start(cli, "Bob", [Turn(on_message("count"), say="counted", drips=True)], doors=True)
    lab.send("Bob", "count")
    bob.until(bob.model.script.is_dripping.is_set, "it works")
    lab.send("Bob", "this waits")
    bob.until(lambda: "handed to gemini hooks" in bob.log, "it is handed over")
    variables = Path(f"/proc/{bob.process.pid}/environ").read_text().rstrip("\0").split("\0")
    bob.process.kill()
    bob.process.communicate()
    bob.process = subprocess.Popen(
        bob.process.args, cwd=lab.project, env=dict(variable.split("=", 1) for variable in variables), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    bob.until(lambda: bob.log.count("gemini hooks is open") == 2, "the door is open again")
    ids = [lab.send("Bob", f"new {number}") for number in range(5)]
    bob.until(lambda: bob.log.count("handed to gemini hooks") == 7, "all are handed over")
    bob.model.script.release()
    lab.wait_until_settled(bob, 7)
    bob.until(lambda: len(bob.told()) >= 7, "the model is told")
    assert bob.told() == ["count", "this waits", *(f"new {number}" for number in range(5))], bob.describe()
    assert "you are Bob" in bob.model.given[0]
    assert bob.model.times_given("you are Bob") == 1
    assert lab.evidence(ids[-1]) == "transcript"
