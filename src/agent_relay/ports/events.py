"""Events: where they go, and a store of them.

Theory of operation. `append` returns at once. The store numbers what it was given in that order, each one more than the
last and never the same twice, over restarts and crashes too, and tells `on_appended` (from the loop it was given) once the
operating system has them: whoever has seen a number will find its event again. What cannot be written waits for a while; what
is lost after that is counted, and a `stream.gap` stands in its place. Nothing of this ever stops anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from msgspec import Struct

from agent_relay.events.drafts import Draft
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.types import Event
from agent_relay.ports.store import StoreError

OnAppended = Callable[[int, int, bytes], None]  # the first number, how many, and a line for each
CountDone = Callable[["int | StoreError"], None]
PageDone = Callable[["EventPage | Exception"], None]


class EventSink(Protocol):
    """Never waits and never raises."""

    def publish(self, event: Event, *, agent: str = "", session_id: str = "", at_ms: int) -> None: ...

    def record(self, drafts: list[Draft]) -> None: ...


class EventStats(Struct, frozen=True):
    kind: str
    last_seq: int
    size_bytes: int
    waiting: int = 0  # given, and not written yet
    lost: int = 0
    last_error: str = ""  # why nothing can be written now; empty: all is well
    location: str = ""
    oldest_seq: int = 0  # of what is kept; 0: nothing is
    oldest_ms: int = 0
    limit_bytes: int = 0  # beyond it the oldest are removed; 0: there is none
    damaged: tuple[str, ...] = ()  # names of files that have events in them which cannot be read


class NumberedEvents(Struct, frozen=True):
    """Events that were numbered elsewhere, and the place in the log that brings them."""

    numbering: str  # the one they belong to; numbers of another one mean other events
    first_seq: int
    count: int
    ts: int  # of the last one
    data: bytes  # a line for each
    position: int


class EventStore(Protocol):
    @property
    def last_seq(self) -> int:
        """The newest number that the operating system has."""
        ...

    def open(self, on_appended: OnAppended) -> int:
        """Blocks until the last number is known, and returns it. Where it cannot be known yet (no permission), 0: then everything
        waits until it is."""
        ...

    @property
    def last_message(self) -> int | None:
        """Asked after `open`: all messages up to this number have their `message.exchanged` in the store, or a gap stands for it,
        and none after it has. None: that is not known."""
        ...

    def cover(self, message: int) -> None:
        """Once everything that was given so far is written, this is the `last_message`, whatever the events say."""
        ...

    def append(self, drafts: list[Draft]) -> None: ...

    def read(self, query: EventQuery, done: PageDone) -> None:
        """Everything that `on_appended` was told of is found. Answers later, from the loop, a StoreError if it cannot be read."""
        ...

    def prune(self, before_ms: int) -> None:
        """Lets go of what is older, in whole files: something older may stay for a while."""
        ...

    def erase(self, agent: str, done: CountDone) -> None:
        """Removes what is about an agent, and says how many events were removed or changed (`events.erasure`). No number is given
        out anew."""
        ...

    def stats(self) -> EventStats: ...

    def close(self) -> None:
        """Blocks until everything given is durable, or cannot be."""
        ...


class EventCopy(EventStore, Protocol):
    """A store of events that are numbered elsewhere: it is given no drafts, and takes each number once. Where some are missing a
    `stream.gap` stands for them, with the last of their numbers."""

    @property
    def numbering(self) -> str:
        """The one that it follows; "": none so far."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whoever wrote to it before it was opened has written everything."""
        ...

    @property
    def last_ts(self) -> int:
        """Of the newest event."""
        ...

    @property
    def waiting(self) -> int:
        """The number of events that were given and are not written yet; as in `stats`, and cheap."""
        ...

    @property
    def position(self) -> int:
        """Everything that the log has up to here was given to it before it was opened."""
        ...

    def adopt(self, numbering: str) -> None:
        """Makes what it holds the beginning of this numbering."""
        ...

    def put(self, events: NumberedEvents) -> None:
        """Events of another numbering than its own replace all it has; that is moved away."""
        ...
