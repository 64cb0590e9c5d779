"""What the seat keeps of other hosts' HTTP, and connections that come before there is a server."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from agent_relay.daemon.cluster.seat_http import SeatHttp, SharedPlace
from agent_relay.ports.cluster import EdgeHttp, Keys, Opening


def edge_http(keys: dict[str, int], port: int = 3889, cookie: str = "agent-relay-1") -> EdgeHttp:
    return EdgeHttp("127.0.0.1", port, "http", "hash", frozenset(), cookie, keys)


class Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.steps: list[str] = []
        self.protocol: asyncio.BaseProtocol | None = None

    def pause_reading(self) -> None:
        self.steps.append("pause")

    def resume_reading(self) -> None:
        self.steps.append("resume")

    def is_closing(self) -> bool:
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def abort(self) -> None:
        self.steps.append("abort")


class Server:
    """As `HttpServer`, as far as the seat uses it for other hosts."""

    def __init__(self) -> None:
        self.accepted: list[tuple[str, EdgeHttp, Any]] = []

    def accept(self, host: str, http: EdgeHttp, keys: Any) -> asyncio.Protocol:
        self.accepted.append((host, http, keys))
        return asyncio.Protocol()


def seat_http(monkeypatch: pytest.MonkeyPatch, server: Server | None) -> SeatHttp:
    nothing: Any = None

    class Clock:
        def steady_ms(self) -> int:
            return 0

        def wall_ms(self) -> int:
            return 0

    class Config:
        no_auth = False

    http = SeatHttp(Config(), "token", nothing, nothing, Clock(), *[nothing] * 6, SharedPlace(None))

    async def serve(_listener: socket.socket | None) -> None:
        if server is None:
            raise OSError("no server today")
        http._server = server  # type: ignore[assignment]

    monkeypatch.setattr(http, "_serve", serve)
    return http


OPENING = Opening("b", is_owner=False, kind="http")


def test_a_connection_that_comes_early_waits_for_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        server = Server()
        http = seat_http(monkeypatch, server)
        http.introduced("b", edge_http({"k": 1}), lambda _: None)
        transport = Transport()
        http.accept(OPENING).connection_made(transport)
        assert transport.steps == ["pause"]
        http.begin()
        assert http._starting is not None
        await http._starting
        assert transport.steps == ["pause", "resume"]
        assert transport.protocol is not None
        http.accept(OPENING)
        (host, said, keys), again = server.accepted
        assert (host, said.keys) == ("b", {})
        assert again[2] is keys  # one book of keys for all its connections

    asyncio.run(main())


def test_without_a_server_it_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        http = seat_http(monkeypatch, None)
        early, late = Transport(), Transport()
        http.accept(OPENING).connection_made(early)
        http.begin()
        assert http._starting is not None
        await http._starting
        http.accept(OPENING).connection_made(late)
        await asyncio.sleep(0)
        assert early.steps == late.steps == ["pause", "abort"]

    asyncio.run(main())


def test_keys_are_loaded_once_and_every_later_link_is_told_what_became_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        server = Server()
        http = seat_http(monkeypatch, server)
        told: list[Keys] = []
        http.introduced("b", edge_http({"k": 1}), told.append)
        http.begin()
        assert http._starting is not None
        await http._starting
        http.accept(OPENING)
        keys = server.accepted[0][2]
        keys.new_key()
        assert len(told[-1]) == 2
        http.introduced("b", edge_http({"k": 1}, port=4000), told.append)  # its disk was behind
        assert len(told[-1]) == 2
        http.accept(OPENING)
        assert (server.accepted[1][1].port, server.accepted[1][2]) == (4000, keys)
        keys.forget()
        http.introduced("b", edge_http({"k": 1}), told.append)
        assert told[-1] == {}  # signed out stays signed out
        http.introduced("b", edge_http({"z": 1}, cookie="agent-relay-2"), told.append)  # another state directory
        http.accept(OPENING)
        assert server.accepted[2][2] is not keys

    asyncio.run(main())


def test_a_host_that_has_not_said_how_it_serves_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        http = seat_http(monkeypatch, Server())
        http.begin()
        assert http._starting is not None
        await http._starting
        transport = Transport()
        http.accept(OPENING).connection_made(transport)
        assert transport.steps == ["abort"]

    asyncio.run(main())


def test_the_listener_outlives_whoever_served_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for _ in range(2):
            shared = SharedPlace(listener).listen()
            assert shared is not None
            assert shared.getsockname() == listener.getsockname()
            shared.close()
        with socket.create_connection(listener.getsockname(), 10):
            pass
    assert SharedPlace(None).listen() is None
