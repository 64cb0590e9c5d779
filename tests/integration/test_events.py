"""Events of a real daemon: over kills and restarts, through the client and its twin, under load, with a disk in the way."""

from __future__ import annotations

import asyncio
import functools
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from agent_relay.events.types import AgentState, AnyEvent, CommandExecuted, MessageDelivered, MessageExchanged, StreamGap
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.testing.daemon import DaemonProcess

DEADLINE_S = 60.0


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run_it(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run_it


def watcher(daemon: DaemonProcess) -> RelayClient:
    return daemon.connect(observer=True, reconnect_attempts=None)


async def take(feed: AsyncIterator[AnyEvent], count: int) -> list[AnyEvent]:
    async with asyncio.timeout(DEADLINE_S):
        return [await anext(feed) for _ in range(count)]


async def wait_until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)


def stored(daemon: DaemonProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (daemon.state_dir / "events.jsonl").read_text().splitlines()]


async def exchange(alice: RelayClient, bob: RelayClient, count: int) -> None:
    """So many messages, a hundred under way at a time: more than fit into Bob's queue would be refused."""
    async with asyncio.timeout(DEADLINE_S):
        for place in range(0, count, 100):
            for number in range(place, min(place + 100, count)):
                await alice.submit("Bob", f"message {number}")
            for _ in range(place, min(place + 100, count)):
                await (await bob.receive()).ack()


@in_loop
async def test_a_message_is_followed_from_end_to_end(daemon: DaemonProcess) -> None:
    async with (
        watcher(daemon) as relay, relay.events(["message.*"], timeout=DEADLINE_S) as feed,
        daemon.connect("Alice") as alice, daemon.connect("Bob") as bob,
    ):  # fmt: skip
        receipt = await alice.send("Bob", "hello", thread="t")
        await (await bob.receive(DEADLINE_S)).ack(door="typing", evidence="composer")
        exchanged, delivered = await take(feed, 2)
    assert isinstance(exchanged, MessageExchanged)
    assert isinstance(delivered, MessageDelivered)
    assert (exchanged.message_id, exchanged.from_, exchanged.to, exchanged.body) == (receipt.message_id, "Alice", "Bob", "hello")
    assert (delivered.message_id, delivered.to, delivered.door) == (receipt.message_id, "Bob", "typing")
    assert exchanged.seq < delivered.seq


@in_loop
async def test_numbers_go_on_over_kills_and_what_was_seen_is_found_again(daemon: DaemonProcess) -> None:
    seen: dict[int, AnyEvent] = {}
    async with watcher(daemon) as relay:
        async with relay.events(after_seq=0) as feed:
            for _ in range(3):
                async with daemon.connect("Alice") as alice, daemon.connect("Bob") as bob:
                    await exchange(alice, bob, 50)
                    while sum(isinstance(event, MessageDelivered) for event in seen.values()) % 50 or not seen:
                        event = (await take(feed, 1))[0]
                        assert event.seq not in seen
                        seen[event.seq] = event
                await asyncio.to_thread(daemon.restart)
            assert list(seen) == list(range(1, len(seen) + 1))
        found: list[AnyEvent] = []
        cursor = None
        while True:
            page = await relay.past_events(limit=37, cursor=cursor)
            found += page.events
            cursor = page.next_cursor
            if cursor is None:
                break
    assert [event.seq for event in found] == list(range(1, len(found) + 1))
    assert all(found[seq - 1] == event for seq, event in seen.items())


@in_loop
async def test_a_line_torn_by_a_crash_is_mended(daemon: DaemonProcess) -> None:
    async with daemon.connect("Alice") as alice:
        await alice.send("Alice", "one")
    await wait_until(lambda: len(stored(daemon)) >= 3)
    daemon.kill()
    last = stored(daemon)[-1]["_seq"]
    with (daemon.state_dir / "events.jsonl").open("ab") as file:
        file.write(b'{"type":"message.exchanged","_seq":')
    daemon.start()
    async with daemon.connect("Bob") as bob, watcher(daemon) as relay:
        await bob.send("Bob", "two")
        async with relay.events(after_seq=last) as feed:
            gap, event = await take(feed, 2)
    assert (gap.seq, type(gap)) == (last + 1, StreamGap)
    assert (event.seq, type(event)) == (last + 2, AgentState)


