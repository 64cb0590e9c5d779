"""The interfaces between a daemon and the other hosts of its cluster. Nothing here waits: answers come as calls.

A project's daemons share one log. The daemon that has the seat runs the core and is the only one that appends; every other
one is an edge, which tunnels its clients to the seat and copies the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

Headers = Mapping[str, str]
NO_HEADERS: Headers = {}


class WireMessage(Struct, frozen=True, gc=False):
    subject: str
    payload: bytes
    headers: Headers = NO_HEADERS
    reply: str = ""  # where an answer is expected; "": nowhere
    status: str = ""  # of a message by the server itself: "503" nobody listens, "100" a heartbeat or flow control


Heard = Callable[[WireMessage], None]
Answered = Callable[[WireMessage | None], None]  # None: no answer came in time, or nobody was there to give one


class Wire(Protocol):
    """The connection to the engine."""

    def publish(self, subject: str, payload: bytes, headers: Headers = NO_HEADERS) -> bool:
        """False: not connected; nothing is kept for later."""
        ...

    def ask(self, subject: str, payload: bytes, done: Answered, headers: Headers = NO_HEADERS) -> None:
        """`done` is called exactly once, never from inside this call."""
        ...

    def subscribe(self, subject: str, heard: Heard) -> int:
        """Holds over reconnects. The number is for `unsubscribe`."""
        ...

    def unsubscribe(self, number: int) -> None: ...

    def new_inbox(self) -> str:
        """A subject that nobody else uses."""
        ...


class WireListener(Protocol):
    def connected(self, server: str, max_payload_bytes: int) -> None: ...

    def disconnected(self) -> None: ...


class Appended(Struct, frozen=True):
    """The record is in the log, and durable."""

    sequence: int


class NotNext(Struct, frozen=True):
    """Somebody else's record is in its place: whoever gets this has lost the seat."""

    sequence: int  # of the other record, or the least it can be


AppendDone = Callable[[Appended | NotNext], None]
FollowHeard = Callable[[int, bytes], None]  # sequence, record
LastDone = Callable[[int | None], None]  # the log's last sequence; None: not known now


class ClusterLog(Protocol):
    def append(self, record: bytes, after: int, done: AppendDone) -> None:
        """Adds the record right behind sequence `after`, or not at all. Tries until it knows: `done` hears nothing untrue. One
        record at a time."""
        ...

    def give_up(self) -> None:
        """Forgets the record under way: `done` is not called any more, and its fate stays unknown."""
        ...

    def follow(self, after: int, heard: FollowHeard) -> None:
        """Every record behind `after`, once and in order, from now on; replaces what was followed before."""
        ...

    def unfollow(self) -> None: ...

    def ask_last(self, done: LastDone) -> None: ...


class UnseatReason(StrEnum):
    SUPERSEDED = "superseded"  # another host has claimed the seat
    LOG_SILENT = "log_silent"  # the log has not confirmed anything for too long
    COPY_FAILED = "copy_failed"  # our own disk does not take what the log has
    LEFT = "left"  # the daemon stops


class SeatListener(Protocol):
    def seated(self, term: int, position: int) -> None:
        """The seat is ours, and the copy is at `position`."""
        ...

    def unseated(self, reason: UnseatReason) -> None: ...

    def seat_moved(self, host: str, term: int) -> None:
        """Another host has the seat."""
        ...

    def out_of_reach(self) -> None:
        """Nobody is known to have the seat."""
        ...


class Opening(Struct, frozen=True):
    """Who connects to the edge, as the edge's system says."""

    host: str
    is_owner: bool  # the user that runs the edge
    agent: str | None = None  # in whose terminal it runs
    owner_proof: str = ""  # the hash of that host's own token


class LocalEnd(Protocol):
    """The client's own connection, at the edge."""

    def give(self, data: bytes) -> None:
        """For the client. When it has taken it, `TunnelHandle.taken` says so."""
        ...

    def hold(self, is_held: bool) -> None:
        """Reads no more of the client, or again."""
        ...

    def end(self, *, at_once: bool) -> None: ...

    def runs(self, agent: str, pid: int | None) -> None: ...


class TunnelHandle(Protocol):
    """One client of an edge, for the connection that has its bytes."""

    def send(self, data: bytes) -> None: ...

    def taken(self, count: int) -> None:
        """The client has taken so many bytes of what it was given."""
        ...

    def close(self) -> None:
        """The client has gone."""
        ...


class Tunnels(Protocol):
    def open(self, opening: Opening, end: LocalEnd) -> TunnelHandle: ...
