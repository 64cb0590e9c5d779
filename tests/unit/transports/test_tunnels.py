"""Clients of an edge: what of their words is passed on."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

from agent_relay.ports.callers import Caller
from agent_relay.ports.cluster import LocalEnd, Opening
from agent_relay.transports.callers import Callers
from agent_relay.transports.tunnels import ForwardServer


class Passed:
    """The tunnels of an edge: what was said through them."""

    def __init__(self) -> None:
        self.said: list[bytes] = []
        self.closed = 0

    def open(self, opening: Opening, end: LocalEnd) -> Passed:
        del opening, end
        return self

    def send(self, data: bytes) -> None:
        self.said.append(data)

    def taken(self, count: int) -> None: ...

    def close(self) -> None:
        self.closed += 1


def test_the_greeting_of_a_client_that_has_hung_up_is_not_passed_on(tmp_path: Path) -> None:
    path, passed = str(tmp_path / "edge.sock"), Passed()

    def introduce(caller: Caller) -> Opening:
        return Opening("a", is_owner=True, agent=caller.agent)

    async def live() -> None:
        callers = Callers(str(tmp_path / "seats"), path)
        server = ForwardServer(path, callers, introduce, lambda: passed, lambda: "nobody")
        await server.start()
        with socket.socket(socket.AF_UNIX) as gone:  # all of it before the edge has a turn, as if it was suspended
            gone.connect(path)
            gone.sendall(b"from the past")
        with socket.socket(socket.AF_UNIX) as there:
            there.connect(path)
            there.sendall(b"hello")
            async with asyncio.timeout(120):
                while not (passed.said and passed.closed):
                    await asyncio.sleep(0.01)
        server.stop()

    asyncio.run(live())
    assert passed.said == [b"hello"]
