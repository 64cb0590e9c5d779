"""The monitor's port, over real sockets: what it answers, and what nobody can make it do."""

from __future__ import annotations

import asyncio
import socket

import pytest

from agent_relay.transports.http.port import open_port
from agent_relay.transports.monitor import MonitorServer, Page

PATIENCE_S = 60.0


def pages(path: str) -> Page | None:
    return {"/metrics": Page(200, b"one 1\n", "text/plain; version=0.0.4"), "/ready": Page(503, b"no majority\n")}.get(path)


def ask(request: bytes) -> bytes:
    async def live() -> bytes:
        server = MonitorServer(open_port("127.0.0.1", 0), pages)
        await server.start()
        try:
            return await asyncio.wait_for(exchange(server.port, request), PATIENCE_S)
        finally:
            server.stop()

    return asyncio.run(live())


async def exchange(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def get(path: str, method: str = "GET") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def test_a_page_is_served_with_its_type_and_length() -> None:
    head, _, content = ask(get("/metrics")).partition(b"\r\n\r\n")
    assert head.splitlines()[0] == b"HTTP/1.1 200 OK"
    assert {b"Content-Type: text/plain; version=0.0.4", b"Content-Length: 6", b"Connection: close"} <= set(head.splitlines())
    assert content == b"one 1\n"


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (get("/metrics?name[]=one"), b"200"),
        (get("/ready"), b"503"),
        (get("/"), b"404"),
        (get("/../metrics"), b"404"),
        (get("/metrics", "POST"), b"405"),
        (b"GET /metrics\r\n\r\n", b"400"),
        (b"\xff\xfe\x00 \r\n\r\n", b"400"),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1\r\n\r\n", b"400"),
    ],
)
def test_every_request_has_its_answer(request_bytes: bytes, status: bytes) -> None:
    answer = ask(request_bytes)
    assert answer[9:12] == status or (status == b"400" and len(request_bytes) > 8_192 and not answer)


def test_head_has_no_content() -> None:
    assert ask(get("/metrics", "HEAD")).endswith(b"\r\n\r\n")


def test_those_that_ask_nothing_take_a_bounded_number_of_places() -> None:
    async def live() -> None:
        server = MonitorServer(open_port("127.0.0.1", 0), pages, patience_s=PATIENCE_S)
        await server.start()
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(40)]
        try:
            assert await asyncio.wait_for(exchange(server.port, get("/metrics")), PATIENCE_S) == b""
            for each in held:
                each.close()
            async with asyncio.timeout(PATIENCE_S):
                while not await exchange(server.port, get("/metrics")):
                    pass
        finally:
            server.stop()

    asyncio.run(live())


def test_one_that_asks_nothing_is_let_go() -> None:
    async def live() -> None:
        server = MonitorServer(open_port("127.0.0.1", 0), pages, patience_s=0.05)
        await server.start()
        try:
            assert await asyncio.wait_for(exchange(server.port, b"GET /metrics"), PATIENCE_S) == b""
        finally:
            server.stop()

    asyncio.run(live())
