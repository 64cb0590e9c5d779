"""Events in memory: the newest of them, for a relay that keeps nothing on disk, and for tests."""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from operator import attrgetter

from agent_relay.events.drafts import Draft, encode_drafts
from agent_relay.events.erasure import erase_from
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.record import Record, read_records, split_lines
from agent_relay.ports.events import CountDone, EventStats, OnAppended, PageDone
from agent_relay.ports.store import StoreError
from agent_relay.storage.posting import Post, post_answer

_KEPT = 10_000


class MemoryEvents:
    def __init__(self, post: Post, kept: int = _KEPT) -> None:
        self._post = post
        self._kept = kept
        self._records: list[Record] = []
        self._on_appended: OnAppended | None = None
        self.last_seq = 0
        self._last_ts = 0

    @property
    def last_message(self) -> int | None:
        return 0  # what it held is gone with the messages in memory

    def cover(self, message: int) -> None:
        """Nothing outlives it."""

    def open(self, on_appended: OnAppended) -> int:
        self._on_appended = on_appended
        return self.last_seq

    def append(self, drafts: list[Draft]) -> None:
        if self._on_appended is None:
            return
        first_seq = self.last_seq + 1
        data, self._last_ts = encode_drafts(drafts, first_seq, self._last_ts)
        self._records += read_records(split_lines(data))
        if len(self._records) > 2 * self._kept:
            del self._records[: -self._kept]
        self.last_seq += len(drafts)
        post_answer(self._post, partial(self._on_appended, first_seq, len(drafts), data))

    def read(self, query: EventQuery, done: PageDone) -> None:
        answer = StoreError("The store is closed.") if self._on_appended is None else self._find(query)
        post_answer(self._post, partial(done, answer))

    def _find(self, query: EventQuery) -> EventPage:
        records = self._records
        oldest = records[0].seq if records else self.last_seq + 1
        page = EventPage([], query.after_seq, oldest, is_end=True)
        begin = bisect_right(records, query.after_seq, key=attrgetter("seq"))
        for record in records[begin:]:
            if query.until_ms is not None and record.ts >= query.until_ms:
                break
            if len(page.records) >= query.limit:
                page.is_end = False
                break
            page.last_seq = record.seq
            if (query.since_ms is None or record.ts >= query.since_ms) and query.filter.matches(record):
                page.records.append(record)
        return page

    def prune(self, before_ms: int) -> None:
        del self._records[: bisect_right(self._records, before_ms - 1, key=attrgetter("ts"))]

    def erase(self, agent: str, done: CountDone) -> None:
        if self._on_appended is None:
            return post_answer(self._post, partial(done, StoreError("The store is closed.")))
        left = [erase_from(record.line, agent) for record in self._records]
        changed = sum(line is not record.line for line, record in zip(left, self._records, strict=True))
        self._records = read_records(line for line in left if line is not None)
        return post_answer(self._post, partial(done, changed))

    def stats(self) -> EventStats:
        size_bytes = sum(len(record.line) for record in self._records)
        oldest_seq, oldest_ms = (self._records[0].seq, self._records[0].ts) if self._records else (0, 0)
        return EventStats("memory", self.last_seq, size_bytes, oldest_seq=oldest_seq, oldest_ms=oldest_ms)

    def close(self) -> None:
        self._on_appended = None
