"""A CLI as the wrapper starts it, without the wrapper, in a tmux of its own: what its doors tell is heard as it comes."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import TracebackType

from msgspec.structs import replace

from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.delivery.message_text import Room, ShownMessage, Wording, introduction_for_start, render
from agent_relay.terminal.doors.door import Door, DoorMessage, DoorState, NotTaken, Resolution
from agent_relay.terminal.doors.launch import AgentPlace, Launcher, Program, launcher_for
from agent_relay.terminal.profiles.profile import load_profiles
from scripts.real_clis import read_manifest
from tests.real_clis.clis import CLIS, environment_of
from tests.real_clis.model.script import Script, Turn
from tests.real_clis.model.server import ModelServer
from tests.unit.terminal.doors.heard import Heard

DEADLINE_S = 240.0
_TERM = "TERM=xterm-256color"
_TRIES_EVERY_S = 0.2
_MAIN_SCREEN = {"claude": {"CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN": "1"}}
_MAIN_SCREEN_FLAGS = {"codex": ["--no-alt-screen"]}


class Bare:
    """`launcher`: the door's own if it is to be other than usual. Without `is_admitted` nobody has let the door in."""

    def __init__(
        self, installed: Path, cli: str, *flags: str, environ: Mapping[str, str] | None = None, launcher: Launcher | None = None,
        is_admitted: bool = True,
    ) -> None:  # fmt: skip
        self.folder = Path(tempfile.mkdtemp(prefix="relay-rd-"))
        self.project, self.home = self.folder / "project", self.folder / "home"
        (self.project / "build").mkdir(parents=True)
        self.cli, self.version = CLIS[cli], read_manifest()[cli].version
        self.model = ModelServer()
        self.model.__enter__()
        launch = self.cli.prepare(self.home, self.project, self.model.url)
        path = f"{read_manifest()[cli].programs(installed)}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "AGENT_RELAY_NAME": "Bob", **_MAIN_SCREEN.get(cli, {})}
        environment = {**own, **environment_of(self.home), **launch.environment, **(environ or {})}
        if is_admitted and self.cli.admit is not None:
            self.cli.admit(self.home, environment)
        self.place = AgentPlace("Bob", str(self.folder / "team"), "0123456789ab")
        os.mkdir(self.place.folder, 0o700)
        found = launcher or launcher_for(load_profiles()[cli])
        assert found is not None
        self.launcher = found
        self._program = Program((*launch.argv, *_MAIN_SCREEN_FLAGS.get(cli, []), *flags), str(self.project), environment)
        self.prepared = self.launcher.prepare(self._program, self.place, introduction_for_start(Wording("Bob")))
        self.heard = Heard()
        self._tmux = [find_tmux().path, "-S", str(self.folder / "tmux.sock"), "-f", os.devnull]
        self._start()

    def _start(self) -> None:
        """The variables come with tmux's own: a password among them must not be seen in the list of processes."""
        words = ["-x", "120", "-y", "40", "-c", str(self.project), shlex.join(["env", _TERM, *self.prepared.program.argv])]
        command = [*self._tmux, "new-session", "-d", "-s", "bob", *words]
        subprocess.run(command, env=dict(self.prepared.program.environment), check=True, timeout=20)

    def restart(self, launcher: Launcher, *words: str) -> None:
        """Another start in the same home, as another wrapper would do it; with these words, or as before."""
        self.run("kill-server")
        self._tmux[2] = f"{self._tmux[2]}.next"  # the server before may still be ending
        self.launcher = launcher
        program = replace(self._program, argv=words) if words else self._program
        self.prepared = launcher.prepare(program, self.place, introduction_for_start(Wording("Bob")))
        self._start()

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.model.script.release()
        self.run("kill-server")
        self.model.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    # --- what a person sees and does -----------------------------------------------------------------------------------

    def run(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=False, timeout=20).stdout

    def press(self, *keys: str) -> None:
        self.run("send-keys", "-t", "bob", *keys)

    def type(self, text: str) -> None:
        self.run("send-keys", "-t", "bob", "-l", "--", text)

    @property
    def screen(self) -> str:
        return self.run("capture-pane", "-p", "-t", "bob").rstrip()

    async def enter(self, text: str) -> None:
        """Types it, sees it there, and presses Enter."""
        self.type(text)
        await self.until(lambda: text in self.screen, f"{text!r} is typed")
        await asyncio.sleep(0.3)  # keys that come faster are a paste, and so is an Enter among them
        self.press("Enter")

    # --- the model and the doors ---------------------------------------------------------------------------------------

    def play(self, *turns: Turn) -> None:
        self.model.script = Script(turns)

    def doors(self, heard: Heard | None = None) -> list[Door]:
        return self.launcher.doors(self.prepared.program, self.place, self.prepared.facts, heard or self.heard)

    async def try_to_deliver(self, door: Door, one: DoorMessage) -> None:
        """As the wrapper does: again, when it was not taken."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                await door.deliver(one)
                return
            except NotTaken:
                assert time.monotonic() < deadline
                await asyncio.sleep(_TRIES_EVERY_S)

    # --- waiting -------------------------------------------------------------------------------------------------------

    async def until(self, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            if time.monotonic() > deadline:
                told = [str(entry) for entry in self.heard.all]
                raise AssertionError(f"It did not happen: {what}.\n{self.screen}\n{told}\n{self.model.given[-3:]}")
            await asyncio.sleep(0.05)

    async def until_works(self) -> None:
        await self.until(self.model.script.is_dripping.is_set, "it works")

    async def until_state(self, state: DoorState) -> None:
        await self.until(lambda: self.heard.of("state") and self.heard.of("state")[-1][0] is state, f"it is {state}")

    async def until_read(self, *some: DoorMessage) -> None:
        await self.until(lambda: {one.id for one in some} <= set(self.heard.read), f"{[one.id for one in some]} are read")

    async def until_asked(self, count: int) -> str:
        """The id of the newest request."""
        await self.until(lambda: len(self.heard.of("asked")) == count, "it is asked")
        request_id: str = self.heard.of("asked")[-1].id
        return request_id

    async def until_resolved(self, request_id: str) -> tuple[Resolution, str]:
        await self.until(lambda: any(entry[0] == request_id for entry in self.heard.of("resolved")), "it is resolved")
        ((_, resolution, by),) = (entry for entry in self.heard.of("resolved") if entry[0] == request_id)
        return resolution, by


def play(bare: Bare, scene: Callable[[list[Door]], Awaitable[None]]) -> None:
    """With its doors, none of which is open yet; all are closed at the end."""

    async def run() -> None:
        doors = bare.doors()
        try:
            await scene(doors)
        finally:
            for door in doors:
                await door.close()

    asyncio.run(run())


def message(number: int, body: str) -> DoorMessage:
    id_ = f"msg_{number:04d}"
    return DoorMessage(
        id_, str(uuid.uuid5(uuid.NAMESPACE_URL, id_)), "Alice", body, render(ShownMessage(id_, "Alice", body), Room())
    )
