"""The interfaces between a daemon and the other hosts of its cluster. Nothing here waits: answers come as calls.

A project's daemons share one log. The daemon that has the seat runs the core and is the only one that appends; every other
one is an edge, which tunnels its clients to the seat and copies the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Annotated, Literal, Protocol

from msgspec import Meta, Struct

from agent_relay.ports.callers import Caller

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


class Kept(Protocol):
    """The last records of the log, as they came."""

    def keep(self, sequence: int, record: bytes) -> None: ...

    def find(self, sequence: int) -> bytes | None: ...


class _NothingKept:
    def keep(self, sequence: int, record: bytes) -> None: ...

    def find(self, sequence: int) -> bytes | None:
        del sequence
        return None


NOTHING_KEPT: Kept = _NothingKept()


class LogWriter(Protocol):
    def append(self, record: bytes, after: int, done: AppendDone) -> None:
        """Adds the record right behind sequence `after`, or not at all. Tries until it knows: `done` hears nothing untrue. One
        record at a time."""
        ...

    def give_up(self) -> None:
        """Forgets the record under way: `done` is not called any more, and its fate stays unknown."""
        ...


class ClusterLog(LogWriter, Protocol):
    def follow(self, after: int, heard: FollowHeard) -> None:
        """Every record behind `after`, once and in order, from now on; replaces what was followed before."""
        ...

    def unfollow(self) -> None: ...

    def ask_last(self, done: LastDone) -> None: ...

    @property
    def is_regressed(self) -> bool:
        """The log was seen to end before what is followed of it."""
        ...


class UnseatReason(StrEnum):
    SUPERSEDED = "superseded"  # another host has claimed the seat
    LOG_SILENT = "log_silent"  # the log has not confirmed anything for too long
    COPY_FAILED = "copy_failed"  # our own disk does not take what the log has
    LEFT = "left"  # the daemon stops
    BARRED = "barred"  # this host must not have it: another daemon has its name


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
    """The program that connects to the edge, as the edge's system describes it."""

    host: str
    is_owner: bool  # the user that runs the edge
    agent: str | None = None  # in whose terminal it runs
    owner_proof: str = ""  # the hash of that host's own token
    kind: Literal["socket", "http"] = "socket"
    peer: tuple[str, int] = ("", 0)  # HTTP: the client's address and port
    at: tuple[str, int] = ("", 0)  # and those that it connected to


Keys = Mapping[str, int]  # of pages: their hashes, and when each was used last


class EdgeHttp(Struct, frozen=True):
    """A host's own HTTP: by this the seat judges the requests that come from there."""

    host: str  # what it is bound to
    port: int
    scheme: Literal["http", "https"]
    token_hash: str | None  # None: nobody is asked for a token
    origins: frozenset[str]
    cookie: Annotated[str, Meta(pattern="^[a-z0-9-]{1,64}$")]  # the name of its page's
    keys: dict[str, int]


Introduced = Callable[[str, EdgeHttp, Callable[[Keys], None]], None]  # host, its HTTP, and what has it keep its pages' keys


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

    def find_caller(self) -> None:
        """Looks which process has the client's end, and tells `TunnelHandle.tell_caller`."""
        ...


class TunnelHandle(Protocol):
    """One client of an edge, for the connection that has its bytes."""

    def send(self, data: bytes) -> None: ...

    def taken(self, count: int) -> None:
        """The client has taken so many bytes of what it was given."""
        ...

    def tell_caller(self, caller: Caller) -> None: ...

    def close(self) -> None:
        """The client has gone."""
        ...


class Tunnels(Protocol):
    def open(self, opening: Opening, end: LocalEnd) -> TunnelHandle: ...
