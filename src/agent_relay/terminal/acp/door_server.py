"""The console's end of the door: a socket in the agent's folder, to which the wrapper comes, and the next one after it.

What happens is kept until the wrapper has dealt with it. What the agent said and read is told to every new wrapper again: both
are known by their ids, and one that died may not have done what it was told.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket as sockets
import struct
import sys
from collections import deque
from collections.abc import Callable

import msgspec
from msgspec import Struct

from agent_relay.terminal.doors.acp import wire
from agent_relay.terminal.files.private_files import make_private_folder

MAX_KEPT = 2_000  # of what happened while nobody listened; the oldest is given up first
TOLD_AGAIN = 200
_PEERCRED = struct.Struct("3i")

Handle = Callable[[wire.Order], wire.Word | None]


class _Kept(Struct, eq=False):
    number: int
    event: wire.Event
    is_seen: bool = False

    @property
    def is_told_again(self) -> bool:
        return isinstance(self.event, wire.Heard | wire.Read | wire.Rejected)


class DoorServer:
    """`handle` answers an order. `greet` says what is so, to a wrapper that has just come; nobody is greeted before `ready`."""

    def __init__(self, path: str, handle: Handle, greet: Callable[[], list[wire.Event]]) -> None:
        self._path = path
        self._handle = handle
        self._greet = greet
        self._kept: deque[_Kept] = deque(maxlen=MAX_KEPT)
        self._count = 0
        self._server: asyncio.Server | None = None
        self._writer: asyncio.StreamWriter | None = None  # to the wrapper that came last
        self._ready: wire.Ready | None = None
        self._is_greeted = False

    async def open(self) -> None:
        make_private_folder(os.path.dirname(self._path))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path)  # of a console that died: the agent's name is ours
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self._path, limit=wire.MAX_LINE_BYTES)
        finally:
            os.umask(before)

    async def close(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):
                await self._writer.drain()
            self._writer.close()
        if self._server is not None:
            self._server.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    # --- what is told ----------------------------------------------------------------------------------------------------

    def set_ready(self, ready: wire.Ready) -> None:
        self._ready = ready
        self._greet_wrapper()

    def tell(self, event: wire.Event) -> None:
        """A state counts only as long as it is so: it is not kept."""
        self._count += 1
        kept = _Kept(self._count, event)
        if not isinstance(event, wire.State | wire.Asked):
            self._kept.append(kept)
        if self._is_greeted:
            self._send(wire.Happened(kept.number, event))

    def _greet_wrapper(self) -> None:
        if self._writer is None or self._ready is None or self._is_greeted:
            return
        self._is_greeted = True
        self._send(self._ready)
        again = {each.number for each in [each for each in self._kept if each.is_told_again][-TOLD_AGAIN:]}
        for kept in self._kept:
            if not kept.is_seen or kept.number in again:
                self._send(wire.Happened(kept.number, kept.event))
        for event in self._greet():
            self.tell(event)

    def _send(self, word: wire.Word) -> None:
        if self._writer is not None:
            self._writer.write(wire.encode(word))

    # --- what is asked ---------------------------------------------------------------------------------------------------

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not _is_allowed(writer):
            writer.close()
            return
        if self._writer is not None:
            self._writer.close()
        self._writer, self._is_greeted = writer, False
        try:
            while line := await reader.readline():
                self._take(wire.decode_order(line))
        except (OSError, ValueError, msgspec.DecodeError):
            pass  # the wrapper is gone, or was none; another one comes
        finally:
            if self._writer is writer:
                self._writer, self._is_greeted = None, False
            writer.close()

    def _take(self, order: wire.Order) -> None:
        if isinstance(order, wire.Seen):
            for kept in self._kept:
                if kept.number == order.number:
                    kept.is_seen = True
            return
        answer = self._handle(order)
        if answer is not None:
            self._send(answer)
        if isinstance(order, wire.Hello):
            self._greet_wrapper()


def _is_allowed(writer: asyncio.StreamWriter) -> bool:
    """Whoever runs below us is the agent, or was started by it: it is not to answer its own questions."""
    if not sys.platform.startswith("linux"):
        return True  # the folder is the user's alone
    connection = writer.get_extra_info("socket")
    pid, uid, _ = _PEERCRED.unpack(connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, _PEERCRED.size))
    return uid == os.getuid() and not is_below(pid, os.getpid())


def is_below(pid: int, ancestor: int) -> bool:
    """Also where that cannot be told: nobody but an agent has a reason to hide."""
    if pid <= 0:
        return True  # of a namespace that is hidden from here
    while pid > 1:
        if pid == ancestor:
            return True
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            return True
    return False
