"""The caller at the other end, as the system says it: a process of the owner's, or one that runs in an agent's terminal.

What a process says about itself, in a frame or in its environment, can only speak against it.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

VIA_SOCKET, VIA_HTTP, VIA_RELAY = "cli", "http", "relay"


class Caller(Struct, frozen=True):
    agent: str | None = None  # in whose terminal it runs; None: in nobody's
    via: str = VIA_SOCKET
    is_lost: bool = False  # the process that connected has ended, so nobody can say any more
    host: str = ""  # of the cluster, where it is; "": the one that the core runs on

    @property
    def name(self) -> str | None:
        """For the record: `agent:Bob via cli`; None for the owner."""
        return None if self.agent is None else f"agent:{self.agent} via {self.via}"


OWNER = Caller()
RELAY = Caller(via=VIA_RELAY)  # nobody asked for it: a budget is spent. No transport makes one


class HttpCallers(Protocol):
    """For requests over HTTP, whose connections say nothing about processes."""

    async def find(self, client: tuple[str, int], server: tuple[str, int]) -> Caller: ...

    def check(self, caller: Caller, right: str) -> None:
        """Raises RelayError where the owner has not granted it that right."""
        ...
