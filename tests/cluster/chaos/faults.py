"""The faults: what is done to hosts, to NATS servers and to the network between them while the agents talk.

Each is told to the history when it begins and when it is over. What exactly happens, and when, is drawn by the stage's dice.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable

from agent_relay.testing.daemon import DaemonFailed
from tests.chaos.history import Entry
from tests.cluster.chaos.stage import ClusterStage

_MOMENT_S = 5.0  # until something happens that agents under load cause many times a second
_NODES_S = 60.0  # until servers that were started again have each other
_SLICE_S = (0.02, 0.15)


@contextlib.asynccontextmanager
async def _fault(stage: ClusterStage, name: str) -> AsyncIterator[None]:
    stage.history.fault(name)
    try:
        yield
    finally:
        stage.history.fault(name, ends=True)


async def _any_host(stage: ClusterStage) -> str:
    """More often than not the one that has the seat."""
    return await stage.seat() if stage.random.random() < 0.6 else stage.random.choice(list(stage.machines.hosts))


async def _any_server(stage: ClusterStage) -> str:
    """More often than not the one that leads the log. Every server is well: two at once are a fault of their own."""
    await asyncio.to_thread(stage.machines.nats.wait_ready)
    return await stage.leader() if stage.random.random() < 0.6 else stage.random.choice(list(stage.machines.servers))


# --- hosts ------------------------------------------------------------------------------------------------------------------

_MOMENTS: list[Callable[[Entry], bool]] = [
    lambda entry: entry.kind == "stored",
    lambda entry: entry.kind == "outcome",
    lambda entry: entry.kind == "welcomed",
    lambda entry: entry.kind == "arrived",
]


async def kill_host(stage: ClusterStage) -> None:
    """kill -9, at any moment, or in the very moment in which somebody was told something that must be true from then on."""
    host = await _any_host(stage)
    daemon = stage.machines.hosts[host]
    async with _fault(stage, f"kill {host}"):
        if stage.random.random() < 0.5:
            await _strike_when(stage, daemon.pid, stage.random.choice(_MOMENTS))
        await asyncio.to_thread(daemon.kill)
        await stage.let_it_run(0.0, stage.random.choice((0.5, 7.0)))
        await _start(stage, host)


async def _strike_when(stage: ClusterStage, pid: int, moment: Callable[[Entry], bool]) -> None:
    def strike(entry: Entry) -> bool:
        if moment(entry):
            os.kill(pid, signal.SIGKILL)
            return True
        return False

    stage.history.trigger = strike
    await stage.wait(lambda: stage.history.trigger is None, _MOMENT_S)
    stage.history.trigger = None


async def _start(stage: ClusterStage, host: str) -> None:
    try:
        await asyncio.to_thread(stage.machines.hosts[host].start)
    except DaemonFailed:  # a machine that is very busy; the next try decides
        await asyncio.to_thread(stage.machines.hosts[host].start)


async def stop_host(stage: ClusterStage) -> None:
    """SIGSTOP: it hangs, and believes on waking what it believed before. Some of its agents go elsewhere meanwhile."""
    host = await _any_host(stage)
    async with _fault(stage, f"stop {host}"):
        stage.machines.stop(host)
        try:
            await stage.let_it_run(0.3, 1.0)
            _move(stage, [agent.name for agent in stage.agents if agent.socket == stage.sockets[host]][::2])
            await stage.let_it_run(0.5, stage.random.choice((2.0, 5.0, 10.0)))
        finally:
            stage.machines.go_on(host)


async def slow_host(stage: ClusterStage) -> None:
    """It gets a fraction of its time."""
    host = await _any_host(stage)
    async with _fault(stage, f"slow {host}"):
        for _ in range(stage.random.randrange(10, 30)):
            stage.machines.stop(host)
            try:
                await stage.let_it_run(*_SLICE_S)
            finally:
                stage.machines.go_on(host)
            await stage.let_it_run(0.01, 0.05)


async def leave(stage: ClusterStage) -> None:
    """SIGTERM, as `down` does; the seat goes to another host."""
    host = await _any_host(stage)
    daemon = stage.machines.hosts[host]
    async with _fault(stage, f"leave {host}"):
        os.kill(daemon.pid, signal.SIGTERM)
        await stage.wait(lambda: not daemon.running, stage.random.choice((0.1, 1.0, 15.0)))
        await asyncio.to_thread(daemon.kill)
        await stage.let_it_run(0.0, stage.random.choice((0.2, 5.0)))
        await _start(stage, host)


async def move(stage: ClusterStage) -> None:
    """Agents go to other hosts, with their tokens and with what they have not acknowledged."""
    async with _fault(stage, "move"):
        for _ in range(3):
            _move(stage, stage.random.sample([agent.name for agent in stage.agents], 3))
            await stage.let_it_run(0.1, 0.6)


def _move(stage: ClusterStage, names: list[str]) -> None:
    for agent in stage.agents:
        if agent.name in names:
            agent.socket = stage.random.choice([socket for socket in agent.homes if socket != agent.socket])
            agent.drop_connection()


# --- the network ------------------------------------------------------------------------------------------------------------


async def cut_host(stage: ClusterStage) -> None:
    """It reaches no server, for a moment or for longer than a seat is kept."""
    await _cut(stage, [await _any_host(stage)])


async def cut_seat_and_leader(stage: ClusterStage) -> None:
    """As if they were one machine."""
    await asyncio.to_thread(stage.machines.nats.wait_ready)
    await _cut(stage, [await stage.seat(), await stage.leader()])


async def cut_server(stage: ClusterStage) -> None:
    await _cut(stage, [await _any_server(stage)])


async def _cut(stage: ClusterStage, places: list[str]) -> None:
    async with _fault(stage, f"cut {' and '.join(places)}"):
        for place in places:
            await asyncio.to_thread(stage.machines.cut, place)
        try:
            await stage.let_it_run(0.3, stage.random.choice((1.0, 5.0, 8.0, 20.0)))
        finally:
            for place in places:
                await asyncio.to_thread(stage.machines.heal, place)


# --- NATS -------------------------------------------------------------------------------------------------------------------


async def kill_server(stage: ClusterStage) -> None:
    await _kill_servers(stage, [await _any_server(stage)])


async def kill_two_servers(stage: ClusterStage) -> None:
    """No majority: nobody is served, and nothing that was confirmed is lost."""
    first = await _any_server(stage)
    others = [name for name in stage.machines.servers if name != first]
    await _kill_servers(stage, [first, stage.random.choice(others)])


async def _kill_servers(stage: ClusterStage, names: list[str]) -> None:
    async with _fault(stage, f"kill {' and '.join(names)}"):
        for name in names:
            await asyncio.to_thread(stage.machines.servers[name].kill)
        await stage.let_it_run(0.2, stage.random.choice((1.0, 6.0)))
        for name in names:
            stage.machines.servers[name].start()


async def stop_server(stage: ClusterStage) -> None:
    name = await _any_server(stage)
    async with _fault(stage, f"stop {name}"):
        stage.machines.stop(name)
        try:
            await stage.let_it_run(0.5, stage.random.choice((1.0, 4.0, 9.0)))
        finally:
            stage.machines.go_on(name)


FAULTS: dict[str, tuple[int, Callable[[ClusterStage], Awaitable[None]]]] = {  # how often, and what
    "kill-host": (4, kill_host),
    "stop-host": (4, stop_host),
    "slow-host": (2, slow_host),
    "leave": (2, leave),
    "move": (3, move),
    "cut-host": (4, cut_host),
    "cut-seat-and-leader": (2, cut_seat_and_leader),
    "cut-server": (1, cut_server),
    "kill-server": (3, kill_server),
    "kill-two-servers": (1, kill_two_servers),
    "stop-server": (2, stop_server),
}
