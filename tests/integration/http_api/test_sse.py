"""Server-sent events: where a stream begins, what is in it, and that nothing is missing or doubled at any seam."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from agent_relay.testing.daemon import DaemonProcess

from .conftest import StartServer
from .server import UNKNOWN, Server, problem, until
from .streams import Stream, run

STREAMS = 100
ALL = "/api/v1/events/sse"


def last_seq(server: Server) -> int:
    cursor = "0"
    while True:
        page = server.http.get("/api/v1/events", params={"limit": 1000, "cursor": cursor}).json()
        last = page["events"][-1]["_seq"] if page["events"] else int(cursor)
        if page["next_cursor"] is None:
            return int(last)
        cursor = page["next_cursor"]


def rss_mb(daemon: DaemonProcess) -> float:
    pages = int(Path(f"/proc/{daemon.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def test_without_a_beginning_it_is_live_only(server: Server) -> None:
    alice, bob = server.join(), server.join()
    alice.send(bob.name, "before")

    async def play() -> None:
        stream = await Stream(server).open(f"{ALL}?types=message.exchanged")
        head = stream.status, stream.headers["content-type"], stream.headers["cache-control"]
        assert head == (200, "text/event-stream", "no-cache")
        await asyncio.to_thread(alice.send, bob.name, "after")
        (event,) = await stream.take(1)
        assert (event.type, event.data["body"]) == ("message.exchanged", "after")

    until(lambda: "before" in server.http.get("/api/v1/events", params={"agent": bob.name}).text, "it is recorded")
    run(play)


def test_offset_last_event_id_and_since(server: Server) -> None:
    alice, bob = server.join(), server.join()
    for number in range(6):
        alice.send(bob.name, f"{number}")
    agent = f"/api/v1/agents/{bob.name}/events/sse?types=message.exchanged"

    async def play() -> None:
        everything = await Stream(server).open(f"{agent}&offset=0")
        found = await everything.take(6)
        assert [event.data["body"] for event in found] == list("012345")
        later = await Stream(server).open(f"{agent}&offset={found[2].id}")
        assert [event.id for event in await later.take(3)] == [event.id for event in found[3:]]
        again = await Stream(server).open(f"{agent}&offset=0", **{"Last-Event-ID": str(found[4].id)})
        assert [event.id for event in await again.take(1)] == [found[5].id]
        moment = found[1].data["_ts"]
        wanted = [event.id for event in found if event.data["_ts"] >= moment]  # the one before it may be of the same millisecond
        since = await Stream(server).open(f"{agent}&since={moment}")
        assert [event.id for event in await since.take(len(wanted))] == wanted

    run(play)


def test_an_agents_stream_holds_what_it_is_in(server: Server) -> None:
    alice, bob, carol = server.join(), server.join(), server.join()
    alice.send(carol.name, "not for bob")
    alice.send(bob.name, "to bob")
    bob.send(carol.name, "from bob")

    async def play() -> None:
        path = f"/api/v1/agents/{bob.name.lower()}/events/sse?offset=0"
        stream = await Stream(server).open(f"{path}&types=message.exchanged,agent.state")
        found = await stream.take(3)
        assert [event.data.get("body", event.data["_agentName"]) for event in found] == [bob.name, "to bob", "from bob"]
        session = server.agent(bob.name)["sessionId"]
        mine = await Stream(server).open(f"/api/v1/sessions/{session}/events/sse?offset=0&types=message.exchanged")
        assert [event.data["body"] for event in await mine.take(1)] == ["from bob"]

    run(play)


def test_what_is_not_kept_is_said_to_be_missing(server: Server) -> None:
    """Here: a number of another store, that this one has never given out."""

    async def play() -> None:
        stream = await Stream(server).open(f"{ALL}?offset=99999999&types=message.exchanged")
        (gap,) = await stream.take(1)
        assert (gap.type, gap.data["oldest"]) == ("stream.gap", gap.id + 1)
        alice = await asyncio.to_thread(server.join)
        await asyncio.to_thread(alice.send, alice.name, "goes on")
        assert (await stream.take(1))[0].data["body"] == "goes on"

    run(play)


def test_what_cannot_be_followed(http: httpx.Client) -> None:
    assert problem(http.get(f"/api/v1/agents/{UNKNOWN}/events/sse")) == (404, "AGENT_NOT_FOUND")
    assert problem(http.get("/api/v1/sessions/ses_x/events/sse")) == (404, "ROUTE_NOT_FOUND")
    for query in ("types=nothing", "types=", "offset=-1", "offset=x", "since=1.5", "offset=99999999999999999999"):
        assert problem(http.get(f"{ALL}?{query}")) == (422, "INVALID_FORMAT"), query
    for last in ("x", "-1", "1.0", "9" * 17):
        assert problem(http.get(ALL, headers={"Last-Event-ID": last})) == (422, "INVALID_FORMAT"), last


@contextmanager
def chatter(server: Server, agents: int) -> Iterator[threading.Event]:
    """That many agents, each writing to the next without pause, until the end."""
    clients = [server.join(f"Talker{number}") for number in range(agents)]
    over = threading.Event()

    def talk(index: int) -> None:
        number = 0
        while not over.is_set():
            number += 1
            clients[index].send(clients[(index + 1) % agents].name, f"{index} says {number}", ttl_ms=3_600_000)
            time.sleep(0.02)

    def listen(index: int) -> None:
        for message in clients[index].messages():
            message.ack()
            if over.is_set():
                return

    threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(agents) for work in (talk, listen)]
    for thread in threads:
        thread.start()
    try:
        yield over
    finally:
        over.set()
        for thread in threads[::2]:
            thread.join(30)


def test_replay_goes_over_into_live_without_gap_or_repeat_under_load(start_server: StartServer) -> None:
    """Streams that begin in the middle of a flood, from the very beginning and from numbers on the way."""
    server = start_server()

    async def follow(offset: int, count: int) -> None:
        stream = await Stream(server).open(f"{ALL}?offset={offset}")
        ids = [event.id for event in await stream.take(count, 60)]
        assert ids == list(range(offset + 1, offset + 1 + count))

    async def play() -> None:
        for _ in range(4):
            now = await asyncio.to_thread(last_seq, server)
            offsets = (0, now // 3, now // 2, max(0, now - 1), now)
            await asyncio.gather(*(follow(offset, now - offset + 100) for offset in offsets))

    with chatter(server, 4):
        until(lambda: last_seq(server) > 300, "there is something to replay")
        run(play)


@pytest.mark.slow
def test_a_hundred_streams_beside_ten_agents(start_server: StartServer) -> None:
    """No gap, no repeat; the next one is refused; a killed reader makes room; memory stays where it is."""
    server = start_server()

    async def read(stream: Stream, ids: list[int], enough: asyncio.Event) -> None:
        async for event in stream.events():
            ids.append(event.id)
            if enough.is_set():
                return

    async def play() -> None:
        streams = [await Stream(server).open(f"{ALL}?offset=0") for _ in range(STREAMS)]
        assert {stream.status for stream in streams} == {200}
        refused = await Stream(server).open(ALL)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        enough = asyncio.Event()
        seen: list[list[int]] = [[] for _ in streams]
        reading = [asyncio.create_task(read(stream, ids, enough)) for stream, ids in zip(streams, seen, strict=True)]

        async def until_all_have(count: int) -> None:
            async with asyncio.timeout(90):
                while min(map(len, seen)) < count:
                    await asyncio.sleep(0.05)

        await until_all_have(500)
        before = rss_mb(server.daemon)
        await until_all_have(2_000)
        assert rss_mb(server.daemon) - before < 25, "memory grows with the events"
        enough.set()
        await asyncio.gather(*reading)
        for ids in seen:
            assert ids == list(range(1, len(ids) + 1))
        streams[0].kill()
        async with asyncio.timeout(120):
            while (await Stream(server).open(ALL)).status != 200:
                await asyncio.sleep(0.02)
        assert (await Stream(server).open(ALL)).status == 503

    with chatter(server, 10):
        run(play)
    until(lambda: "agent_relay_sse_streams 0.0" in server.http.get("/metrics").text, "every place is free again")


def test_a_reader_that_does_not_read_is_let_go_and_resumes(start_server: StartServer) -> None:
    server = start_server()
    alice, bob = server.join(), server.join()
    body = "x" * 20_000

    async def play() -> None:
        stream = await Stream(server).open(f"{ALL}?offset=0")
        for _ in range(30):
            for _ in range(100):  # far more than what fits between us, and 1,000 events more
                await asyncio.to_thread(alice.publish, "nobody.listens", body)
            if "agent_relay_sse_streams 0.0" in await asyncio.to_thread(lambda: server.http.get("/metrics").text):
                break
        else:
            raise AssertionError("it was not let go")
        ids = [event.id async for event in stream.events()]
        assert ids == list(range(1, len(ids) + 1))
        more = await Stream(server).open(ALL, **{"Last-Event-ID": str(ids[-1])})
        assert [event.id for event in await more.take(3)] == [ids[-1] + 1, ids[-1] + 2, ids[-1] + 3]

    run(play)
    assert bob.name


def test_max_sse_is_a_setting(start_server: StartServer) -> None:
    server = start_server("--max-sse=1")

    async def play() -> None:
        one = await Stream(server).open(ALL)
        two = await Stream(server).open(ALL)
        assert (one.status, two.status) == (200, 503)

    run(play)
    until(lambda: "agent_relay_sse_streams 0.0" in server.http.get("/metrics").text, "its place is free again")
