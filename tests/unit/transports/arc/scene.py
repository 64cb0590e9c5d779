"""A core, ARC before it, and transports whose every step is seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, cast

from agent_relay.ports.arc import ArcRow
from agent_relay.storage.arc_memory import MemoryArc
from agent_relay.transports.arc.connection import ArcConnection
from agent_relay.transports.arc.desk import Desk
from agent_relay.transports.arc.hub import Hub
from agent_relay.transports.arc.invitations import Invitations
from agent_relay.transports.arc.records import Records
from agent_relay.transports.arc.registrar import Registrar
from agent_relay.transports.arc.settings import ArcSettings
from agent_relay.transports.pump import Pump
from tests.support.harness import RelayHarness

MASK = b"\0\0\0\0"


class Wire:
    """A transport that takes everything, or, while stalled, nothing."""

    def __init__(self) -> None:
        self.written = b""
        self.steps: list[str] = []
        self.held = 0
        self.is_stalled = False

    def get_extra_info(self, _name: str) -> None:
        """It is a plain socket."""

    def set_write_buffer_limits(self, high: int, low: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return self.held

    def write(self, data: bytes) -> None:
        if self.is_closing():
            return
        self.written += data
        self.held += len(data) if self.is_stalled else 0

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.steps.append("eof")

    def close(self) -> None:
        self.steps.append("close")

    def abort(self) -> None:
        self.steps.append("abort")

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def is_closing(self) -> bool:
        return "close" in self.steps or "abort" in self.steps


class Moments:
    """`ports.Clock` by the harness's time."""

    def __init__(self, harness: RelayHarness) -> None:
        self.steady_ms = lambda: harness.steady_ms
        self.wall_ms = lambda: harness.wall_ms


class Scene:
    def __init__(self) -> None:
        self.harness = harness = RelayHarness()
        clock, names = Moments(harness), harness.relay.names
        pump = Pump(asyncio.get_running_loop(), harness.relay, clock)  # type: ignore[arg-type]
        settings = ArcSettings(open=True, rate_limit=0, hourly_limit=0, registrations_per_hour=5)
        self.saved = Records(MemoryArc(lambda call: call()))
        self.registrar = Registrar(self.saved, names, settings, clock, harness.entropy, pump.run)  # type: ignore[arg-type]
        self.registrar.start([ArcRow("ann-1", "h", 0), ArcRow("bob-1", "i", 0)])
        self.hub: Hub = Hub(pump, self.registrar, names, cast("Any", None), settings, clock, harness.entropy, [])  # type: ignore[arg-type]
        self.invitations = Invitations(self.saved, clock, harness.entropy, [])  # type: ignore[arg-type]
        self.desk = Desk(self.registrar, self.invitations, self.hub, names, settings, clock)  # type: ignore[arg-type]

    def close_desk(self) -> None:
        """Nobody may register without being let in."""
        self.desk.settings = replace(self.desk.settings, open=False)

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)
            self.harness.settle()

    async def connect(self, agent_id: str = "ann-1", *, keep: bool = False) -> tuple[ArcConnection, Wire]:
        """`keep`: also what it is told at first, the welcome and what had waited."""
        wire = Wire()
        connection = self.hub.attach(self.registrar.records[agent_id], cast("Any", wire), "127.0.0.1")
        connection.begin()
        await self.settle()
        assert connection.is_open
        if not keep:
            wire.written = b""
        return connection, wire


def play(act: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        scene = Scene()
        try:
            await act(scene)
        finally:
            for connection in list(scene.hub.connections.values()):
                connection.connection_lost(None)

    asyncio.run(main())


# --- frames ------------------------------------------------------------------------------------------------------------------


def text(message: Any) -> bytes:
    """What a client says."""
    content = json.dumps(message).encode()
    return b"\x81\xfe" + len(content).to_bytes(2) + MASK + content


def frames(written: bytes) -> list[tuple[int, bytes]]:
    """Kind and content of frames, which are all short."""
    found, at = [], 0
    while at < len(written):
        size, start = written[at + 1], at + 2
        if size == 126:
            size, start = int.from_bytes(written[at + 2 : at + 4]), at + 4
        found.append((written[at] & 0x0F, written[start : start + size]))
        at = start + size
    return found


def pong(content: bytes) -> bytes:
    return bytes([0x8A, 0x80 | len(content)]) + MASK + content


def payloads(written: bytes) -> list[Any]:
    """Of frames, in order; a close is its code. Pings are passed over."""
    read = {1: lambda content: json.loads(content)["payload"], 8: lambda content: int.from_bytes(content[:2])}
    return [read[kind](content) for kind, content in frames(written) if kind != 9]
