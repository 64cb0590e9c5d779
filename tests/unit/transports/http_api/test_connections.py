"""Who holds a place, and who makes room; and for how long one may take to ask."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from agent_relay.ports.callers import Caller
from agent_relay.transports.http.connections import Client, Connections, PatientProtocol

DEADLINE_S = 60.0


class Line:
    is_open = True

    def abort(self) -> None:
        self.is_open = False


class RemoteLine(Line):
    async def ask_caller(self) -> Caller:
        return Caller("Bob", host="b")


def open_lines(places: Connections, address: str, count: int, start: int = 1) -> list[tuple[Client, Line]]:
    found = [((address, port), Line()) for port in range(start, start + count)]
    for client, line in found:
        places.opened(client, line)
    return found


def are_open(lines: list[tuple[Client, Line]]) -> list[bool]:
    return [line.is_open for _, line in lines]


def test_the_oldest_that_is_not_known_makes_room() -> None:
    places = Connections(100, 3)
    lines = open_lines(places, "192.0.2.1", 4)
    assert are_open(lines) == [False, True, True, True]
    assert len(places) == 3


def test_whoever_has_shown_a_token_stays() -> None:
    places = Connections(100, 3)
    (owner,) = open_lines(places, "127.0.0.1", 1)
    places.know(owner[0])
    strangers = open_lines(places, "127.0.0.2", 50, 100)
    assert owner[1].is_open
    assert sum(are_open(strangers)) == 3
    (newcomer,) = open_lines(places, "127.0.0.1", 1, 900)
    assert newcomer[1].is_open  # and can show its token now


def test_in_all_it_is_whoever_has_the_most_that_makes_room() -> None:
    places = Connections(6, 5)
    many = open_lines(places, "192.0.2.1", 5)
    one = open_lines(places, "192.0.2.2", 1)
    other = open_lines(places, "192.0.2.3", 1)
    assert are_open(many) == [False, True, True, True, True]
    assert are_open(one + other) == [True, True]
    assert len(places) == 6


def test_only_connections_from_another_host_can_be_asked_who_they_are() -> None:
    places = Connections(10, 10)
    (local,) = open_lines(places, "127.0.0.1", 1)
    remote = ("b/127.0.0.1", 7)
    places.opened(remote, RemoteLine())
    assert places.ask_caller(local[0]) is None
    for _ in range(2):  # before it has shown a token, as for a route that asks for none, and after
        asked = places.ask_caller(remote)
        assert asked is not None
        assert asyncio.run(asked) == Caller("Bob", host="b")  # type: ignore[arg-type]
        places.know(remote)
    places.closed(remote)
    assert places.ask_caller(remote) is None


def test_where_everybody_has_a_token_the_next_is_refused() -> None:
    places = Connections(2, 2)
    for client, _ in open_lines(places, "192.0.2.1", 2):
        places.know(client)
    (late,) = open_lines(places, "192.0.2.1", 1, 9)
    assert not late[1].is_open
    places.closed(("192.0.2.1", 1))
    (later,) = open_lines(places, "192.0.2.1", 1, 10)
    assert later[1].is_open


def test_nothing_is_left_of_those_that_are_gone() -> None:
    places = Connections(100, 100)
    for client, _ in open_lines(places, "192.0.2.1", 10):
        places.closed(client)
        places.closed(client)
        places.know(client)  # too late
    assert len(places) == 0
    assert places._unknown == {}


# --- the time to ask ---------------------------------------------------------------------------------------------------


class Hasty(PatientProtocol):
    request_s = 0.3


async def _answer(_scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await asyncio.sleep(2 * Hasty.request_s)  # an answer may take as long as it likes
    await send({"type": "http.response.body", "body": b"ok"})


async def _ask(*pieces: bytes) -> bytes:
    """What a client that says these pieces is told until it is hung up on."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(_answer, http=Hasty, lifespan="off", log_config=None, timeout_keep_alive=1)
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=[listener])
    reader, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        return await asyncio.wait_for(reader.read(), DEADLINE_S)
    finally:
        writer.close()
        await server.shutdown(sockets=[listener])


SLOW = {
    "nothing": [],
    "half a head": [b"GET / HTTP/1.1\r\nHost: x\r\n"],
    "a body that never ends": [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n", b"123"],
}


@pytest.mark.parametrize("pieces", SLOW.values(), ids=SLOW.keys())
def test_whoever_does_not_finish_asking_is_hung_up_on(pieces: list[bytes]) -> None:
    assert asyncio.run(_ask(*pieces)) == b""


def test_who_has_asked_may_wait_and_what_follows_is_timed_again() -> None:
    whole = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n123"
    assert asyncio.run(_ask(whole, b"GET / HT")).count(b"200 OK") == 1
