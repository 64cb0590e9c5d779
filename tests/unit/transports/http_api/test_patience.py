from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from agent_relay.transports.http.patience import PatientProtocol

DEADLINE_S = 60.0


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
