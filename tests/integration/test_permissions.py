"""`permissions` and `questions` as a person uses them: a real daemon, and an agent that asks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from agent_relay.protocol.payloads import ControlPayload
from agent_relay.sdk.client import RelayClient
from agent_relay.testing.daemon import DaemonProcess

DEADLINE_S = 60.0
ASKS = {"requestId": "abcdefgh-1", "description": "Run it?", "tool": "Bash", "command": "make install"}
WONDERS = {"questionId": "q-1", "question": "Which colour?", "options": ["red", "blue"]}


class Wrapper:
    """Says what a wrapper says: asks, and carries every answer out."""

    def __init__(self, relay: RelayClient) -> None:
        self.relay = relay
        self.told: list[ControlPayload] = []
        relay.on_control = self._control

    def _control(self, control: ControlPayload) -> None:
        self.told.append(control)
        if control.command == "answer":
            self.relay.report("question.resolved", questionId=control.id, resolvedBy="door")
        else:
            resolution = "approved" if control.command == "approve" else "denied"
            self.relay.report("permission.resolved", requestId=control.id, resolution=resolution, resolvedBy="door")


@asynccontextmanager
async def asking(daemon: DaemonProcess, *names: str) -> AsyncIterator[list[Wrapper]]:
    wrappers = [Wrapper(RelayClient(name, socket=daemon.socket, control=True)) for name in names]
    for wrapper in wrappers:
        await wrapper.relay.connect()
        wrapper.relay.report("permission.requested", **ASKS)
        wrapper.relay.report("question.requested", **WONDERS)
        await wrapper.relay.agents()  # the reports were heard before this
    yield wrappers
    for wrapper in wrappers:
        await wrapper.relay.close()


async def run(daemon: DaemonProcess, *words: str, status: int = 0, **environ: str) -> str:
    """What it printed, or said went wrong."""

    def call() -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
        return subprocess.run(
            [sys.executable, "-m", "agent_relay", *words, "--socket", daemon.socket], env=clean | environ, cwd=daemon.directory,
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip

    done = await asyncio.to_thread(call)
    assert done.returncode == status, (words, done)
    return done.stderr if status else done.stdout


def test_a_person_decides() -> None:
    async def play(daemon: DaemonProcess) -> None:
        async with asking(daemon, "Bob") as (bob,):
            listed = await run(daemon, "permissions")
            assert listed.startswith("abcdefgh  Bob  Bash  ")
            assert "    make install\n    Run it?\n" in listed
            assert "asks for 2 decisions" in await run(daemon, "agents")
            assert "options: red | blue" in await run(daemon, "questions", "list", "--agent", "bob")
            assert json.loads(await run(daemon, "questions", "--agent", "Nobody", "--json"))["questions"] == []
            assert await run(daemon, "permissions", "deny", "abc", "--reason", "Not today.") == "denied  Bob: make install\n"
            assert await run(daemon, "questions", "answer", "q-1", "blue") == "answered  Bob: Which colour?\n"
            assert [(told.command, told.id, told.text, told.by) for told in bob.told] == [
                ("deny", "abcdefgh-1", "Not today.", "human"),
                ("answer", "q-1", "blue", "human"),
            ]
            assert await run(daemon, "permissions") == "There are no open permission requests.\n"
            assert "There is no open permission abc" in await run(daemon, "permissions", "approve", "abc", status=1)

    with DaemonProcess() as daemon:
        asyncio.run(play(daemon))


def test_the_same_id_of_two_agents() -> None:
    async def play(daemon: DaemonProcess) -> None:
        async with asking(daemon, "Bob", "Carol") as (bob, carol):
            said = await run(daemon, "permissions", "approve", "abcdefgh-1", status=1)
            assert said == "agent-relay: Bob, Carol each have a permission abcdefgh-1; choose one with --agent.\n"
            done = json.loads(await run(daemon, "permissions", "--json", "approve", "abc", "--agent", "Carol"))
            assert done == {"agent": "Carol", "id": "abcdefgh-1", "command": "approve"}
            assert ([told.command for told in carol.told], bob.told) == (["approve"], [])

    with DaemonProcess() as daemon:
        asyncio.run(play(daemon))


async def follow(daemon: DaemonProcess, command: str) -> asyncio.subprocess.Process:
    words = ["-m", "agent_relay", command, "-f", "--json", "--socket", daemon.socket]
    return await asyncio.create_subprocess_exec(
        sys.executable, *words, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )


async def next_change(watching: asyncio.subprocess.Process) -> dict[str, Any]:
    assert watching.stdout is not None
    found: dict[str, Any] = json.loads(await asyncio.wait_for(watching.stdout.readline(), DEADLINE_S))
    return found


async def interrupt(watching: asyncio.subprocess.Process) -> None:
    watching.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(watching.communicate(), DEADLINE_S) == (b"", b"")
    assert watching.returncode in {130, -signal.SIGINT}


def test_watching_shows_each_as_it_comes_and_goes() -> None:
    async def play(daemon: DaemonProcess) -> None:
        watching, questions = await follow(daemon, "permissions"), await follow(daemon, "questions")
        async with asking(daemon, "Bob") as (bob,):
            came = await next_change(watching)
            assert (came["change"], came["permission"]["command"]) == ("requested", "make install")
            bob.relay.report("permission.resolved", requestId="abcdefgh-1", resolution="gone", resolvedBy="person")
            assert (await next_change(watching))["change"] == "over"
            bob.relay.report("question.requested", questionId="q-1", question="Which colour?", options=["red", "blue"])
            asked = await next_change(questions)
            assert (asked["change"], asked["question"]["question"]) == ("requested", "Which colour?")
            for process in (watching, questions):
                await interrupt(process)

    with DaemonProcess() as daemon:
        asyncio.run(play(daemon))


def test_watching_notices_an_agent_that_goes_and_comes_back_with_the_same_request() -> None:
    """What it says again is no event: it was asked before."""

    async def play(daemon: DaemonProcess) -> None:
        watching = await follow(daemon, "permissions")
        async with asking(daemon, "Bob"):
            assert (await next_change(watching))["change"] == "requested"
        assert (await next_change(watching))["change"] == "over"
        async with asking(daemon, "Bob"):
            assert (await next_change(watching))["change"] == "requested"
            await interrupt(watching)

    with DaemonProcess() as daemon:
        asyncio.run(play(daemon))


def test_without_a_daemon_it_says_so() -> None:
    daemon = DaemonProcess()
    try:
        for words in (["permissions"], ["permissions", "approve", "x"], ["questions", "answer", "x", "y"]):
            assert "The daemon is not running" in asyncio.run(run(daemon, *words, status=3))
    finally:
        daemon.remove()
