"""Standard input and output as the streams of an MCP server: a message is a line.

Reading and writing have threads of their own that nobody waits for, so that the server ends at once, at Ctrl-C as well as when
the client closes its end. The package's own streams wait for a thread that reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import AsyncIterator
from queue import SimpleQueue
from typing import Any, BinaryIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from pydantic import ValidationError

MAX_LINE_BYTES = 8 * 1024 * 1024  # of one message: more than the relay takes in one
_FLUSH_S = 2.0
_NOT_READ = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is not a JSON-RPC message."}}\n'
_TOO_LONG = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"This line is longer than %d bytes."}}\n' % MAX_LINE_BYTES
)

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@contextlib.asynccontextmanager
async def open_streams() -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """While they are open, whatever else the process prints goes to standard error, and it has no other input."""
    source, sink = _claim(0, "rb"), _claim(1, "wb")
    lines: asyncio.Queue[bytes | None] = asyncio.Queue()
    written: SimpleQueue[bytes | None] = SimpleQueue()
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read_lines, args=(source, loop, lines), daemon=True).start()
    writer = threading.Thread(target=_write_lines, args=(sink, written), daemon=True)
    writer.start()
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_pass_in, lines, to_server, written)
        tasks.start_soon(_pass_out, from_server, written)
        try:
            yield incoming, outgoing
        finally:
            tasks.cancel_scope.cancel()
            for stream in (to_server, incoming, outgoing, from_server):
                stream.close()
            written.put(None)
            writer.join(_FLUSH_S)  # a client that reads nothing is not waited for longer


def _claim(number: int, mode: str) -> BinaryIO:
    """A private copy of the descriptor. In its place stands what does no harm to the protocol."""
    copy = os.dup(number)
    instead = os.open(os.devnull, os.O_RDONLY) if number == 0 else os.dup(sys.stderr.fileno())
    os.dup2(instead, number)
    os.close(instead)
    opened: Any = os.fdopen(copy, mode)
    return opened  # type: ignore[no-any-return]


def _read_lines(source: BinaryIO, loop: asyncio.AbstractEventLoop, lines: asyncio.Queue[bytes | None]) -> None:
    """None at the end. A line that is too long comes as its beginning, without its end."""
    with contextlib.suppress(RuntimeError):  # the loop is over, and so is the program
        while line := _read_line(source):
            loop.call_soon_threadsafe(lines.put_nowait, line)
        loop.call_soon_threadsafe(lines.put_nowait, None)


def _read_line(source: BinaryIO) -> bytes:
    line = source.readline(MAX_LINE_BYTES)
    part = line
    while part and not part.endswith(b"\n"):  # the rest is read past
        part = source.readline(MAX_LINE_BYTES)
    return line


def _write_lines(sink: BinaryIO, written: SimpleQueue[bytes | None]) -> None:
    with contextlib.suppress(OSError):  # the client is gone
        while (line := written.get()) is not None:
            sink.write(line)
            sink.flush()


async def _pass_in(
    lines: asyncio.Queue[bytes | None], to_server: MemoryObjectSendStream[SessionMessage | Exception],
    written: SimpleQueue[bytes | None],
) -> None:  # fmt: skip
    async with to_server:
        while (line := await lines.get()) is not None:
            if len(line) >= MAX_LINE_BYTES and not line.endswith(b"\n"):
                written.put(_TOO_LONG)
            elif line.strip():
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except (ValidationError, ValueError):
                    written.put(_NOT_READ)
                    continue
                await to_server.send(SessionMessage(message))


async def _pass_out(from_server: MemoryObjectReceiveStream[SessionMessage], written: SimpleQueue[bytes | None]) -> None:
    async with from_server:
        async for message in from_server:
            written.put(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode("utf-8", "replace") + b"\n")
