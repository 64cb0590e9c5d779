"""Streams of events, as pages and programs elsewhere read them."""

from __future__ import annotations

import asyncio
import re

import pytest

from agent_relay.transports.http.sse import HEARTBEAT_S
from tests.integration.http_api.conftest import StartServer
from tests.integration.http_api.server import Server, until
from tests.integration.http_api.streams import Stream, run

ALL = "/api/v1/events/sse"
PAGE = "https://pages.example.org"


def test_a_stream_has_the_headers_for_other_pages_that_every_answer_has(start_server: StartServer) -> None:
    """A page of the list may read the streams, one that is not may not, and without a list no page may."""
    allowing, closed = start_server(f"--cors-origins={PAGE}"), start_server()

    async def play() -> None:
        stream = await Stream(allowing).open(ALL, Origin=PAGE)
        assert (stream.status, stream.headers["access-control-allow-origin"]) == (200, PAGE)
        for server, origin in ((allowing, "https://other.example.org"), (closed, PAGE)):
            refused = await Stream(server).open(ALL, Origin=origin)
            assert (refused.status, "access-control-allow-origin" in refused.headers) == (403, False)

    run(play)


def open_streams(server: Server) -> int:
    found = re.search(r"^agent_relay_sse_streams ([\d.]+)$", server.http.get("/metrics").text, re.MULTILINE)
    assert found is not None
    return int(float(found[1]))


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_reader_that_leaves_leaves_nothing_behind(start_server: StartServer, is_killed: bool) -> None:
    """Streams that were closed, and those whose reader died, are forgotten, each of them."""
    server = start_server()

    async def play() -> None:
        streams = [await Stream(server).open(ALL) for _ in range(20)]
        await asyncio.to_thread(until, lambda: open_streams(server) == len(streams), "all are open")
        for stream in streams:
            if is_killed:
                stream.kill()
            else:
                await stream.close()
        await asyncio.to_thread(until, lambda: open_streams(server) == 0, "all are forgotten")

    run(play)


def test_the_heartbeat_comes_every_thirty_seconds() -> None:
    """A silent stream says something every thirty seconds."""
    assert HEARTBEAT_S == 30
