"""The wrapper in this process, on a real PTY with a real daemon: what only whoever holds it can do."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agent_relay.protocol.payloads import ControlPayload
from agent_relay.terminal.agent.launch import Home
from agent_relay.terminal.agent.setup import AgentSetup
from agent_relay.terminal.agent.wrapper import Wrapper
from agent_relay.terminal.backends.pty import PtyTerminal
from agent_relay.terminal.backends.terminal import ExitStatus, Terminal, TerminalError, TerminalListener
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.screen.contents import Screen
from agent_relay.testing.daemon import DaemonProcess

pytestmark = pytest.mark.terminals

AGENT = [sys.executable, "-m", "agent_relay.cli.demo.scripted_agent", "--record"]


def control(wrapper: Wrapper, command: str) -> None:
    """As the daemon would ask it."""
    assert wrapper.relay.on_control is not None
    wrapper.relay.on_control(ControlPayload(command))


class Inside:
    def __init__(self, folder: Path, daemon: DaemonProcess, make: Callable[[TerminalListener], Terminal[Screen]]) -> None:
        self.record = folder / "record.jsonl"
        self.daemon = daemon
        self.home = Home(str(daemon.state_dir), "Bob")
        self.home.make()
        self._setup = AgentSetup(
            home=self.home,
            profile=load_profiles()["generic"],
            argv=[*AGENT, str(self.record)],
            cwd=str(folder),
            environment=dict(os.environ),
            make_terminal=make,
            has_introduction=False,
        )

    async def play(self, scene: Callable[[Inside, Wrapper], Awaitable[None]]) -> ExitStatus:
        async with asyncio.timeout(120), self.daemon.connect("Bob") as relay:
            wrapper = Wrapper(self._setup, relay, lambda: self.daemon.connect("Bob"))
            running = asyncio.create_task(wrapper.run())
            try:
                await scene(self, wrapper)
            finally:
                wrapper.stop()
                status = await running
            return status

    def submitted(self) -> list[str]:
        if not self.record.exists():
            return []
        events = [json.loads(line) for line in self.record.read_text("utf-8").split("\n")[:-1]]
        return [event["text"].partition("]: ")[2] for event in events if event["event"] == "submitted"]

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.02)


def test_a_paused_agent_is_given_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    async def scene(inside: Inside, wrapper: Wrapper) -> None:
        control(wrapper, "pause")
        async with inside.daemon.connect("Carol") as carol:
            await carol.send("Bob", "one")
            await carol.send("Bob", "two")
            inbox = Path(inside.home.team, "inbox.md")
            await inside.until(lambda: inbox.exists() and "> two" in inbox.read_text("utf-8"))
            await asyncio.sleep(2)  # it would be typed within one: that it is not is what is tested
            assert inside.submitted() == []
            control(wrapper, "resume")
            await inside.until(lambda: inside.submitted() == ["one", "two"])

    with DaemonProcess() as daemon:
        assert asyncio.run(Inside(tmp_path, daemon, PtyTerminal).play(scene)).signal == 15


def test_a_terminal_that_fails_once_loses_no_message(tmp_path: Path) -> None:
    class Stumbling(PtyTerminal):
        failures = 2

        async def paste(self, text: str) -> None:
            if self.failures:
                self.failures -= 1
                raise TerminalError("It did not answer.")
            await super().paste(text)

    async def scene(inside: Inside, wrapper: Wrapper) -> None:
        async with inside.daemon.connect("Carol") as carol:
            receipts = [await carol.send("Bob", text) for text in ("one", "two")]
            for receipt in receipts:
                await receipt.delivered(timeout=40)
            assert inside.submitted() == ["one", "two"]

    with DaemonProcess() as daemon:
        asyncio.run(Inside(tmp_path, daemon, Stumbling).play(scene))


def test_a_client_that_is_over_is_replaced_and_nothing_is_doubled(tmp_path: Path) -> None:

    async def scene(inside: Inside, wrapper: Wrapper) -> None:
        async with inside.daemon.connect("Carol") as carol:
            await (await carol.send("Bob", "one")).delivered(timeout=30)
        await wrapper.relay.close(1)
        async with inside.daemon.connect("Carol") as carol:
            await (await carol.send("Bob", "two")).delivered(timeout=30)
            assert inside.submitted() == ["one", "two"]

    with DaemonProcess() as daemon:
        asyncio.run(Inside(tmp_path, daemon, PtyTerminal).play(scene))


def test_an_agent_that_writes_to_a_busy_one_is_told_at_once(tmp_path: Path) -> None:
    async def scene(inside: Inside, wrapper: Wrapper) -> None:
        async with inside.daemon.connect("Carol"):
            pass
        for number in range(4):
            await wrapper.relay.send("Carol", str(number))
        await inside.until(lambda: inside.record.exists() and "Carol is busy: 4 of at most 5" in inside.record.read_text("utf-8"))

    with DaemonProcess("--queue-capacity=5") as daemon:
        asyncio.run(Inside(tmp_path, daemon, PtyTerminal).play(scene))
