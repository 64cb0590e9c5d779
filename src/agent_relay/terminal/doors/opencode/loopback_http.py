"""A client for HTTP servers on this machine's loopback: plain requests, and streams of events that go on for ever.

Every request has a connection of its own and a deadline, and answers have a size beyond which they are refused: the
server is a program that somebody else wrote. Nothing here follows redirects or speaks to any other host.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

HOST = "127.0.0.1"
REQUEST_S = 30.0
MAX_ANSWER_BYTES = 67_108_864
MAX_LINE_BYTES = 16_777_216  # one event may hold what a tool printed
MAX_HEADERS = 100
_EMPTY = (204, 304)  # these have no body, whatever their headers say
_LISTENING = "0A"


class HttpFailed(Exception):  # noqa: N818 - named by the condition
    """No whole answer came; the text says why."""


class HttpRefused(HttpFailed):
    """Nobody listens there: the request was not made."""


class HttpAnswer(Struct, frozen=True):
    status: int
    body: bytes = b""

    def json(self) -> object:
        """None for what is no JSON."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return None


class _Body:
    """The bytes after the headers, however the server cuts them."""

    def __init__(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> None:
        self._reader = reader
        self._is_chunked = "chunked" in headers.get("transfer-encoding", "").lower()
        self._left = _count(headers.get("content-length")) if not self._is_chunked else None

    async def read(self) -> bytes:
        """The next piece; empty at the end."""
        if self._is_chunked:
            return await self._read_chunk()
        if self._left is None:
            return await self._reader.read(65_536)
        piece = await self._reader.read(min(self._left, 65_536)) if self._left else b""
        if self._left and not piece:
            raise HttpFailed("the answer broke off")
        self._left -= len(piece)
        return piece

    async def _read_chunk(self) -> bytes:
        size = _count((await self._reader.readline()).partition(b";")[0].strip().decode("latin-1"), 16)
        if size is None or size > MAX_ANSWER_BYTES:
            raise HttpFailed("the answer has an unknown transfer encoding")
        piece = await self._reader.readexactly(size)
        await self._reader.readline()
        return piece


class LoopbackHttp:
    """One server, and what it wants to be told with every request."""

    def __init__(self, port: int, username: str = "", password: str = "") -> None:
        self.port = port
        self._authorization = ""
        if password:
            self._authorization = "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()

    async def request(self, method: str, path: str, body: object = None, timeout_s: float = REQUEST_S) -> HttpAnswer:
        """Raises HttpFailed."""
        try:
            async with asyncio.timeout(timeout_s), self._ask(method, path, body) as (status, content):
                pieces: list[bytes] = []
                size = 0
                while piece := await content.read():
                    size += len(piece)
                    if size > MAX_ANSWER_BYTES:
                        raise HttpFailed("the answer is too long")
                    pieces.append(piece)
                return HttpAnswer(status, b"".join(pieces))
        except TimeoutError:
            raise HttpFailed(f"no answer within {timeout_s:g} s") from None
        except (OSError, EOFError, ValueError) as error:
            raise HttpFailed(f"the connection broke ({type(error).__name__})") from None

    async def events(self, path: str, silence_s: float) -> AsyncGenerator[bytes, None]:
        """The data of server-sent events, until the server ends them, with HttpFailed if not properly. `silence_s`: a server
        that says nothing for so long is gone."""
        try:
            async with self._ask("GET", path, None) as (status, content):
                if status != 200:
                    raise HttpFailed(f"the events were refused (status {status})")
                lines = _Lines()
                while piece := await _within(silence_s, content):
                    for line in lines.feed(piece):
                        if line.startswith(b"data:"):
                            yield line[5:].strip()
        except TimeoutError:
            raise HttpFailed(f"nothing was heard for {silence_s:g} s") from None
        except (OSError, EOFError, ValueError) as error:
            raise HttpFailed(f"the connection broke ({type(error).__name__})") from None

    @asynccontextmanager
    async def _ask(self, method: str, path: str, body: object) -> AsyncIterator[tuple[int, _Body]]:
        try:
            async with asyncio.timeout(REQUEST_S):
                reader, writer = await asyncio.open_connection(HOST, self.port, limit=65_536)
        except OSError as error:
            raise HttpRefused(f"nothing answers at port {self.port} ({error.strerror or type(error).__name__})") from None
        try:
            content = msgspec.json.encode(body) if body is not None else b""
            lines = [f"{method} {path} HTTP/1.1", f"Host: {HOST}:{self.port}", "Connection: close", "Accept: */*"]
            if self._authorization:
                lines.append(f"Authorization: {self._authorization}")
            if body is not None:
                lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
            writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + content)
            async with asyncio.timeout(REQUEST_S):
                await writer.drain()
                head = await _read_head(reader)
            yield head
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                writer.transport.abort()


class _Lines:
    """Cuts lines out of pieces, and refuses one that has no end."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> list[bytes]:
        self._rest += piece
        if b"\n" not in piece:
            if len(self._rest) > MAX_LINE_BYTES:
                raise HttpFailed("an event is too long")
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        return lines


async def _within(seconds: float, content: _Body) -> bytes:
    async with asyncio.timeout(seconds):
        return await content.read()


async def _read_head(reader: asyncio.StreamReader) -> tuple[int, _Body]:
    status = (await reader.readline()).split(b" ")
    if len(status) < 2 or not status[0].startswith(b"HTTP/1.") or not status[1].strip().isdigit():
        raise HttpFailed("what answers there does not speak HTTP")
    headers: dict[str, str] = {}
    for _ in range(MAX_HEADERS):
        line = await reader.readline()
        if not line.strip():
            if int(status[1]) in _EMPTY:
                headers = {"content-length": "0"}
            return int(status[1]), _Body(reader, headers)
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.strip().lower()] = value.strip()
    raise HttpFailed("the answer has too many headers")


def _count(text: str | None, base: int = 10) -> int | None:
    try:
        number = int(text or "", base)
    except ValueError:
        return None
    return number if number >= 0 else None


def owner_of_port(port: int) -> int | None:
    """The user whose program listens at this port of the loopback; None where the system does not tell."""
    wanted = f":{port:04X}"
    with contextlib.suppress(OSError, ValueError):
        for row in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
            fields = row.split()
            if len(fields) > 7 and fields[1].endswith(wanted) and fields[3] == _LISTENING:
                return int(fields[7])
    return None