@in_loop
async def test_a_feed_goes_on_where_it_was_after_the_daemon_died(daemon: DaemonProcess) -> None:
    async with watcher(daemon) as relay, relay.events(["message.exchanged"]) as feed:
        bodies: list[str] = []
        for life in range(3):
            async with daemon.connect("Alice") as alice:
                for place in range(5):
                    await alice.send("Alice", f"{life}.{place}")
            for event in await take(feed, 5):
                assert isinstance(event, MessageExchanged)
                bodies.append(event.body)
            await asyncio.to_thread(daemon.restart)
            async with daemon.connect("Alice") as alice:  # perhaps before the watcher is back
                await alice.send("Alice", f"{life}.again")
            gap, event = await take(feed, 2)
            assert (type(gap), gap.seq) == (StreamGap, event.seq - 2)  # between them: Alice is here
            assert isinstance(event, MessageExchanged)
            bodies.append(event.body)
    assert bodies == [f"{life}.{word}" for life in range(3) for word in ("0", "1", "2", "3", "4", "again")]


@in_loop
async def test_no_gap_and_no_repeat_for_many_who_join_under_load(daemon: DaemonProcess) -> None:
    """Twenty watchers begin at different numbers while 4,000 messages are exchanged; one of them reads slowly."""

    async def watch(after: int, pause_every: int) -> list[int]:
        async with watcher(daemon) as relay:
            numbers: list[int] = []
            async for event in relay.events(after_seq=after, timeout=DEADLINE_S):
                numbers.append(event.seq)
                if pause_every and len(numbers) % pause_every == 0:
                    await asyncio.sleep(0.02)
                if isinstance(event, MessageExchanged) and event.body == "the last":
                    break
            return numbers

    async with daemon.connect("Alice") as alice, daemon.connect("Bob") as bob:
        await exchange(alice, bob, 500)
        await wait_until(lambda: len(stored(daemon)) >= 1_000)
        tasks = [asyncio.create_task(watch(place * 50, 100 if place == 7 else 0)) for place in range(20)]
        await exchange(alice, bob, 4_000)
        await alice.send("Bob", "the last")
        async with asyncio.timeout(2 * DEADLINE_S):
            results = await asyncio.gather(*tasks)
    last = results[0][-1]
    assert last > 9_000
    for place, numbers in enumerate(results):
        assert numbers == list(range(place * 50 + 1, last + 1))


@in_loop
async def test_a_loop_that_reads_nothing_holds_little_and_misses_nothing(daemon: DaemonProcess) -> None:
    async with watcher(daemon) as relay, relay.events(after_seq=0) as feed:
        async with daemon.connect("Alice") as alice, daemon.connect("Bob") as bob:
            await exchange(alice, bob, 2_000)
        await wait_until(lambda: len(feed._held) >= 1_000)
        assert len(feed._held) < 2_000
        assert [event.seq for event in await take(feed, 4_000)] == list(range(1, 4_001))


@in_loop
async def test_what_an_agent_does_is_told_by_its_wrapper(daemon: DaemonProcess) -> None:
    async with watcher(daemon) as relay, relay.events(["command.executed"]) as feed, daemon.connect("Alice") as alice:
        alice.report("command.executed", command="ls", exitCode=None, duration=12)
        (event,) = await take(feed, 1)
        assert isinstance(event, CommandExecuted)
        assert (event.by_agent, event.session_id, event.command) == ("Alice", alice.session_id, "ls")


@in_loop
async def test_a_wrong_filter_is_raised(daemon: DaemonProcess) -> None:
    async with watcher(daemon) as relay:
        with pytest.raises(RelayError) as refusal:
            await anext(relay.events(["nothing"]))
        assert refusal.value.code is ErrorCode.INVALID_FORMAT


@in_loop
async def test_a_feed_ends_with_its_client_and_after_silence(daemon: DaemonProcess) -> None:
    async with watcher(daemon) as relay:
        assert [event async for event in relay.events(timeout=0.05)] == []
        feed = relay.events()
        waiting = asyncio.create_task(anext(feed, None))
        await wait_until(lambda: feed.id is not None)
    assert await waiting is None


def test_the_blocking_twin(daemon: DaemonProcess) -> None:
    with daemon.connect_sync(observer=True) as relay:
        feed = relay.events(["message.exchanged"], timeout=DEADLINE_S)
        with daemon.connect_sync("Alice") as alice:
            alice.send("Alice", "hello")
        event = next(feed)
        assert isinstance(event, MessageExchanged)
        assert event.body == "hello"
        assert feed.cursor == event.seq
        feed.close()
        assert list(feed) == []
        assert [event.seq for event in relay.past_events(["message.exchanged"]).events] == [event.seq]


