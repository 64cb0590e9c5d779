"""Codex's own doors against the real program: its app-server, its queue, and what a person does meanwhile."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.ports.door import Decision, Door, DoorMessage, DoorState, NotOpen, NotTaken, Resolution, Whereabouts
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.doors.codex import CodexKit
from agent_relay.terminal.doors.launching import AgentPlace, Program
from agent_relay.terminal.message_text import Room, Shown, render
from scripts.real_clis import read_manifest
from tests.real_clis.clis import CLIS, environment_of
from tests.real_clis.harness import Lab
from tests.real_clis.model.script import Turn, on_message
from tests.real_clis.model.server import ModelServer
from tests.unit.terminal.doors.heard import Heard

pytestmark = [pytest.mark.real_clis, pytest.mark.timeout(300), pytest.mark.parametrize("cli", ["codex"])]

DEADLINE_S = 90.0
SILENCE_S = 2.0


class Bare:
    """Codex as the wrapper starts it, without the wrapper, in a tmux of its own."""

    def __init__(self, installed: Path, *flags: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="relay-rd-"))
        self.project, self.home = self.folder / "project", self.folder / "home"
        (self.project / "build").mkdir(parents=True)
        self.model = ModelServer()
        self.model.__enter__()
        programs = read_manifest()["codex"].programs(installed)
        launch = CLIS["codex"].prepare(self.home, self.project, self.model.url)
        own = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "TERM": "xterm-256color", "AGENT_RELAY_NAME": "Bob"}
        environment = {**own, **environment_of(self.home), **launch.environment}
        self.place = AgentPlace("Bob", str(self.folder / "team"), "0123456789ab")
        os.mkdir(self.place.folder, 0o700)
        self.program = Program((*launch.argv, "--no-alt-screen", *flags), str(self.project), environment)
        self.prepared = CodexKit().prepare(self.program, self.place, "Agent Relay: you are Bob, one of several agents.")
        self.heard = Heard()
        self._tmux = [find_tmux().path, "-S", str(self.folder / "tmux.sock"), "-f", os.devnull]
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

    def doors(self, heard: Heard | None = None) -> list[Door]:
        return CodexKit().doors(self.program, self.place, self.prepared.facts, heard or self.heard)

    def processes(self, words: str) -> list[int]:
        done = subprocess.run(["pgrep", "-f", "--", words], capture_output=True, text=True, check=False)
        return [int(pid) for pid in done.stdout.split()]

    @property
    def servers(self) -> list[int]:
        return self.processes(rf"^\S+ app-server --listen unix://{self.place.folder}/")

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
        await self.until(lambda: CLIS["codex"].dialog in self.screen, "its dialog is on the screen")
        request_id: str = self.heard.of("asked")[-1].id
        return request_id

    async def try_to_deliver(self, door: Door, one: DoorMessage) -> None:
        """As the wrapper does: again, when it was not taken."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                await door.deliver(one)
                return
            except NotTaken:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.2)

    def close(self) -> None:
        self.model.script.release()
        self.run("kill-server")
        self.model.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def bare(installed: Path, cli: str) -> Iterator[Bare]:
    del cli
    one = Bare(installed)
    yield one
    one.close()


def play(bare: Bare, scene: Callable[[Door], Awaitable[None]]) -> None:
    async def run() -> None:
        server, queue = bare.doors()
        try:
            await scene(server)
        finally:
            await server.close()
            await queue.close()

    asyncio.run(run())


def message(number: int, body: str) -> DoorMessage:
    id_ = f"msg_{number:04d}"
    return DoorMessage(id_, str(uuid.uuid5(uuid.NAMESPACE_URL, id_)), "Alice", body, render(Shown(id_, "Alice", body), Room()))


def test_door_message_in(bare: Bare) -> None:
    """Before the first turn, idle, and with a half-written draft, which stays."""

    async def scene(door: Door) -> None:
        assert (await door.open()).version == read_manifest()["codex"].version
        await bare.until_state(DoorState.IDLE)
        await door.deliver(message(1, "look at auth.py"))
        await bare.until_read(message(1, ""))
        await bare.until(lambda: bare.model.answered, "it is answered")
        await bare.until_state(DoorState.IDLE)
        assert bare.model.times_given("you are Bob, one of several agents") == 1
        bare.type("half a draft")
        await bare.until(lambda: "half a draft" in bare.screen, "the draft is seen")
        await door.deliver(message(2, "and at the tests"))
        await bare.until_read(message(2, ""))
        await bare.until(lambda: bare.model.times_given("and at the tests") == 1, "the model is told")
        await bare.until_state(DoorState.IDLE)
        assert "half a draft" in bare.screen
        assert bare.model.times_given(message(1, "look at auth.py").text) == 1

    play(bare, scene)


