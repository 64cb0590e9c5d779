"""A real daemon with its HTTP server, and clients of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import httpx
import pytest

from agent_relay.testing.daemon import DaemonProcess

from .server import Server

StartServer = Callable[..., Server]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One for all tests of a module: they use names of their own."""
    with DaemonProcess("--port=0") as daemon:
        found = Server(daemon)
        yield found
        found.close()


@pytest.fixture
def http(server: Server) -> httpx.Client:
    return server.http


@pytest.fixture
def start_server(start_relay_daemon: Callable[..., DaemonProcess]) -> Iterator[StartServer]:
    started: list[Server] = []

    def start(*flags: str, **environ: str) -> Server:
        started.append(Server(start_relay_daemon(*flags, "--port=0", **environ)))
        return started[-1]

    yield start
    for each in started:
        each.close()
