"""The relay, as transports see it: they present their clients to it and pass on what these say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Raw, Struct

from agent_relay.ports.connection import Connection
from agent_relay.ports.store import MessageRow
from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.states import CloseReason

PeerHandle: TypeAlias = Any  # the relay's own record of a connection: a transport only hands it back

# Messages as they are many, so both are plain tuples.
Handed = tuple[MessageRow, int]  # a message, and when it was accepted, by the steady clock
Deliver = Callable[[list[Handed]], None]
Told = Callable[[MessageRow | RelayError], None]
ReadSend = tuple[str, str | list[str], bytes | Raw, str]  # the client's id, `to`, the payload as JSON, and the body that is in it


class PeerTraits(Struct, frozen=True):
    """A client's ways that depend on its transport, which says them when it presents one. The core knows no transport by name."""

    dedups: bool = True  # the same id twice is one message; False: the ids are the transport's, and none comes twice
    skips_unknown: bool = False  # whoever is unknown or full is passed over; False: then the whole message is refused
    keeps_offline: bool = True  # what waits for it is kept when it goes
    has_heartbeat: bool = False  # its transport notices by itself when it is gone


PLAIN = PeerTraits()


class RelayCore(Protocol):
    def clock_says(self, steady_ms: int, wall_ms: int) -> None: ...

    def accepted(
        self, connection: Connection, uid: int, traits: PeerTraits = PLAIN, deliver: Deliver | None = None
    ) -> PeerHandle:
        """`deliver` is for clients that are given messages in words of their own, in place of DELIVER."""
        ...

    def received(self, peer: PeerHandle, frames: list[bytes]) -> None: ...

    def sent(self, peer: PeerHandle, sends: list[ReadSend]) -> None:
        """Messages from a client with words of its own, once its session is open. Only the reading was done elsewhere, and the
        ids are the transport's: none of them comes twice."""
        ...

    def sent_asking(self, peer: PeerHandle, send: ReadSend, told: Told) -> None:
        """The same for one message whose sender wants to know what became of it: `told` is called once, with the message when it
        is durable, or with the reason why it was not taken."""
        ...

    def oversized(self, peer: PeerHandle, size_bytes: int) -> None: ...

    def drained(self, peer: PeerHandle) -> None: ...

    def read(self, peer: PeerHandle, count: int) -> None:
        """A client with words of its own has shown that it read so many more of the messages it was handed, the oldest first.
        Until then they are not delivered, and are handed to its next connection."""
        ...

    def waits(self, peer: PeerHandle) -> bool:
        """Whether there are messages for this client that it has not been given yet."""
        ...

    def crashed(self, peer: PeerHandle) -> None: ...

    def disconnected(self, peer: PeerHandle, reason: CloseReason) -> None: ...

    def turn_ended(self) -> None: ...

    @property
    def is_gathering(self) -> bool:
        """After a turn: what was accepted waits for more, to be stored together. Whoever sees that calls `gathered` within a
        millisecond."""
        ...

    def gathered(self) -> None:
        """It has waited long enough, and is stored at the end of this turn."""
        ...
