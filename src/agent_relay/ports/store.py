"""The store of messages that the core asks for, and the rows they speak about.

Theory of operation. A message is one row, numbered in the order it was accepted; its recipients, each with the
sequence number it has in that recipient's stream, stand in the row. Acknowledgements are not rows: each stream has a
cursor (`done_seq`, and the few numbers done above it), written with later batches. From time to time a batch carries a
`checkpoint`: every message up to that number is, for each of its recipients, either done or listed in the backlog. So what
is still to be delivered after a crash is: the backlog, and the messages after the checkpoint, less what the cursors
say is done. A cursor that was lost in the crash means a redelivery, never a loss. `open` brings the backlog up to the last
message; from then on it is read a page at a time, when somebody comes for it.

A document is a small piece of the daemon's own state under a name, which the store does not look into. Whoever opens the store
next gets them all, so there are few, and none is large.

Calls that take a `done` callback return at once and call it later, from the loop the store was given, exactly once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from msgspec import Struct, field

from agent_relay.protocol.encode import read_shadows


class StoreError(Exception):
    """The store could not do it, and may be able to later: disk full, file locked. Nothing was written."""


class StoreUnusable(Exception):  # noqa: N818 - named by the condition
    """The store cannot be opened at all: damaged, of a newer version, no permission. The text says how to mend it."""


class MessageRow(Struct, gc=False):
    """Made when a message is accepted; its number, id, time and recipients are filled in when its batch sets off."""

    number: int  # from the id (see protocol.ulid); ascending in the order of acceptance, never reused
    id: str  # msg_…
    sender: str
    client_id: str  # the sender's own id of the SEND; (sender, client_id) is what is de-duplicated
    target: str  # who it was written to: a name, `*`, `#channel`, names joined by commas, or "" for a topic alone
    topic: str
    kind: str
    thread: str | None
    ts: int  # wall clock when it was accepted
    expires_at: int  # wall clock when an undelivered one becomes a dead letter
    priority: int
    queued: int  # how many recipients were offline, for the receipt
    skipped: tuple[str, ...]  # recipients of a broadcast whose queue was full, for the receipt
    recipients: tuple[tuple[str, int], ...]  # (name, sequence number in its stream), in delivery order
    tail: bytes  # the shared part of the DELIVER frame; "{" + tail is a JSON object with from, topic, payload, payload_meta

    @property
    def addressed(self) -> tuple[tuple[str, int], ...]:
        """Its recipients without those who only got a copy."""
        shadows = read_shadows(self.tail)
        return tuple(place for place in self.recipients if place[0] not in shadows) if shadows else self.recipients


class AgentRow(Struct, frozen=True):
    name: str  # as first registered; compared without regard to case
    cli: str | None
    uid: int
    session_id: str
    token_hash: str
    previous_token_hash: str | None  # still good: its holder has not shown yet that it got the newer one
    registered_at: int
    last_seen_at: int
    connected: bool
    meta: bytes  # JSON object


class SpentToken(Struct, frozen=True):
    token_hash: str
    agent: str
    spent_at: int


class SubscriptionRow(Struct, frozen=True):
    agent: str
    pattern: str
    active: bool = True  # False in a batch: remove it


class MemberRow(Struct, frozen=True):
    """A channel and one of its members; `agent` "" stands for the channel itself, which outlives its members."""

    channel: str
    agent: str
    active: bool = True


class StreamRow(Struct, frozen=True, gc=False):
    """The position of the stream (topic, sender → recipient)."""

    topic: str
    sender: str
    recipient: str
    last_seq: int  # the highest number given out
    wire_seq: int  # the highest number that went to the recipient
    heard_seq: int  # the highest number the recipient has answered
    done_seq: int  # everything up to here is acknowledged, refused or dead
    done_above: tuple[int, ...]  # and these above it; after one, a negative number means: and all up to its amount


class TrailRow(Struct, frozen=True, gc=False):
    """Something that happened to the messages first_seq … last_seq of a stream, for `explain`."""

    topic: str
    sender: str
    recipient: str
    first_seq: int
    last_seq: int
    at: int
    event: str  # sent, resent, acknowledged, rejected, busy, expired, dead_lettered, requeued, …
    detail: str = ""


class DeadLetterRow(Struct, frozen=True):
    number: int
    recipient: str
    at: int
    code: str
    active: bool = True  # False in a batch: it was taken up again


class BacklogRow(Struct, frozen=True, gc=False):
    """A message that waits for one of its recipients."""

    recipient: str
    number: int
    seq: int
    expires_at: int  # as in the message
    size: int  # bytes of its tail


class Batch(Struct):
    """Everything that happened in one turn: written whole or not at all. The store's, once given to it: not to be changed."""

    messages: list[MessageRow] = field(default_factory=list)
    agents: list[AgentRow] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)  # agents to remove with all that is theirs but the messages; goes first
    spent_tokens: list[SpentToken] = field(default_factory=list)
    subscriptions: list[SubscriptionRow] = field(default_factory=list)
    members: list[MemberRow] = field(default_factory=list)
    streams: list[StreamRow] = field(default_factory=list)
    trail: list[TrailRow] = field(default_factory=list)
    dead_letters: list[DeadLetterRow] = field(default_factory=list)
    backlog_removed: list[tuple[str, int]] = field(default_factory=list)  # (recipient, number); goes before what is added
    backlog_added: list[BacklogRow] = field(default_factory=list)  # one that is there already stays as it is
    documents: dict[str, bytes] = field(default_factory=dict)  # by name; an empty one removes what was there
    checkpoint: int | None = None
    position: int | None = None  # in the log that this store is a copy of; None: it is no copy
    term: int | None = None  # another core takes over with this batch: what came after the checkpoint goes into the backlog first

    @property
    def has_more(self) -> bool:
        """Something beside messages."""
        return self.checkpoint is not None or self.position is not None or any(
            (
                self.agents, self.forgotten, self.spent_tokens, self.subscriptions, self.members, self.streams, self.trail,
                self.dead_letters, self.backlog_added, self.backlog_removed, self.documents,
            )
        )  # fmt: skip


