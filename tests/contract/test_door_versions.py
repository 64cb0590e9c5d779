"""Every door in a tested version and in another one: it is used where its probe passes, on trial where it was not tested, and
left alone under the strict setting.

One body over all doors, each against its recorded other end. What a door does besides is in tests/unit/terminal/doors.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from agent_relay.protocol.states import ClientState
from agent_relay.terminal.delivery.door_selection import TYPING, DoorSelection
from agent_relay.terminal.doors.codex.hooks import CodexStopHook
from agent_relay.terminal.doors.codex.server import CodexServer
from agent_relay.terminal.doors.door import Door
from agent_relay.terminal.doors.gemini.hooks import GeminiHooks
from agent_relay.terminal.doors.versions import Versions
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import Reporter
from tests.unit.terminal.doors import claude_cli, codex_cli, gemini_cli, opencode_cli
from tests.unit.terminal.doors.codex.test_queue import FakeCodex
from tests.unit.terminal.doors.codex_hooked import TRUST
from tests.unit.terminal.doors.heard import Heard, until

Open = Callable[[Path, str], AbstractAsyncContextManager[Sequence[Door]]]


@contextlib.asynccontextmanager
async def claude(folder: Path, version: str) -> AsyncIterator[Sequence[Door]]:
    stage = claude_cli.Stage(folder)
    await stage.start()
    stage.cli.be("idle", version=version)
    yield stage.doors()
    await stage.close()


@contextlib.asynccontextmanager
async def codex(folder: Path, version: str) -> AsyncIterator[Sequence[Door]]:
    cli, queue = codex_cli.CodexCli(folder), FakeCodex(folder)
    cli.version = version
    queue.program.write_text(queue.program.read_text().replace("0.166.3", version))
    queue.begin()
    await cli.start()
    cli.begin()
    heard = Heard()
    (queue.home / "config.toml").write_text(TRUST)
    place = codex_cli.place(folder)
    stop_hook = CodexStopHook(queue.started, str(folder / "hooks.sock"), place, heard)
    yield [CodexServer(str(cli.socket), place, heard), queue.door(heard), stop_hook]
    await cli.close()


@contextlib.asynccontextmanager
async def gemini(folder: Path, version: str) -> AsyncIterator[Sequence[Door]]:
    stage = gemini_cli.Stage(folder)
    door = GeminiHooks(stage.place, {**stage.prepared.facts, "version": version}, stage.heard)

    async def start() -> None:
        await until(lambda: os.path.exists(stage.prepared.facts["hooks"]), "its hooks are listened to")
        await stage.cli.start()

    starting = asyncio.create_task(start())
    yield [door]
    await starting  # its hook ends also when nobody listens any more


@contextlib.asynccontextmanager
async def opencode(folder: Path, version: str) -> AsyncIterator[Sequence[Door]]:
    cli = opencode_cli.OpencodeCli(folder)
    await cli.start()
    cli.show()
    cli.answers["/global/health"] = (200, f'{{"healthy":true,"version":"{version}"}}'.encode())
    yield [cli.door(Heard())]
    await cli.stop()


class Daemon:
    """What the daemon was told of the way in."""

    state = ClientState.READY

    def __init__(self) -> None:
        self.told: dict[str, Any] = {}

    def report(self, kind: str, /, **fields: Any) -> None:
        if kind == "agent.state":
            self.told = fields


CLIS = {"claude": claude, "codex": codex, "gemini": gemini, "opencode": opencode}


def probe(cli: str, version: str, *, first: int = 0, is_strict: bool = False) -> Daemon:
    """What is told once the way in is decided; `first`: the doors before it are not there."""

    async def run(folder: Path) -> Daemon:
        daemon, profile = Daemon(), load_profiles()[cli]
        versions = Versions(profile.title, profile.recorded, is_strict)
        async with CLIS[cli](folder, version) as doors:
            reporter = Reporter(RelayLink(daemon, lambda: daemon))  # type: ignore[arg-type, return-value]
            selection = DoorSelection(reporter, (), versions, profile.doors)
            running = asyncio.create_task(selection.run(deque(doors[first:])))
            async with asyncio.timeout(120):
                await until(lambda: "door" in daemon.told, "the way in is decided")
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await selection.close()
        return daemon

    with claude_cli.short_folder() as folder:
        return asyncio.run(run(folder))


DOORS = [(name, number) for name in CLIS for number in range(len(load_profiles()[name].doors))]
every_door = pytest.mark.parametrize(("cli", "number"), DOORS, ids=[load_profiles()[cli].doors[number] for cli, number in DOORS])


@every_door
@pytest.mark.parametrize("is_strict", [True, False])
def test_a_later_one_of_the_same_series_is_used(cli: str, number: int, is_strict: bool) -> None:
    profile = load_profiles()[cli]
    series = ".".join(profile.recorded.split(".")[:2])
    told = probe(cli, f"{series}.9999", first=number, is_strict=is_strict).told
    assert told["door"] == profile.doors[number]
    assert "tested" not in told.get("doorNote", "")
    assert [each["door"] for each in told.get("unusedDoors", [])] == list(profile.doors[:number])


@every_door
@pytest.mark.parametrize("version", ["99.1.0", ""])
def test_one_that_was_not_tested_is_used_and_on_trial(cli: str, number: int, version: str) -> None:
    profile = load_profiles()[cli]
    told = probe(cli, version, first=number).told
    assert told["door"] == profile.doors[number]
    said = f"{profile.title} {version}" if version else f"{profile.title} does not report its version"
    assert f"{said}, but {profile.recorded} was tested: on trial until a first message is read" in told["doorNote"]


@every_door
@pytest.mark.parametrize("version", ["99.1.0", ""])
def test_under_the_strict_setting_it_is_not_used_and_the_reason_and_the_way_out_are_told(
    cli: str, number: int, version: str
) -> None:
    profile = load_profiles()[cli]
    told = probe(cli, version, first=number, is_strict=True).told
    assert told["door"] == TYPING
    unused = {each["door"]: each for each in told["unusedDoors"]}
    assert list(unused) == list(profile.doors)
    for door in profile.doors[number:]:
        assert f"but only {profile.recorded} was tested" in unused[door]["reason"]
        assert '`--doors probe` or `doors = "probe"`' in unused[door]["mend"]
