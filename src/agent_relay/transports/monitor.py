"""A port for those who watch a host: a few pages of plain text over HTTP, without a token.

Only numbers and reasons are served here, nothing that agents say or are called, so it needs no rights. It is not the HTTP API:
an edge of a cluster has its own figures, while its API is the seat's. One request per connection, bounded in size, time and
number, so that nobody who reaches the port can take more of the daemon than that.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable
from typing import NamedTuple

_HEAD_BYTES = 8 * 1024
_PATIENCE_S = 5.0
_MOST_CONNECTIONS = 32
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
PLAIN = "text/plain; charset=utf-8"


class Page(NamedTuple):
    status: int
    content: bytes
    media: str = PLAIN


class MonitorServer:
    """`pages`: what is at a path, or None. A page is made when somebody looks."""

    def __init__(self, listener: socket.socket, pages: Callable[[str], Page | None], patience_s: float = _PATIENCE_S) -> None:
        self._listener = listener
        self._pages = pages
        self._patience_s = patience_s
        self._server: asyncio.AbstractServer | None = None
        self._connections = 0

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._listener, limit=_HEAD_BYTES)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            if self._connections <= _MOST_CONNECTIONS:
                async with asyncio.timeout(self._patience_s):
                    await self._answer(reader, writer)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # whoever asked is gone, or never asked
        finally:
            self._connections -= 1
            with contextlib.suppress(OSError):
                writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            head = b""
        status, content, media = self._find(head)
        fields = (
            f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {media}\r\nContent-Length: {len(content)}\r\n"
            "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
        )
        writer.write(fields.encode() + (b"" if head.startswith(b"HEAD ") else content))
        await writer.drain()

    def _find(self, head: bytes) -> Page:
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return Page(400, b"This is not a request that can be read.\n")
        if words[0] not in {"GET", "HEAD"}:
            return Page(405, b"Only GET works here.\n")
        return self._pages(words[1].partition("?")[0]) or Page(404, b"There is nothing here.\n")
