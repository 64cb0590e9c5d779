"""One relay on several hosts, end to end: real daemons, real NATS servers, real clients."""

from __future__ import annotations

import asyncio
import errno
import itertools
import os
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.testing.daemon import DaemonProcess
from agent_relay.testing.raw_client import RawClient
from tests.cluster.hosts import STREAM, Hosts, joined, run_hosts
from tests.support.nats_servers import free_ports

PATIENCE_S = 90.0  # a seat that is lost, an election of NATS, and a busy machine


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    with run_hosts(3, servers=1) as found:
        yield found


@pytest.fixture
def safe_hosts() -> Iterator[Hosts]:
    with run_hosts(3, servers=3) as found:
        yield found


@asynccontextmanager
async def reading(client: RelayClient, got: list[str]) -> AsyncIterator[asyncio.Event]:
    """Acknowledges what comes; the event is set when `end` has come."""
    over = asyncio.Event()

    async def read() -> None:
        async for message in client.messages():
            async with message:
                got.append(message.body)
                if message.body == "end":
                    over.set()

    task = asyncio.create_task(read())
    try:
        yield over
    finally:
        task.cancel()


async def send_all(client: RelayClient, to: str, words: list[str]) -> None:
    for word in words:
        await client.send(to, word)


def test_agents_of_several_hosts_talk_as_if_they_were_on_one(hosts: Hosts) -> None:
    async def live() -> None:
        got: list[str] = []
        async with (
            asyncio.timeout(PATIENCE_S),
            hosts["a"].connect("Alice") as alice,
            hosts["b"].connect("Bob") as bob,
            hosts["c"].connect("Carol") as carol,
            reading(bob, got) as over,
        ):
            words = [f"word {number}" for number in range(50)]
            await send_all(alice, "Bob", words)
            await send_all(carol, "Bob", ["end"])
            await over.wait()
            assert got == [*words, "end"]
            names = {agent.name for agent in (await carol.agents()).agents}
            assert names >= {"Alice", "Bob", "Carol"}
            with pytest.raises(RelayError, match="connected"):
                async with hosts["c"].connect("Alice"):
                    pass  # a name is one's own on all hosts
            history = await bob.history(limit=100)
            assert len(history.messages) == 51

    asyncio.run(live())


def test_a_seat_that_is_killed_costs_a_pause_and_nothing_else(hosts: Hosts) -> None:
    async def live() -> None:
        got: list[str] = []
        async with asyncio.timeout(PATIENCE_S):
            seat = hosts.seat
            first, second = (name for name in hosts.daemons if name != seat)
            async with hosts[first].connect("Alice") as alice, hosts[second].connect("Bob") as bob, reading(bob, got) as over:
                sending = asyncio.create_task(send_all(alice, "Bob", [f"word {number}" for number in range(200)]))
                while len(got) < 40:
                    await asyncio.sleep(0.01)
                hosts[seat].kill()
                await sending
                await alice.send("Bob", "end")
                await over.wait()
            assert got == [*(f"word {number}" for number in range(200)), "end"]
            assert hosts.seat != seat
            hosts[seat].start()  # comes back as an edge, copies what it missed, and serves
            dora = hosts[seat].connect("Dora")
            await dora.connect(wait=True)
            assert len((await dora.history(limit=500)).messages) == 201
            await dora.close()

    asyncio.run(live())


def test_an_agent_that_moves_to_another_host_gets_what_it_had_not_acknowledged(hosts: Hosts) -> None:
    with RawClient(hosts["a"].socket) as alice, RawClient(hosts["b"].socket) as bob:
        alice.hello("Alice")
        bob.hello("Bob")
        for number in range(10):
            alice.send_stored("Bob", f"word {number}")
        seen = bob.deliveries(10, ack=False)
        with RawClient(hosts["c"].socket) as moved:
            moved.hello("Bob", token=bob.token)
            alice.send_stored("Bob", "word 10")
            again = moved.deliveries(11)
    assert [frame["id"] for frame in again[:10]] == [frame["id"] for frame in seen]
    assert [frame["delivery"]["seq"] for frame in again] == list(range(1, 12))


def test_a_leader_of_nats_that_is_killed_makes_senders_wait(safe_hosts: Hosts) -> None:
    async def live() -> None:
        hosts = safe_hosts
        got: list[str] = []
        async with (
            asyncio.timeout(PATIENCE_S),
            hosts["a"].connect("Alice") as alice,
            hosts["b"].connect("Bob") as bob,
            reading(bob, got) as over,
        ):
            await send_all(alice, "Bob", [f"before {number}" for number in range(20)])
            leader = await asyncio.to_thread(hosts.servers.leader_of, STREAM)
            leader.kill()
            await send_all(alice, "Bob", [f"after {number}" for number in range(20)])
            await alice.send("Bob", "end")
            await over.wait()
        assert got == [*(f"before {n}" for n in range(20)), *(f"after {n}" for n in range(20)), "end"]

    asyncio.run(live())


def test_a_host_without_its_cluster_says_why() -> None:
    (port,) = free_ports(1)
    with (
        DaemonProcess(f"--cluster=nats://127.0.0.1:{port}", "--cluster-host=a", "--cluster-project=demo") as daemon,
        RawClient(daemon.socket) as client,
    ):
        client.say("HELLO", {"agent": "Alice", "capabilities": {}})
        frame = client.expect("ERROR")
        assert frame["payload"]["code"] == "SERVICE_UNAVAILABLE"
        assert frame["payload"]["retryable"]
        assert "cannot reach its cluster" in frame["payload"]["message"]
        assert abs(frame["ts"] / 1000 - time.time()) < PATIENCE_S
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_host_listens_also_while_it_takes_the_seat(hosts: Hosts) -> None:
    """A command that comes then is told to wait, not that there is no daemon. It is held in the middle of it by a file that it
    reads there: a pipe that nobody has written to yet."""
    seat = hosts.seat
    heirs = [daemon for name, daemon in hosts.daemons.items() if name != seat]
    for heir in heirs:
        record = heir.state_dir / "project.json"
        record.unlink()
        os.mkfifo(record)
    hosts[seat].kill()
    deadline = time.monotonic() + PATIENCE_S
    pipe = -1
    for heir in itertools.cycle(heirs):
        if (pipe := open_if_read(heir.state_dir / "project.json")) >= 0:
            break
        assert time.monotonic() < deadline, "nobody takes the seat"
        time.sleep(0.001)
    with socket.socket(socket.AF_UNIX) as probe:
        refusal = probe.connect_ex(heir.socket)
    os.close(pipe)
    assert refusal == 0
    with joined(heir, "Late"):
        pass


def open_if_read(pipe: Path) -> int:
    """A descriptor to write with; -1 while nobody reads."""
    try:
        return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        return -1