class Owed(Struct, frozen=True, gc=False):
    """A message of the backlog, for one of its recipients."""

    message: MessageRow
    recipient: str
    seq: int
    resent: int  # how many steps `resent` its trail has


class OwedQuery(Struct, frozen=True):
    """A part of the backlog, by ascending (number, recipient)."""

    recipient: str | None = None
    sender: str | None = None
    expired_at: int | None = None  # only what has expired by then (wall clock)
    after: tuple[int, str] = (0, "")  # the last one of the page before
    limit: int = 500


class DeadLetterQuery(Struct, frozen=True):
    """The newest first; with `after`, by ascending (number, recipient) beyond that one."""

    after: tuple[int, str] | None = None
    limit: int = 500


class Waiting(Struct, frozen=True):
    """The part of the backlog that is for a recipient."""

    recipient: str
    count: int
    size: int  # bytes


class Snapshot(Struct):
    """All the core needs to go on where it was."""

    agents: list[AgentRow] = field(default_factory=list)
    spent_tokens: list[SpentToken] = field(default_factory=list)
    subscriptions: list[SubscriptionRow] = field(default_factory=list)
    members: list[MemberRow] = field(default_factory=list)
    streams: list[StreamRow] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    dead_letters: int = 0  # how many there are
    documents: dict[str, bytes] = field(default_factory=dict)
    last_number: int = 0  # and the checkpoint
    first_seq: int = 0  # streams that are new begin after this number
    position: int = 0  # of the last batch that had one
    term: int = 0


class MessageQuery(Struct, frozen=True):
    with_agent: str | None = None  # sent by or delivered to
    sender: str | None = None
    recipient: str | None = None
    target: str | None = None  # exactly as addressed: `#dev`, `*`
    topic: str | None = None
    thread: str | None = None
    kind: str | None = None
    search: str | None = None  # words; all of them must occur in the body, the last may be the beginning of one
    since: int | None = None  # wall clock, inclusive
    until: int | None = None  # wall clock, exclusive
    between: tuple[str, str] | None = None  # two agents: what either wrote to the other alone
    before: int | None = None  # a message number: the cursor of the page before
    after: int | None = None  # the same in the other direction: the oldest of the newer ones come first
    limit: int = 50


class Page(Struct):
    """Newest first, but for a query with `after`. `next_before` continues where this page ends, as `before` or as `after`; None:
    there is no more."""

    messages: list[MessageRow]
    next_before: int | None = None
    dead: frozenset[tuple[int, str]] = frozenset()  # dead letters among them: number, and the recipient's folded name