@in_loop
async def test_old_events_leave_and_a_reader_is_told_so() -> None:
    with DaemonProcess("--event-retention=1s") as daemon:
        for _ in range(3):
            async with daemon.connect("Alice") as alice:
                await alice.send("Alice", "x" * 1_000)
            await asyncio.sleep(0.3)  # older than a seventh of the retention: the next event begins another file
        await wait_until(lambda: list(daemon.state_dir.glob("events-*.jsonl")))
        daemon.kill()
        await asyncio.sleep(1.0)  # the retention: it is the other process's clock that has to move on
        daemon.start()
        async with daemon.connect("Alice") as alice, watcher(daemon) as relay:
            await alice.send("Alice", "young")
            await wait_until(lambda: not (daemon.state_dir / "events-0000000000000001.jsonl").exists())
            async with relay.events(after_seq=0) as feed:
                first, second = await take(feed, 2)
    assert isinstance(first, StreamGap)
    assert first.oldest == second.seq == first.seq + 1 > 1


@in_loop
async def test_events_that_cannot_be_written_stop_nothing() -> None:
    with DaemonProcess() as daemon:
        async with daemon.connect("Alice") as alice:
            await alice.send("Alice", "before")
        await wait_until(lambda: len(stored(daemon)) >= 3)
        daemon.kill()
        path, aside = daemon.state_dir / "events.jsonl", daemon.state_dir / "aside"
        path.rename(aside)
        path.symlink_to("nowhere/at/all")
        daemon.start()
        async with daemon.connect("Alice") as alice:
            for _ in range(5):
                await alice.send("Alice", "during")
        aside.rename(path)
        await wait_until(lambda: sum(event.get("body") == "during" for event in stored(daemon)) == 5)
        assert [event["_seq"] for event in stored(daemon)] == list(range(1, len(stored(daemon)) + 1))


def test_in_memory_there_is_no_file() -> None:
    with DaemonProcess("--storage=memory") as daemon, daemon.connect_sync("Alice") as alice:
        feed = alice.events(["message.exchanged"], after_seq=0, timeout=DEADLINE_S)
        alice.send("Alice", "hello")
        assert isinstance(next(feed), MessageExchanged)
        assert not (daemon.state_dir / "events.jsonl").exists()


# --- the command ----------------------------------------------------------------------------------------------------------------


def command(daemon: DaemonProcess, *words: str) -> list[str]:
    return [sys.executable, "-m", "agent_relay", "events", "--socket", daemon.socket, *words]


def run(daemon: DaemonProcess, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(daemon, *words), capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def test_the_command_shows_what_happened(daemon: DaemonProcess) -> None:
    with daemon.connect_sync("Alice") as alice:
        alice.send("Alice", "hello \x1b[31mred")
    asyncio.run(wait_until(lambda: len(stored(daemon)) >= 3))
    shown = run(daemon).stdout
    assert "message.exchanged" in shown
    assert "Alice → Alice: hello \\x1b[31mred" in shown
    lines = run(daemon, "--json", "--since", "1").stdout.splitlines()
    assert [json.loads(line)["_seq"] for line in lines] == list(range(2, len(stored(daemon)) + 1))
    assert all({"type", "_seq", "_ts", "_sessionId", "_agentName"} <= set(json.loads(line)) for line in lines)
    assert [json.loads(line)["type"] for line in run(daemon, "--json", "--types", "message.exchanged").stdout.splitlines()] == [
        "message.exchanged"
    ]
    assert run(daemon, "--agent", "Nobody").stdout == "No events.\n"
    wrong = run(daemon, "--types", "nothing")
    assert (wrong.returncode, "nothing" in wrong.stderr) == (1, True)
    assert run(daemon, "--since", "yesterday-ish").returncode == 2


def test_the_command_follows(daemon: DaemonProcess, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with output.open("wb") as file:
        process = subprocess.Popen(command(daemon, "-f", "--json", "--since", "0"), stdout=file, stderr=subprocess.STDOUT)
    try:
        with daemon.connect_sync("Alice") as alice:
            alice.send("Alice", "hello")
        asyncio.run(wait_until(lambda: b"message.exchanged" in output.read_bytes()))
        assert [json.loads(line)["_seq"] for line in output.read_text().splitlines()][:2] == [1, 2]
    finally:
        process.terminate()
        process.wait(DEADLINE_S)
