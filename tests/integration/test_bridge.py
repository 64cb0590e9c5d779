"""The bridge between a real daemon and a relay elsewhere: both ways, once each, over restarts of everybody."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.arc import ArcClient, ArcClosed, ArcTimeout, register
from agent_relay.arc.token_file import TokenFile
from agent_relay.bridge.bridge import Bridge
from agent_relay.bridge.notices import Notice
from agent_relay.bridge.plan import Plan
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.testing.daemon import DaemonProcess
from tests.arc.running import QUICK, run, until
from tests.arc.small_relay import SmallRelay


@pytest.fixture
def relay() -> Iterator[SmallRelay]:
    with SmallRelay() as running:
        yield running


class Running:
    """A bridge in this process, for `async with`."""

    def __init__(self, daemon: DaemonProcess, plan: Plan, tokens: dict[str, str]) -> None:
        self.notices: list[Notice] = []
        self._bridge = Bridge(
            plan, tokens, socket=daemon.socket, state_dir=str(daemon.state_dir), listener=self._hear, patience=QUICK,
            sleep=self._nap,
        )  # fmt: skip
        self.on_sent: Callable[[], None] | None = None
        self._peers = len(plan.peers)
        self._stop = asyncio.Event()
        self.task: asyncio.Task[None]

    def _hear(self, notice: Notice) -> None:
        self.notices.append(notice)
        if notice.what == "sent" and self.on_sent is not None:
            self.on_sent()

    async def _nap(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.05))

    async def __aenter__(self) -> Running:
        self.task = asyncio.create_task(self._bridge.run(self._stop))
        await until(lambda: self.task.done() or (self.said("joined") == 1 and self.said("peer") >= self._peers))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._stop.set()
        with contextlib.suppress(ArcClosed):
            await self.task

    def said(self, what: str) -> int:
        return sum(notice.what == what for notice in self.notices)

    @property
    def counts(self) -> tuple[int, int, int]:
        counts = self._bridge.counts
        return counts.sent, counts.received, counts.refused


@contextlib.asynccontextmanager
async def both_ends(
    relay: SmallRelay, daemon: DaemonProcess
) -> AsyncIterator[tuple[RelayClient, ArcClient, Plan, dict[str, str]]]:
    """Alice, to be joined as alice-acme; bob-7 over there, called Bob here; how they are joined, and the token for it."""
    ours, theirs = await register(relay.url, "alice-acme"), await register(relay.url, "bob-7")
    plan = Plan(relay.url, {"Alice": "alice-acme"}, {"bob-7": "Bob"})
    async with daemon.connect("Alice") as alice, ArcClient(relay.url, theirs.token, patience=QUICK) as bob:
        yield alice, bob, plan, {"alice-acme": ours.token}


@contextlib.asynccontextmanager
async def joined(
    relay: SmallRelay, daemon: DaemonProcess, *, broadcasts: bool = False
) -> AsyncIterator[tuple[Running, ArcClient, RelayClient]]:
    """Alice is joined as alice-acme; bob-7 is over there, and has no name here."""
    async with both_ends(relay, daemon) as (alice, bob, _, tokens):
        plan = Plan(relay.url, {"Alice": "alice-acme"}, broadcasts=broadcasts)
        async with Running(daemon, plan, tokens) as bridge:
            yield bridge, bob, alice


def test_a_conversation(relay: SmallRelay, daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with joined(relay, daemon) as (bridge, bob, alice):
            await bob.send("alice-acme", "hello")
            got = await alice.receive(20)
            assert (got.from_, got.body) == ("bob-7", "hello")
            await got.reply("hello yourself", data={"n": 1})
            answer = await bob.receive(20)
            assert (answer.from_, answer.payload) == ("alice-acme", {"body": "hello yourself", "data": {"n": 1}})
            receipt = await alice.send("bob-7", "plain")
            await receipt.delivered(20)  # which means that the relay over there has it
            assert (await bob.receive(20)).payload == "plain"
            await until(lambda: bridge.counts == (2, 1, 0))

    run(main)


def test_only_who_is_joined_can_write_over_there(relay: SmallRelay, daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with joined(relay, daemon) as (bridge, bob, alice), daemon.connect("Carol") as carol:
            await bob.send("alice-acme", "hello")
            await (await alice.receive(20)).ack()
            receipt = await carol.send("bob-7", "me too")
            with pytest.raises(RelayError, match="not bridged") as caught:
                await receipt.delivered(20)
            assert caught.value.code is ErrorCode.REJECTED
            with pytest.raises(ArcTimeout):
                await bob.receive(0.1)
            assert bridge.counts == (0, 1, 1)

    run(main)


def test_nothing_goes_in_circles(relay: SmallRelay, daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with joined(relay, daemon, broadcasts=True) as (bridge, bob, alice), daemon.connect("Carol") as carol:
            await bob.broadcast("to all")
            assert (await alice.receive(20)).body == "to all"
            await alice.send("*", "here")  # reaches Carol, and bob-7, who stands here as an agent
            assert (await carol.receive(20)).body == "here"
            assert (await bob.receive(20)).payload == "here"
            await bob.send("alice-acme", "mine", via=["somebody-else"])
            assert (await alice.receive(20)).body == "mine"
            sent = next(frame for frame in relay.log if frame["payload"] == "here")
            await bob.send("alice-acme", "round", via=sent["via"])
            await bob.send("alice-acme", "last")
            assert (await alice.receive(20)).body == "last"  # what had passed the bridge before did not come back
            assert bridge.counts == (1, 3, 0)

    run(main)


def test_broadcasts_are_handed_on_only_where_asked_for(relay: SmallRelay, daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with joined(relay, daemon) as (_, bob, alice):
            await bob.broadcast("to all")
            await bob.send("alice-acme", "to you")
            assert (await alice.receive(20)).body == "to you"

    run(main)


def test_a_name_of_the_project_is_never_taken(relay: SmallRelay, daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with daemon.connect("bob-7"):
            pass  # he is away now, and messages may wait for him
        async with joined(relay, daemon) as (_, bob, alice):
            await bob.send("alice-acme", "hello")
            got = await alice.receive(20)
            assert got.from_ == "bob-7.remote"
            await got.reply("hi")
            assert (await bob.receive(20)).payload == "hi"

    run(main)


def test_whoever_was_away_gets_everything_in_order_and_once(relay: SmallRelay, daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with both_ends(relay, daemon) as (alice, bob, plan, tokens):
            async with Running(daemon, plan, tokens) as bridge:
                await bob.send("alice-acme", 0)
                assert (await alice.receive(20)).body == "0"
                await until(lambda: bridge.counts[1] == 1)
            for number in range(1, 4):  # the bridge is down
                await bob.send("alice-acme", number, confirm=True)
                await alice.send("Bob", str(number))
            async with Running(daemon, plan, tokens) as bridge:
                assert [(await alice.receive(20)).body for _ in range(3)] == ["1", "2", "3"]
                assert [(await bob.receive(20)).payload for _ in range(3)] == ["1", "2", "3"]
                relay.close_peer("alice-acme", 1011)  # the connection over there breaks
                await alice.send("Bob", "4")
                assert (await bob.receive(20)).payload == "4"
                await bob.send("alice-acme", 4)
                assert (await alice.receive(20)).body == "4"
                daemon.restart()  # the daemon is killed here
                await alice.send("Bob", "5")
                assert (await bob.receive(20)).payload == "5"
                await until(lambda: bridge.counts[0] == 5)
                with pytest.raises(ArcTimeout):
                    await bob.receive(0.2)

    run(main)


def test_a_message_that_was_taken_is_not_sent_again_after_a_crash(relay: SmallRelay, daemon: DaemonProcess) -> None:
    """The relay has it, and the bridge ends before it has heard so."""

    async def main() -> None:
        async with both_ends(relay, daemon) as (alice, bob, plan, tokens):
            async with Running(daemon, plan, tokens) as bridge:
                relay.forget_next = 1
                relay.refuse_next = [503] * 10_000
                await alice.send("Bob", "once")
                assert (await bob.receive(20)).payload == "once"
                await until(lambda: bridge.said("lost") > 0)
                assert bridge.counts[0] == 0
            relay.refuse_next = []
            async with Running(daemon, plan, tokens) as bridge:
                await alice.send("Bob", "next")
                assert (await bob.receive(20)).payload == "next"
                await until(lambda: bridge.counts[0] == 2)
        assert [message["payload"] for message in relay.log] == ["once", "next"]

    run(main)


def test_what_went_over_is_remembered_where_nobody_else_knows(relay: SmallRelay, daemon: DaemonProcess) -> None:
    """The daemon is killed before it hears the acknowledgement, and the relay has forgotten the message."""

    async def main() -> None:
        async with both_ends(relay, daemon) as (alice, bob, plan, tokens):
            async with Running(daemon, plan, tokens) as bridge:
                bridge.on_sent = daemon.kill
                await alice.send("Bob", "once")
                assert (await bob.receive(20)).payload == "once"
                await until(lambda: not daemon.running)
            relay.log.clear()
            daemon.start()
            async with Running(daemon, plan, tokens):
                await alice.send("Bob", "next")
                assert (await bob.receive(20)).payload == "next"

    run(main)


def test_what_the_relay_will_never_take_is_told_to_its_sender(relay: SmallRelay, daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with joined(relay, daemon) as (bridge, bob, alice):
            await bob.send("alice-acme", "hello")
            await (await alice.receive(20)).ack()
            receipt = await alice.send("bob-7", "x" * 70_000)
            with pytest.raises(RelayError, match="bytes"):
                await receipt.delivered(20)
            await alice.send("bob-7", "small")
            assert (await bob.receive(20)).payload == "small"
            assert bridge.said("refused") == 1

    run(main)


def test_a_token_that_ends_ends_the_bridge_and_says_why(relay: SmallRelay, daemon: DaemonProcess) -> None:
    async def main() -> None:
        async with joined(relay, daemon) as (bridge, _, _):
            relay.close_peer("alice-acme", 4001)
            with pytest.raises(ArcClosed, match="token"):
                await bridge.task

    run(main)


def test_two_projects_meet_at_a_relay(relay: SmallRelay, daemon: DaemonProcess) -> None:
    """A bridge on either side: what Alice says to Bob is a message with everything in it, and the answer too."""

    async def main(other: DaemonProcess) -> None:
        tokens = {name: (await register(relay.url, name)).token for name in ("alice-one", "bob-two")}
        async with (
            daemon.connect("Alice") as alice,
            other.connect("Bob") as bob,
            Running(daemon, Plan(relay.url, {"Alice": "alice-one"}, {"bob-two": "Bob"}), tokens),
            Running(other, Plan(relay.url, {"Bob": "bob-two"}), tokens),
        ):
            await alice.send("Bob", "a plan", data={"steps": [1, 2]}, thread="t-1", kind="action")
            got = await bob.receive(20)
            assert (got.from_, got.body, got.data, got.thread, got.kind) == (
                "alice-one", "a plan", {"steps": [1, 2]}, "t-1", "action",
            )  # fmt: skip
            await got.reply("done")
            answer = await alice.receive(20)
            assert (answer.from_, answer.body, answer.thread) == ("Bob", "done", "t-1")

    with DaemonProcess() as other:
        run(lambda: main(other))


def test_over_kill_9_of_the_relay_over_there_nothing_is_lost_or_doubled(daemon: DaemonProcess) -> None:
    """The relay over there is a daemon like ours; Zoe is an agent of its own project."""
    flags = ["--arc-rate-limit=0", "--arc-hourly-limit=0"]

    async def main() -> None:
        url = other.wait_for_url()
        ours = await register(url, "alice-acme", api_token=other.api_token)
        plan = Plan(url, {"Alice": "alice-acme"}, {"zoe": "Zoe"})
        async with (
            other.connect("zoe", reconnect_attempts=None) as zoe,
            daemon.connect("Alice") as alice,
            Running(daemon, plan, {"alice-acme": ours.token}) as bridge,
        ):
            for number in range(60):
                await alice.submit("Zoe", str(number))
                await zoe.submit("alice-acme", str(number))
                if number in {20, 40}:
                    await until(lambda: bridge.counts[0] > 0 and bridge.counts[1] > 0)
                    other.restart(f"--port={url.rpartition(':')[2]}", *flags)
            for client in (alice, zoe):
                got = []
                for _ in range(60):
                    message = await client.receive(30)
                    got.append(message.body)
                    await message.ack()
                assert got == [str(number) for number in range(60)]
            await until(lambda: bridge.counts == (60, 60, 0))

    with DaemonProcess("--port=0", *flags) as other:
        run(main)


class Command:
    """The program itself, which can be killed."""

    def __init__(self, daemon: DaemonProcess, relay: SmallRelay, folder: Path) -> None:
        self._words = [
            sys.executable, "-m", "agent_relay", "bridge", "--url", relay.url, "--map", "Alice=alice-acme", "--peer", "bob-7=Bob",
            "--json", "--socket", daemon.socket, "--state-dir", str(daemon.state_dir),
        ]  # fmt: skip
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("AGENT_RELAY_")}
        self._folder = folder
        self._output = folder / "output"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(self._words, stdout=output, stderr=output, env=self._environ, cwd=self._folder)

    def end(self, number: signal.Signals) -> int:
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(30)

    def said(self, what: str) -> int:
        return self._output.read_text().count(f'"what": "{what}"')


def test_the_command_survives_kill_9_and_ends_cleanly(relay: SmallRelay, daemon: DaemonProcess, tmp_path: Path) -> None:
    async def main() -> None:
        ours, theirs = await register(relay.url, "alice-acme"), await register(relay.url, "bob-7")
        TokenFile(str(daemon.state_dir)).keep(relay.url, "alice-acme", ours.token)
        async with daemon.connect("Alice") as alice, ArcClient(relay.url, theirs.token) as bob:
            command.start()
            await until(lambda: command.said("peer") == 1)
            numbers = iter(range(100))
            for _ in range(3):
                for number in [next(numbers) for _ in range(10)]:
                    await alice.submit("Bob", str(number))
                    await bob.send("alice-acme", str(number))
                await until(lambda: command.said("sent") + command.said("received") >= 3)
                command.end(signal.SIGKILL)
                command.start()
            assert [(await alice.receive(30)).body for _ in range(30)] == [str(number) for number in range(30)]
            assert [(await bob.receive(30)).payload for _ in range(30)] == [str(number) for number in range(30)]
            with pytest.raises(ArcTimeout):
                await bob.receive(0.2)
            assert command.end(signal.SIGTERM) == 0
            assert command.said("ended") == 1

    command = Command(daemon, relay, tmp_path)
    try:
        run(main)
    finally:
        command.end(signal.SIGKILL)
