"""The client for servers on the loopback: answers in every cut, and those that are none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agent_relay.terminal.doors.opencode import loopback_http
from agent_relay.terminal.doors.opencode.loopback_http import HttpAnswer, HttpFailed, HttpRefused, LoopbackHttp

Scene = Callable[[LoopbackHttp, list[bytes]], Awaitable[None]]


def serve(pieces: list[bytes], scene: Scene, *, closes: bool = True) -> None:
    """A server that says these pieces to whoever asks, and keeps what it was asked."""

    async def run() -> None:
        asked: list[bytes] = []
        open_: list[asyncio.StreamWriter] = []

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            open_.append(writer)
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.001)
            if closes:
                writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        try:
            await scene(LoopbackHttp(server.sockets[0].getsockname()[1], "ann", "secret"), asked)
        finally:
            server.close()
            for writer in open_:
                writer.close()

    asyncio.run(run())


def answered(data: bytes, *, closes: bool = True) -> HttpAnswer:
    """What is made of an answer that comes whole, and byte by byte the same."""
    found: list[HttpAnswer] = []

    async def scene(http: LoopbackHttp, _: list[bytes]) -> None:
        found.append(await http.request("GET", "/", timeout_s=10))

    serve([data], scene, closes=closes)
    serve([data[number : number + 1] for number in range(len(data))], scene, closes=closes)
    assert found[0] == found[1]
    return found[0]


def test_an_answer_of_a_known_length() -> None:
    answer = answered(b'HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{"a":1}', closes=False)
    assert (answer.status, answer.json()) == (200, {"a": 1})


def test_an_answer_in_chunks() -> None:
    data = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\n[1,\r\n2\r\n2]\r\n0\r\n\r\n"
    assert answered(data, closes=False).json() == [1, 2]


def test_an_answer_that_ends_with_the_connection() -> None:
    assert answered(b"HTTP/1.1 404 Not Found\r\n\r\nno").body == b"no"


def test_an_answer_without_content_is_not_waited_for() -> None:
    assert answered(b"HTTP/1.1 204 No Content\r\n\r\n", closes=False) == HttpAnswer(204)


def test_what_is_no_json_is_nothing() -> None:
    assert [HttpAnswer(200, body).json() for body in (b"", b"{", b"\xff", b"[" * 100_000)] == [None] * 4


@pytest.mark.parametrize(
    "data",
    [
        b"", b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 xx\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n", b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200,
        b"x" * 100_000,
    ],
)  # fmt: skip
def test_half_answers_and_other_protocols_fail(data: bytes) -> None:
    async def scene(http: LoopbackHttp, _: list[bytes]) -> None:
        with pytest.raises(HttpFailed):
            await http.request("GET", "/", timeout_s=10)

    serve([data], scene)


def test_an_answer_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_http, "MAX_ANSWER_BYTES", 10)

    async def scene(http: LoopbackHttp, _: list[bytes]) -> None:
        with pytest.raises(HttpFailed, match="too long"):
            await http.request("GET", "/")

    serve([b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 11], scene)


def test_a_server_that_says_nothing_is_not_waited_for_for_ever() -> None:
    async def scene(http: LoopbackHttp, _: list[bytes]) -> None:
        with pytest.raises(HttpFailed, match=r"within 0\.1 s"):
            await http.request("GET", "/", timeout_s=0.1)

    serve([], scene, closes=False)


def test_nobody_there_is_told_apart() -> None:
    async def run() -> None:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(HttpRefused):
            await LoopbackHttp(port).request("GET", "/")

    asyncio.run(run())


def test_a_request_has_its_body_and_its_password() -> None:
    async def scene(http: LoopbackHttp, asked: list[bytes]) -> None:
        await http.request("POST", "/a", {"b": 1})
        [head] = asked
        assert head.startswith(b"POST /a HTTP/1.1\r\n")
        assert b"\r\nAuthorization: Basic YW5uOnNlY3JldA==\r\n" in head
        assert b"\r\nContent-Length: 7\r\n" in head

    serve([b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"], scene)


def test_events_are_cut_as_lines_however_they_come() -> None:
    stream = b'event: x\ndata: {"a":1}\n\n: hello\n\ndata:{"b":2}\r\n\r\n'
    pieces = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"]
    pieces += [b"1\r\n" + stream[number : number + 1] + b"\r\n" for number in range(len(stream))]

    async def scene(http: LoopbackHttp, _: list[bytes]) -> None:
        assert [data async for data in http.events("/event", 10)] == [b'{"a":1}', b'{"b":2}']

    serve([*pieces, b"0\r\n\r\n"], scene)


def test_an_event_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback_http, "MAX_LINE_BYTES", 100)

    async def scene(http: LoopbackHttp, _: list[bytes]) -> None:
        with pytest.raises(HttpFailed, match="too long"):
            [data async for data in http.events("/event", 10)]

    serve([b"HTTP/1.1 200 OK\r\n\r\ndata: ", b"x" * 200], scene, closes=False)


def test_silence_ends_the_events() -> None:
    async def scene(http: LoopbackHttp, _: list[bytes]) -> None:
        with pytest.raises(HttpFailed, match="nothing was heard"):
            [data async for data in http.events("/event", 0.1)]

    serve([b"HTTP/1.1 200 OK\r\n\r\n"], scene, closes=False)
