"""`ArcClient` against the real daemon, which is killed where that is the question."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agent_relay.arc import (
    ArcClient,
    ArcClosed,
    ArcMessage,
    ArcRejected,
    ArcTimeout,
    refresh_token,
    register,
    unregister,
)
from agent_relay.testing.daemon import DaemonProcess
from tests.arc.running import QUICK, run, until


@pytest.fixture(scope="module")
def shared() -> Iterator[DaemonProcess]:
    with DaemonProcess("--port=0", "--arc-registrations-per-hour=0") as process:
        yield process


async def join(daemon: DaemonProcess, name: str, **options: Any) -> ArcClient:
    url = daemon.wait_for_url()
    token = (await register(url, name, api_token=daemon.api_token)).token
    client = ArcClient(url, token, patience=QUICK, **options)
    await client.connect()
    return client


def test_everything_a_client_can_ask_for(shared: DaemonProcess) -> None:
    async def main() -> None:
        alice, bob = await join(shared, "all-alice"), await join(shared, "all-bob")
        notices: list[ArcMessage] = []
        await alice.watch_presence(notices.append)
        assert await alice.subscribe("all-bob") == ["all-bob"]
        assert await alice.subscriptions() == ["all-bob"]
        first = await bob.send("all-alice", {"n": 1}, confirm=True, colour="blue")
        assert first is not None
        got = await alice.receive(20)
        assert (got.id, got.payload, got.fields["colour"]) == (first, {"n": 1}, "blue")
        await bob.broadcast("a needle in the hay")
        assert (await alice.receive(20)).payload == "a needle in the hay"
        assert [message.payload for message in await alice.history(limit=2)] == [{"n": 1}, "a needle in the hay"]
        assert [message.payload for message in await alice.search("needle")] == ["a needle in the hay"]
        assert [message.payload for message in await alice.replay(first)] == ["a needle in the hay"]
        assert {"all-alice", "all-bob"} <= {agent["agent"] for agent in await alice.presence() if agent["connected"]}
        await bob.close()
        await until(lambda: any(notice.payload == {"event": "leave", "agent": "all-bob"} for notice in notices))
        with pytest.raises(ArcRejected):
            await alice.command("dance")
        assert await alice.unsubscribe("all-bob") == []
        await alice.close()

    run(main)


def test_a_replay_of_many_pages_is_whole(shared: DaemonProcess) -> None:
    async def main() -> None:
        alice = await join(shared, "pages-alice")
        async with shared.connect("pages-local") as local:  # who knows no limit of messages a minute
            receipts = [await local.submit("pages-alice", str(number)) for number in range(1_200)]
            for receipt in receipts:
                await receipt.stored()
        got = [await alice.receive(20) for _ in range(1_200)]
        assert [message.payload for message in got] == [str(number) for number in range(1_200)]
        again = await alice.replay(got[0].id)
        assert [message.id for message in again] == [message.id for message in got[1:]]
        await alice.close()

    run(main)


def test_a_token_can_be_renewed_and_given_up(shared: DaemonProcess) -> None:
    async def main() -> None:
        url = shared.wait_for_url()
        ours = await register(url, "renewer", api_token=shared.api_token)
        newer = await refresh_token(url, ours.token)
        alice = ArcClient(url, newer.token, patience=QUICK)
        await alice.connect()
        await unregister(url, newer.token)
        with pytest.raises(ArcClosed) as caught:
            await alice.receive(20)
        assert (caught.value.close_code, caught.value.final) == (4001, True)
        await alice.close()

    run(main)


def test_the_second_connection_takes_over_and_the_first_stays_away(shared: DaemonProcess) -> None:
    async def main() -> None:
        url = shared.wait_for_url()
        ours = await register(url, "twice", api_token=shared.api_token)
        first = ArcClient(url, ours.token, patience=QUICK)
        await first.connect()
        async with ArcClient(url, ours.token) as second:
            with pytest.raises(ArcClosed) as caught:
                await first.receive(20)
            assert caught.value.close_code == 4000
            await second.ping()
        await first.close()

    run(main)


def test_over_kill_9_of_the_daemon_nothing_is_lost_or_doubled() -> None:
    """The port must be the same after the restart: a client knows one address."""

    async def main() -> None:
        url = daemon.wait_for_url()
        alice, bob = await join(daemon, "alice"), await join(daemon, "bob")
        await alice.subscribe("bob")
        sent: list[int] = []

        async def talk() -> None:
            for number in range(90):
                await bob.send("alice", number, confirm=True)
                sent.append(number)

        talking = asyncio.create_task(talk())
        for lives, at in enumerate((20, 50), start=1):  # alice has come back, too, before the next one is killed
            await until(lambda at=at, n=lives: (len(sent) >= at or talking.done()) and alice.connections >= n)  # type: ignore[misc]
            daemon.restart(*[f"--port={url.rpartition(':')[2]}", "--arc-rate-limit=0", "--arc-hourly-limit=0"])
            daemon.wait_for_url()
        await talking
        got = [(await alice.receive(30)).payload for _ in range(90)]
        assert got == list(range(90))
        with pytest.raises(ArcTimeout):
            await alice.receive(0.2)
        assert await alice.subscriptions() == ["bob"]
        assert alice.connections >= 3
        await alice.close()
        await bob.close()

    with DaemonProcess("--port=0", "--arc-rate-limit=0", "--arc-hourly-limit=0") as daemon:
        run(main)
