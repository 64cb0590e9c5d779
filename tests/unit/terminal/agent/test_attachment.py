"""A person's terminal given to a session of a real tmux, from a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator

import pytest

from agent_relay.terminal.agent.attachment import attach, is_running
from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.backends.tmux_server import TmuxServer
from tests.unit.terminal.backends.recorder import ENVIRONMENT, Recorder, eventually, eventually_async, own_tmux

pytestmark = pytest.mark.terminals

ATTACH = """
import sys
from agent_relay.terminal.agent.attachment import attach
from agent_relay.terminal.backends.tmux_program import find_tmux
from agent_relay.terminal.backends.tmux_server import TmuxServer
said = attach(TmuxServer(find_tmux(), sys.argv[1]), sys.argv[2], read_only=sys.argv[3:] == ["look"])
print("SAID", repr(said), flush=True)
"""
NAME = "Bob.v1"  # tmux would read the dot as a pane


@pytest.fixture
def server() -> Iterator[TmuxServer]:
    with own_tmux() as server:
        yield server


def play(server: TmuxServer, scene: Callable[[TmuxTerminal, Recorder], Awaitable[None]]) -> None:
    async def run() -> None:
        recorder = Recorder()
        terminal = TmuxTerminal(server, NAME, recorder)
        async with asyncio.timeout(120):
            await terminal.start(["cat"], cwd="/", environment=ENVIRONMENT)
            try:
                await scene(terminal, recorder)
            finally:
                await terminal.stop(1)
                while _people:
                    await _people.pop().stop(1)

    asyncio.run(run())


_people: list[PtyTerminal] = []


async def person_at(server: TmuxServer, *words: str, term: str = "xterm-256color") -> tuple[PtyTerminal, Recorder]:
    recorder = Recorder()
    person = PtyTerminal(recorder)
    argv = ["env", f"TERM={term}", sys.executable, "-c", ATTACH, server.socket, *words]
    await person.start(argv, cwd="/", environment=ENVIRONMENT, columns=90, rows=25)
    _people.append(person)
    return person, recorder


def test_whether_it_runs(server: TmuxServer) -> None:
    assert not is_running(server, NAME)  # there is no server

    async def scene(terminal: TmuxTerminal, recorder: Recorder) -> None:
        assert is_running(server, NAME)
        assert not is_running(server, "Bob")  # not even by the beginning of a name
        assert not is_running(server, "Bob.v")
        await terminal.stop(1)
        await eventually(lambda: not is_running(server, NAME))

    play(server, scene)
    assert not is_running(server, NAME)


@pytest.mark.parametrize("term", ["xterm-256color", "no-such-terminal", ""])
def test_a_person_sees_types_and_detaches_in_any_terminal(server: TmuxServer, term: str) -> None:
    async def scene(terminal: TmuxTerminal, recorder: Recorder) -> None:
        person, seen = await person_at(server, NAME, term=term)
        await eventually_async(lambda: is_attached(terminal))
        await person.write(b"hello\r")
        await recorder.until(b"hello")
        await seen.until(b"hello")
        await server.run(("detach-client", "-a"), ("detach-client", "-s", "=Bob~2ev1"))
        await seen.until(b"SAID ''")
        assert (await person.wait()).code == 0
        assert is_running(server, NAME)

    play(server, scene)


def test_who_only_looks_cannot_type(server: TmuxServer) -> None:
    async def scene(terminal: TmuxTerminal, recorder: Recorder) -> None:
        person, seen = await person_at(server, NAME, "look")
        await eventually_async(lambda: is_attached(terminal))
        await person.write(b"forbidden\r")
        await terminal.write(b"allowed\r")
        await seen.until(b"allowed")
        assert b"forbidden" not in recorder.data
        assert b"forbidden" not in seen.data
        await terminal.stop(1)
        await seen.until(b"SAID ''")
        await person.wait()

    play(server, scene)


def test_the_end_of_the_session_ends_the_attaching(server: TmuxServer) -> None:
    async def scene(terminal: TmuxTerminal, recorder: Recorder) -> None:
        person, seen = await person_at(server, NAME)
        await eventually_async(lambda: is_attached(terminal))
        await person.write(b"\x04")
        await terminal.wait()
        await terminal.stop(1)
        await seen.until(b"SAID ''")
        assert (await person.wait()).code == 0

    play(server, scene)


def test_what_tmux_complains_about_is_handed_on(server: TmuxServer) -> None:
    async def scene(terminal: TmuxTerminal, recorder: Recorder) -> None:
        person, seen = await person_at(server, "Nobody")
        await seen.until(b"can't find session")
        await person.wait()

    play(server, scene)
    assert attach(server, NAME)  # no server any more


async def is_attached(terminal: TmuxTerminal) -> bool:
    return (await terminal.person()).is_attached
