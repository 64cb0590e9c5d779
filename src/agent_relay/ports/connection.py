"""One client, as the core sees it: something to send frames to. Bytes, buffers and sockets are the transport's."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from agent_relay.ports.callers import Caller
from agent_relay.protocol.states import CloseReason

REGISTERED_UID = -1  # whose names those are that were registered with a transport: no user of this machine has that number
NOBODY_UID = -2  # whose names those are that the owner has freed: whoever asks first gets them
FULL_BYTES = 4 * 1024 * 1024  # a connection with more than this unsent is full


class Connection(Protocol):
    @property
    def is_full(self) -> bool:
        """It wants no further deliveries until it has drained: too much is unsent, or the transport holds them back."""
        ...

    notify_drained: bool  # the core sets it: tell me once when nothing is unsent any more

    def send(self, frame: bytes) -> None:
        """Queues one whole frame, to be written with the others of this turn. Never waits, never raises."""
        ...

    def send_all(self, frames: list[bytes]) -> None:
        """The same for several."""
        ...

    def close(self, reason: CloseReason) -> None:
        """Writes what is queued, then ends the connection. The core is not told about a close it asked for."""
        ...

    def caller(self) -> Caller:
        """In whose terminal the process at the other end runs, as it is now."""
        ...

    def runs(self, agent: str, pid: int | None) -> None:
        """This connection is a wrapper's: whatever it starts is inside that agent, and so is the program with that number."""
        ...


@runtime_checkable
class LocalConnection(Protocol):
    """One whose other end is a process of this machine, and which one is known."""

    def ask_to_end(self) -> None:
        """Sends that process SIGTERM; nothing happens where it is not known, or not ours to end."""
        ...


@runtime_checkable
class StandIn(Protocol):
    """One inside the daemon that holds a person's name while nobody else does."""

    @property
    def yields(self) -> bool:
        """Whether it gives way now to whoever comes under its name and shows that they are the owner."""
        ...


@runtime_checkable
class RemoteConnection(Protocol):
    """One of a client on another host of the cluster."""

    @property
    def host(self) -> str: ...

    @property
    def owner_proof(self) -> str:
        """The SHA-256 of the token that shows the owner of that host, in hexadecimal."""
        ...
