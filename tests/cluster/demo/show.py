"""What happens: the agents count, a NATS leader and a host are killed on the way, and at the end all of it is accounted for."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from agent_relay.cli.demo.cast import Cast
from agent_relay.cli.demo.evidence import Verdict, compare, judge
from agent_relay.cli.demo.reports import Report, Reports
from agent_relay.cli.demo.transcript import Transcript
from agent_relay.cli.failures import Failure
from agent_relay.protocol.message_states import MessageState
from agent_relay.protocol.places import ENV_PREFIX
from agent_relay.sdk.locate import locate
from agent_relay.terminal.backends.choice import Backend, choose_backend
from agent_relay.testing.daemon import DaemonProcess
from tests.cluster.demo.counting import NAMES, OPENING, all_sayings, script_of, word
from tests.cluster.machines import Machines
from tests.support.networks import Namespaces

LAST = 15
LEADER_DIES_AT, HOST_DIES_AT = 4, 9  # when that number was heard
_POLL_S = 0.05
_PATIENCE_S = 90.0  # without anything happening on any screen


@dataclass
class HostPlace:
    """Where the agents of one host play (`cli.demo.cast.Place`)."""

    root: Path
    environ: dict[str, str]
    socket: str
    state_dir: str
    project_id: str


def place_at(daemon: DaemonProcess) -> HostPlace:
    environ = {name: value for name, value in os.environ.items() if not name.startswith((ENV_PREFIX, "TMUX"))}
    environ[f"{ENV_PREFIX}HOME"] = str(daemon.directory / "home")
    found = locate(start=daemon.directory, socket=daemon.socket, state_dir=daemon.state_dir, environ=environ)
    return HostPlace(daemon.directory, environ, found.socket, found.state_dir, found.project_id)


class Show:
    def __init__(self, machines: Machines, transcript: Transcript, cleanup: ExitStack) -> None:
        self._machines = machines
        self._transcript = transcript
        choice = choose_backend(Backend.TMUX)
        self._casts = {name: Cast(place_at(daemon), choice, 0.0) for name, daemon in self._homes()}
        for cast in self._casts.values():
            cleanup.callback(cast.close)
        self._reports = Reports({name: cast.record(name) for name, cast in self._casts.items()})
        cleanup.callback(self._reports.close)
        self._expected = sum(len(saying.to) for saying in all_sayings(LAST))

    def _homes(self) -> list[tuple[str, DaemonProcess]]:
        return list(zip(NAMES, self._machines.hosts.values(), strict=True))

    async def play(self) -> tuple[Verdict, list[str]]:
        """What the screens and the store say, and where they differ."""
        await self._meet()
        await self._until(lambda: self._was_heard(LEADER_DIES_AT), "they count")
        await self._kill_leader()
        await self._until(lambda: self._was_heard(HOST_DIES_AT), "they go on counting without it")
        await self._kill_host()
        await self._until(lambda: len(self._arrived()) >= self._expected, "every message arrives")
        return await self._account()

    # --- scenes ---------------------------------------------------------------------------------------------------------

    async def _meet(self) -> None:
        machines = self._machines
        where = "network namespaces" if isinstance(machines.network, Namespaces) else "loopback"
        self._transcript.scene(f"Three hosts and three NATS servers, on {where}")
        await asyncio.to_thread(machines.start)
        async with asyncio.timeout(_PATIENCE_S):
            for daemon in machines.hosts.values():
                client = daemon.connect(observer=True)
                await client.connect(wait=True)  # until one of them has the seat, and this one knows it
                await client.close()
        for name, daemon in self._homes():
            self._casts[name].play(name, script_of(name, LAST))
            self._transcript.event(f"host {self._host_of(name)}", f"pid {daemon.pid}; {name} starts in a terminal of its own")
        await self._until(lambda: len(self._reports.of("started")) == len(NAMES), "the agents start")
        await self._until_all_are_known()
        self._transcript.event(f"host {machines.seat}", "has the seat: it runs the core, the others pass on to it")

    async def _kill_leader(self) -> None:
        leader = await asyncio.to_thread(lambda: self._machines.leader)
        self._transcript.scene("The NATS server that leads the log is killed, and stays dead")
        await asyncio.to_thread(self._machines.servers[leader].kill)
        self._transcript.alarm(leader, "killed with kill -9; two of three are a majority")

    async def _kill_host(self) -> None:
        seat = self._machines.seat
        self._transcript.scene("The host that has the seat is killed")
        await asyncio.to_thread(self._machines.hosts[seat].kill)
        killed_at = time.monotonic()
        self._transcript.alarm(f"host {seat}", "killed with kill -9")
        await self._until(lambda: self._machines.seat != seat, "another host takes the seat")
        took = time.monotonic() - killed_at
        self._transcript.event(f"host {self._machines.seat}", f"has taken the seat after {took:.1f} s")
        await asyncio.to_thread(self._machines.hosts[seat].start)
        self._transcript.event(f"host {seat}", "is back, and passes on to it")

    async def _account(self) -> tuple[Verdict, list[str]]:
        daemon = self._machines.hosts[self._machines.seat]
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            async with daemon.connect(observer=True) as relay:
                stored = list(reversed((await relay.history(limit=200)).messages))
            if all(one["status"] == MessageState.DELIVERED for message in stored for one in message["recipients"]):
                break
            if time.monotonic() > deadline:
                raise Failure("The relay does not say of every message that it was delivered.")
            await asyncio.sleep(_POLL_S)
        self._look()  # what came too often has come by now
        printed = {name: self._reports.printed(name) for name in NAMES}
        return judge(printed, stored, self._arrived()), compare(printed, stored)

    # --- what is waited for -----------------------------------------------------------------------------------------------

    def _host_of(self, name: str) -> str:
        return list(self._machines.hosts)[NAMES.index(name)]

    def _arrived(self) -> list[Report]:
        return [report for report in self._reports.of("entered") if report.message is not None]

    def _was_heard(self, number: int) -> bool:
        return any(report.message is not None and report.message[2] == word(number) for report in self._arrived())

    async def _until_all_are_known(self) -> None:
        first = self._casts[NAMES[0]]
        async with self._machines.hosts[self._host_of(NAMES[0])].connect(observer=True) as relay:
            deadline = time.monotonic() + _PATIENCE_S
            while {agent.name for agent in (await relay.agents()).agents if agent.connected} < set(NAMES):
                self._look()
                if time.monotonic() > deadline:
                    raise Failure("Not every agent has connected.")
                await asyncio.sleep(_POLL_S)
        self._transcript.sent("person", NAMES[0], OPENING.format(last=LAST))
        await first.type_keys(NAMES[0], OPENING.format(last=LAST) + "\r")

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        """Tells what is reported meanwhile. The patience begins anew with everything that happens."""
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            if self._look():
                deadline = time.monotonic() + _PATIENCE_S
            if condition():
                return
            if time.monotonic() > deadline:
                raise Failure(f"Nothing happened for {_PATIENCE_S:g} s while waiting for: {what}.")
            await asyncio.sleep(_POLL_S)

    def _look(self) -> bool:
        """True when there was something new. Raises when somebody has gone who should be there."""
        fresh = self._reports.read()
        for report in fresh:
            if report.event == "entered" and report.message is not None:
                sender, _, text = report.message
                self._transcript.sent(sender, report.name, text, self._reports.latency_s(report))
        for cast in self._casts.values():
            cast.check()
        return bool(fresh)