def test_door_while_it_works(bare: Bare) -> None:
    """Twenty at once, in order, once; the answer that was being written is not cut off."""
    burst = [message(number, f"burst {number}.") for number in range(10, 30)]

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", say="counted", drips=True))
        await door.open()
        await door.deliver(message(1, "count"))
        await bare.until(bare.model.script.is_dripping.is_set, "it works")
        for one in burst:
            await door.deliver(one)
        assert await door.look_up(burst[-1]) is Whereabouts.HELD
        assert await door.look_up(message(99, "")) is Whereabouts.NOWHERE
        bare.model.script.release()
        await bare.until_read(burst[-1])
        await bare.until_state(DoorState.IDLE)
        assert bare.heard.read == ["msg_0001", *(one.id for one in burst)]
        given = "\n".join(bare.model.given)
        places = [given.find(one.text) for one in burst]
        assert places == sorted(places)
        assert all(given.count(one.text) == 1 for one in burst)
        assert all(answered.is_whole for answered in bare.model.answered)
        assert await door.look_up(burst[0]) is Whereabouts.READ

    play(bare, scene)


def test_door_with_an_open_dialog(bare: Bare) -> None:
    """Nothing is approved by a message; from outside and by the person it is, and the first one counts."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="clean up", command="rm -rf build"))
        await door.open()
        await door.deliver(message(1, "clean up"))
        first = await bare.until_asked(1)
        assert bare.heard.of("asked")[0].subject == "rm -rf build"
        await bare.until_state(DoorState.WAITING)
        await door.deliver(message(2, "yes y 1"))
        await asyncio.sleep(SILENCE_S)
        assert CLIS["codex"].dialog in bare.screen
        assert bare.heard.read == ["msg_0001"]
        await door.answer(first, Decision(is_allowed=False, by="Ann"))
        assert await bare.until_resolved(first) == (Resolution.DENIED, "door")
        await bare.until_read(message(2, ""))
        assert (bare.project / "build").exists()

        await door.deliver(message(3, "clean up again"))
        second = await bare.until_asked(2)
        await door.answer(second, Decision(is_allowed=True))
        await bare.until(lambda: not (bare.project / "build").exists(), "the command runs")
        assert await bare.until_resolved(second) == (Resolution.ALLOWED, "door")

        await door.deliver(message(4, "clean up once more"))
        third = await bare.until_asked(3)
        bare.press(*CLIS["codex"].approve)
        assert await bare.until_resolved(third) == (Resolution.ALLOWED, "person")
        with pytest.raises(NotOpen):
            await door.answer(third, Decision(is_allowed=False))

        await door.deliver(message(5, "clean up for the last time"))
        fourth = await bare.until_asked(4)
        await door.deliver(message(6, "this waits behind"))
        bare.press("Escape")
        assert await bare.until_resolved(fourth) == (Resolution.DENIED, "person")
        await bare.until_read(message(6, ""))  # though Codex lets its queue stand after that

    play(bare, scene)


def test_door_in_the_next_conversation(bare: Bare) -> None:
    async def scene(door: Door) -> None:
        await door.open()
        await door.deliver(message(1, "in the first"))
        await bare.until_read(message(1, ""))
        await bare.until_state(DoorState.IDLE)
        bare.type("/new")
        await bare.until(lambda: "› /new" in bare.screen, "it is typed")
        bare.press("Enter")
        await bare.until(lambda: len(bare.heard.of("session")) == 2, "another conversation is the agent's")
        await door.deliver(message(2, "in the second"))
        await bare.until_read(message(2, ""))
        await bare.until(lambda: bare.model.times_given("in the second") == 1, "the model is told")
        assert bare.model.times_given("in the first") == 0
        assert bare.model.times_given("you are Bob, one of several agents") == 1
        await bare.until(lambda: "in the second" in bare.screen, "it is on the screen")

    play(bare, scene)


def test_door_of_a_server_that_is_killed(bare: Bare) -> None:
    """In the middle of a turn: it is started anew, nothing is lost, nothing comes twice."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", say="counted", drips=True))
        await door.open()
        await door.deliver(message(1, "look at auth.py"))
        await bare.until_read(message(1, ""))
        await door.deliver(message(2, "count"))
        await bare.until(bare.model.script.is_dripping.is_set, "it works")
        await door.deliver(message(3, "this waits"))
        bare.script()
        [before] = bare.servers
        os.kill(before, signal.SIGKILL)
        await bare.try_to_deliver(door, message(4, "and this comes later"))
        await bare.until_read(message(4, ""))
        assert bare.heard.read == ["msg_0001", "msg_0002", "msg_0003", "msg_0004"]
        await bare.until_state(DoorState.IDLE)
        assert all(bare.model.times_given(body) == 1 for body in ("this waits", "and this comes later"))
        assert bare.heard.of("lost") == []

    play(bare, scene)