class Conversation(Struct, frozen=True):
    """Messages that belong together. `key`: both names with a comma, a channel, `*`, names as addressed, a topic, a thread."""

    kind: Literal["pair", "channel", "all", "group", "topic", "thread"]
    key: str
    count: int
    last: int  # the number of its newest message


class StoreStats(Struct, frozen=True):
    kind: str
    messages: int
    size_bytes: int
    wal_bytes: int = 0
    location: str = ""
    problem: str = ""  # why it cannot store now, or what is wrong with it
    lost: str = ""  # what was found missing at a start, and since when


WriteDone = Callable[[StoreError | None], None]
PageDone = Callable[["Page | StoreError"], None]
TrailDone = Callable[["list[TrailRow] | StoreError"], None]
DeadLettersDone = Callable[["list[tuple[DeadLetterRow, MessageRow]] | StoreError"], None]
PruneDone = Callable[["int | StoreError"], None]
OwedDone = Callable[["list[Owed] | StoreError"], None]
SeenDone = Callable[["dict[str, int] | StoreError"], None]
StepsDone = Callable[["list[list[TrailRow]] | StoreError"], None]
ConversationsDone = Callable[["list[tuple[Conversation, MessageRow]] | StoreError"], None]


class MessageStore(Protocol):
    def open(self) -> Snapshot:
        """Blocks until the store is ready; raises StoreUnusable. What came after the checkpoint and is not done is in the backlog
        afterwards, and the streams' last numbers cover it. Takes no longer for a store that holds more."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why nothing can be stored for now, and what to do; None: nothing is known to be wrong. Whether the batch under way is
        stored may not be known then: its `done` is called when it is, and not at all if the store is closed before."""
        ...

    def write(self, batch: Batch, done: WriteDone) -> None:
        """Makes the batch durable as one transaction. Batches are written in the order they were given. An error
        says that nothing of it was stored, for sure."""
        ...

    def find(self, query: MessageQuery, done: PageDone) -> None:
        """Messages newest first. Everything whose `write` is done is found."""
        ...

    def fetch(self, numbers: list[int], done: PageDone) -> None:
        """The messages with these numbers that exist, by ascending number."""
        ...

    def trail(self, message: MessageRow, done: TrailDone) -> None:
        """The history of one message, oldest first, over all its recipients."""
        ...

    def steps(self, messages: list[MessageRow], done: StepsDone) -> None:
        """For each of the messages, what was noted of it alone, oldest first; not what was noted of a run of them."""
        ...

    def conversations(self, limit: int, done: ConversationsDone) -> None:
        """The conversations that were last spoken in, each with its newest message, newest first."""
        ...

    def replay(self, recipient: str, after: dict[tuple[str, str], int], done: PageDone) -> None:
        """All messages to `recipient` in the streams (topic, sender) beyond the given sequence number, by ascending number."""
        ...

    def owed(self, query: OwedQuery, done: OwedDone) -> None:
        """A page of the backlog, as the last batch whose `write` is done left it."""
        ...

    def seen(self, sender: str, since: int, limit: int, done: SeenDone) -> None:
        """The client ids of the newest `limit` messages of a sender, none older than `since` (wall clock; by its number): from id
        to number, the oldest first."""
        ...

    def dead_letters(self, query: DeadLetterQuery, done: DeadLettersDone) -> None:
        """Dead letters with their messages."""
        ...

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        """Removes at most `limit` messages accepted before that moment (wall clock), with their search index; says how many.
        What may still be owed to someone stays: the backlog, everything after the checkpoint, the active dead letters.
        A store that can drop many at once, without anybody waiting for it, may remove more than `limit`."""
        ...

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        """Takes an agent out of at most `limit` messages, the oldest first, and says of how many. What it sent, or alone was
        sent, is removed, whatever is still owed; what it got with others stays, without its name. Fewer than `limit`: that was
        all, what happened to them is forgotten, too, and nothing of it is left in the files."""
        ...

    def stats(self) -> StoreStats:
        """Cheap and approximate; never waits for a write."""
        ...

    def close(self) -> None:
        """Blocks until everything given to `write` is durable and the files are closed."""
        ...
