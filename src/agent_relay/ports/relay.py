"""What a transport tells the relay. `P` is the relay's own record of a connection; to a transport it is a thing to hand back."""

from __future__ import annotations

from typing import Protocol, TypeVar

from agent_relay.ports.connection import Connection
from agent_relay.protocol.states import CloseReason

P = TypeVar("P")


class RelayCore(Protocol[P]):
    def clock_says(self, steady_ms: int, wall_ms: int) -> None: ...

    def accepted(self, connection: Connection, uid: int) -> P: ...

    def received(self, peer: P, frames: list[bytes]) -> None: ...

    def oversized(self, peer: P, size_bytes: int) -> None: ...

    def drained(self, peer: P) -> None: ...

    def crashed(self, peer: P) -> None: ...

    def disconnected(self, peer: P, reason: CloseReason) -> None: ...

    def turn_ended(self) -> None: ...
