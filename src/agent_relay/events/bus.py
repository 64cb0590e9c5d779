"""The feed: everything from a sequence number on, first from the store and then live, without a gap and without a repeat.

Theory of operation. The newest events stay in memory. A subscription that begins further back reads page by page, each when
the last one was taken: of the store, until what it has reaches into memory, and then of that. At its end it is live, and fed as
events come. Nobody is waited for: a live one that has 1,000 events untaken is cut, and its owner may begin again after its
`cursor`.

All of this belongs to one thread. `on_news` is called when there is something to take and there was nothing before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from agent_relay.events.filter import EventFilter
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.record import Record, gap_record, read_records, split_lines

MAX_BEHIND = 1_000  # events that wait for a subscriber before it is cut
_PAGE = 256  # of a replay
_KEPT_EVENTS, _KEPT_BYTES = 4_096, 8 * 1024 * 1024  # in memory; a replay has to catch up to within so much

ReadDone = Callable[["EventPage | Exception"], None]


class Source(Protocol):
    """The place of recorded events."""

    @property
    def last_seq(self) -> int:
        """The newest that was ever given out; it may be ahead of what was published so far."""
        ...

    def read(self, query: EventQuery, done: ReadDone) -> None:
        """Answers later, never at once."""
        ...


class _Batch:
    __slots__ = ("_data", "_records", "count", "first_seq", "last_seq", "size_bytes")

    def __init__(self, first_seq: int, count: int, data: bytes) -> None:
        self.first_seq = first_seq
        self.last_seq = first_seq + count - 1
        self.count = count
        self.size_bytes = len(data)
        self._data = data
        self._records: list[Record] | None = None

    @property
    def records(self) -> list[Record]:
        """Read once, and only where somebody is there to read them for."""
        if self._records is None:
            self._records = read_records(split_lines(self._data))
        return self._records

    def may_hold(self, wanted: EventFilter) -> bool:
        """False: none of them is of a type that is wanted. Most readers want a few types, and most events are messages."""
        return not wanted.types or any(mark in self._data for mark in wanted.marks)


class Subscription:
    def __init__(
        self, bus: EventBus, wanted: EventFilter, after_seq: int, since_ms: int | None, on_news: Callable[[], None]
    ) -> None:
        self.filter = wanted
        self.is_cut = False
        self.failed: str | None = None  # the store could not be read: as good as cut
        self._bus = bus
        self._on_news = on_news
        self._since_ms = since_ms
        self._queue: deque[Record] = deque()
        self._fed = after_seq
        self.is_live = False
        self._reading = False
        self._written = 0  # when the store was asked, everything up to this number was in it
        self._closed = False

    @property
    def cursor(self) -> int:
        """Everything up to here was taken, or is not wanted."""
        return self._queue[0].seq - 1 if self._queue else self._fed

    @property
    def is_over(self) -> bool:
        return self._closed or self.is_cut or self.failed is not None

    def take(self, most: int = 256) -> list[Record]:
        queue = self._queue
        taken = [queue.popleft() for _ in range(min(most, len(queue)))]
        if not queue and not self.is_live:
            self._catch_up()
        return taken

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self._bus.forget(self)

    # --- for the bus ----------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        if self._fed > self._bus.source.last_seq:  # a number nobody was given: of another store, before this one
            self._skip_to(self._bus.last_seq + 1, 0)
        if self._since_ms is not None:
            self._read_on()
        else:
            self._catch_up()

    def feed(self, batch: _Batch) -> None:
        """Live ones, in order."""
        if len(self._queue) >= MAX_BEHIND:
            self.is_cut = True
            self._bus.forget(self)
            self._tell()
            return
        was_empty = not self._queue
        self._add(batch)
        if was_empty and self._queue:
            self._tell()

    def _add(self, batch: _Batch) -> None:
        since, wanted = self._since_ms, self.filter
        if not batch.may_hold(wanted):
            self._fed = max(self._fed, batch.last_seq)
            return
        for record in batch.records:
            if record.seq > self._fed:
                self._fed = record.seq
                if wanted.matches(record) and (since is None or record.ts >= since):
                    self._queue.append(record)

    def _skip_to(self, oldest: int, ts: int) -> None:
        self._queue.append(gap_record(oldest, ts))
        self._fed = oldest - 1

    def _catch_up(self) -> None:
        """One page further: of memory, if that reaches so far back."""
        if self._reading or self.is_over:
            return
        if self._fed + 1 < self._bus.first_kept:
            self._read_on()
            return
        for batch in self._bus.kept_after(self._fed):
            self._add(batch)
            if len(self._queue) >= _PAGE:
                return
        self.is_live = True

    def _read_on(self) -> None:
        self._reading = True
        self._written = self._bus.last_seq
        self._bus.source.read(EventQuery(self.filter, self._fed, self._since_ms, limit=_PAGE), self._page)

    def _page(self, page: EventPage | Exception) -> None:
        self._reading = False
        if self.is_over:
            return
        if isinstance(page, Exception):
            self.failed = str(page) or type(page).__name__
            self._bus.forget(self)
            self._tell()
            return
        if page.oldest_seq > self._bus.first_kept:  # the store has let go of more than is still in memory: go on there
            page = EventPage([], max(self._fed, self._bus.first_kept - 1), self._bus.first_kept, is_end=False)
        if page.oldest_seq > self._fed + 1 and self._since_ms is None:
            self._skip_to(page.oldest_seq, page.records[0].ts if page.records else 0)
        self._queue.extend(page.records)
        self._fed = max(self._fed, page.last_seq)
        if page.is_end and self._fed < self._written and self._fed + 1 < self._bus.first_kept:
            # Somebody removed its files, or numbers were passed over: the store will never have what comes next.
            self._skip_to(min(self._bus.first_kept, self._written + 1), 0)
        if not self._queue:
            self._catch_up()
        if self._queue:
            self._tell()

    def _tell(self) -> None:
        try:
            self._on_news()
        except Exception as error:  # noqa: BLE001 - whatever a subscriber does: the others must not suffer from it
            self.failed = f"Its listener failed: {type(error).__name__}"
            self._bus.forget(self)


class EventBus:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.last_seq = source.last_seq  # the newest that was published
        self._kept: deque[_Batch] = deque()
        self._kept_events = 0
        self._kept_bytes = 0
        self._subscriptions: dict[Subscription, None] = {}

    @property
    def subscribers(self) -> int:
        return len(self._subscriptions)

    @property
    def first_kept(self) -> int:
        return self._kept[0].first_seq if self._kept else self.last_seq + 1

    def kept_after(self, seq: int) -> list[_Batch]:
        return [batch for batch in self._kept if batch.last_seq > seq]

    def subscribe(
        self,
        wanted: EventFilter,
        *,
        after_seq: int | None = None,
        since_ms: int | None = None,
        on_news: Callable[[], None],
    ) -> Subscription:
        """From after that number, from that moment, or, with neither, from now on."""
        if after_seq is None:
            after_seq = 0 if since_ms is not None else self.last_seq
        subscription = Subscription(self, wanted, after_seq, since_ms, on_news)
        self._subscriptions[subscription] = None
        subscription.begin()
        return subscription

    def published(self, first_seq: int, count: int, data: bytes) -> None:
        """These are recorded, a line each, and follow the last ones."""
        batch = _Batch(first_seq, count, data)
        self.last_seq = batch.last_seq
        self._keep(batch)
        for subscription in list(self._subscriptions):
            if subscription.is_live and not subscription.is_over:
                subscription.feed(batch)

    def forget(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)

    def let_go(self) -> None:
        """Nothing is kept in memory any more: the store has something else to say of it."""
        self._kept.clear()
        self._kept_events = self._kept_bytes = 0

    def _keep(self, batch: _Batch) -> None:
        if self._kept and self._kept[-1].last_seq + 1 != batch.first_seq:
            self.let_go()  # there is a hole before it
        self._kept.append(batch)
        self._kept_events += batch.count
        self._kept_bytes += batch.size_bytes
        while len(self._kept) > 1 and (self._kept_events - self._kept[0].count >= _KEPT_EVENTS or self._kept_bytes > _KEPT_BYTES):
            gone = self._kept.popleft()
            self._kept_events -= gone.count
            self._kept_bytes -= gone.size_bytes
