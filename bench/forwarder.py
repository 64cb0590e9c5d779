"""The bare forwarder: bytes from one socket to another, unread. What a relay in this language could at best be.

`python -m bench.forwarder SOCKET` listens on a Unix socket, pairs connections as they come (the first with the
second, and so on) and writes what one side sends to the other.
"""

from __future__ import annotations

import asyncio
import sys
from typing import cast

import uvloop

READY = "ready"


class Side(asyncio.Protocol):
    waiting: Side | None = None  # the side that has no other side yet

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None
        self.early: list[bytes] = []  # what came before the other side did

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if Side.waiting is None:
            Side.waiting = self
            return
        self.other, Side.waiting = Side.waiting, None
        self.other.other = self
        self.transport.writelines(self.other.early)

    def data_received(self, data: bytes) -> None:
        if self.other is None or self.other.transport is None:
            self.early.append(data)
        else:
            self.other.transport.write(data)

    def connection_lost(self, _error: Exception | None) -> None:
        if Side.waiting is self:
            Side.waiting = None
        if self.other is not None and self.other.transport is not None:
            self.other.transport.close()


async def forward(path: str) -> None:
    server = await asyncio.get_running_loop().create_unix_server(Side, path)
    print(READY, flush=True)  # a connection made to find out would be taken for a side
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(forward(sys.argv[1]))