def test_door_after_a_wrapper_that_died(bare: Bare) -> None:
    """Another door object finds what the first one handed over."""

    async def scene(door: Door) -> None:
        bare.script(Turn(when="count", say="counted", drips=True))
        await door.open()
        await door.deliver(message(1, "count"))
        await bare.until(bare.model.script.is_dripping.is_set, "it works")
        await bare.until_read(message(1, ""))
        await door.deliver(message(2, "this waits"))
        heard = Heard()
        later, _ = bare.doors(heard)
        await later.open()
        found = [await later.look_up(one) for one in (message(1, "count"), message(2, "this waits"), message(3, "no"))]
        assert found == [Whereabouts.READ, Whereabouts.HELD, Whereabouts.NOWHERE]
        bare.model.script.release()
        await bare.until(lambda: heard.read == ["msg_0002"], "the reading is told to the later one")
        await later.close()

    play(bare, scene)


def test_server_ends_with_the_terminal(bare: Bare) -> None:
    async def scene(door: Door) -> None:
        await door.open()
        assert len(bare.servers) == 1
        [program] = bare.run("list-panes", "-t", "bob", "-F", "#{pane_pid}").split()
        os.kill(int(program), signal.SIGKILL)
        await bare.until(lambda: not bare.processes(bare.place.folder), "nothing of it is left")

    play(bare, scene)


def test_what_it_runs_has_its_own_name(bare: Bare) -> None:
    async def scene(door: Door) -> None:
        bare.script(Turn(when="who", command="echo $AGENT_RELAY_NAME > name.txt"))
        await door.open()
        await door.deliver(message(1, "who are you"))
        await door.answer(await bare.until_asked(1), Decision(is_allowed=True))
        name = bare.project / "name.txt"
        await bare.until(lambda: name.exists() and name.read_text() == "Bob\n", "the command runs")

    play(bare, scene)


def test_queue_of_a_codex_without_a_server(installed: Path, cli: str) -> None:
    del cli
    bare = Bare(installed, "--no-daemon")
    assert "server" not in bare.prepared.facts

    async def scene() -> None:
        (door,) = bare.doors()
        await door.open()
        with pytest.raises(NotTaken):
            await door.deliver(message(1, "too early"))
        await bare.until(lambda: "Ask Codex" in bare.screen, "it is ready")
        bare.type("hello")
        await bare.until(lambda: "› hello" in bare.screen, "it is typed")
        bare.press("Enter")
        await bare.try_to_deliver(door, message(2, "by the queue"))
        await door.deliver(message(3, "and one more"))
        await bare.until_read(message(3, ""))
        assert bare.heard.read == ["msg_0002", "msg_0003"]
        assert bare.model.times_given("by the queue") == 1
        assert await door.look_up(message(2, "by the queue")) is Whereabouts.READ
        assert await door.look_up(message(4, "never sent")) is Whereabouts.NOWHERE
        await door.close()

    try:
        asyncio.run(scene())
    finally:
        bare.close()


# --- through the wrapper -------------------------------------------------------------------------------------------------


def test_wrapped_again_after_a_kill(lab: Lab, cli: str) -> None:
    """The program and its server outlive the wrapper; what was queued then is not queued twice."""
    bob = lab.start(cli, "Bob", [Turn(on_message("count"), say="counted", drips=True)], doors=True)
    lab.send("Bob", "count")
    bob.until(bob.model.script.is_dripping.is_set, "it works")
    lab.send("Bob", "this waits")
    bob.until(lambda: bob.log.count("handed to codex app-server") == 2, "it is handed over")
    variables = Path(f"/proc/{bob.process.pid}/environ").read_text().rstrip("\0").split("\0")
    bob.process.kill()
    bob.process.communicate()
    bob.process = subprocess.Popen(
        bob.process.args, cwd=lab.project, env=dict(variable.split("=", 1) for variable in variables), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    bob.until(lambda: bob.log.count("codex app-server is open") == 2, "the door is open again")
    lab.send("Bob", "and this is new")
    bob.model.script.release()
    lab.wait_until_settled(bob, 3)
    bob.until(lambda: len(bob.told()) >= 3, "the model is told")
    assert bob.told() == ["count", "this waits", "and this is new"], bob.describe()
