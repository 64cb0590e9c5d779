"""Reading pages of events, in a thread of its own, each from the place that an index says. A gap stands for what is damaged."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from functools import partial
from queue import SimpleQueue
from threading import Thread

from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.record import Record, gap_record, read_record
from agent_relay.ports.events import PageDone
from agent_relay.ports.store import StoreError
from agent_relay.storage.jsonl.index import BlockIndex, SparseIndex
from agent_relay.storage.jsonl.segments import Segment, read_blocks, read_chunks
from agent_relay.storage.jsonl.shelf import Opened, Shelf
from agent_relay.storage.posting import Post, post_answer

_log = logging.getLogger(__name__)

_AT_ONCE_BYTES = 4 * 1024 * 1024  # looked at for one page, so that a rare filter does not keep the others waiting
_INDEXES = 64  # files whose index is remembered


class Reader:
    def __init__(self, shelf: Shelf, post: Post) -> None:
        self._shelf = shelf
        self._post = post
        self._queue: SimpleQueue[tuple[EventQuery, PageDone] | None] = SimpleQueue()
        # By the first number of the file, its edition and whether it is packed.
        self._indexes: dict[tuple[int, int, bool], SparseIndex | BlockIndex] = {}
        self._thread = Thread(target=self._run, name="relay-events-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, query: EventQuery, done: PageDone) -> None:
        self._queue.put((query, done))

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            query, done = item
            answer: EventPage | Exception
            try:
                answer = self.find(query)
            except Exception as error:  # noqa: BLE001 - one question that cannot be answered must not end the thread
                answer = StoreError(str(error) or type(error).__name__)
            post_answer(self._post, partial(done, answer))

    def find(self, query: EventQuery) -> EventPage:
        """Blocks; raises OSError."""
        oldest = self._shelf.oldest()
        page = EventPage([], query.after_seq, 1 if oldest is None else oldest.seq, is_end=True)
        by_time = query.since_ms is not None and query.after_seq < page.oldest_seq
        file = self._shelf.open_since(query.since_ms or 0) if by_time else self._shelf.open_at(query.after_seq + 1)
        looking = _Looking(query, page)
        while file is not None:
            if file.first_seq > page.last_seq + 1:  # those before it are gone, perhaps only just now
                if looking.has_progressed:
                    page.is_end = False
                    os.close(file.descriptor)
                    break
                oldest = self._shelf.oldest()
                page.oldest_seq = file.first_seq if oldest is None else oldest.seq
            if looking.file_ends_at is not None and file.first_seq > looking.file_ends_at + 1:
                looking.is_damaged = True  # there was something between them
            index = self._index_of(file)
            looking.file_ends_at = index.last_seq if isinstance(index, BlockIndex) else None
            file = self._look_through(file, looking, _read(file, index, query, by_time))
        return page

    def _look_through(self, file: Opened, looking: _Looking, chunks: Iterable[bytes | None]) -> Opened | None:
        """The file to go on with."""
        try:
            if not looking.look_through(chunks):
                return None
            following = self._shelf.open_following(file.first_seq)
            if following is None or not file.is_newest:
                return following
            # It was put aside meanwhile, and may have grown before.
            grown = os.fstat(file.descriptor).st_size
            if looking.look_through(read_chunks(file.descriptor, file.size, grown)):
                return following
            os.close(following.descriptor)
            return None
        finally:
            if looking.has_seen_damage:
                looking.has_seen_damage = False
                note_damage(self._shelf, file)
            os.close(file.descriptor)

    def _index_of(self, file: Opened) -> SparseIndex | BlockIndex:
        key = (file.first_seq, file.edition, file.is_packed)
        index = self._indexes.get(key)
        if index is None:
            index = self._indexes[key] = BlockIndex(file.descriptor, file.size) if file.is_packed else SparseIndex()
            if len(self._indexes) > _INDEXES:
                del self._indexes[next(iter(self._indexes))]
        if isinstance(index, SparseIndex):
            index.extend(file.descriptor, file.size)
        return index


def _read(file: Opened, index: SparseIndex | BlockIndex, query: EventQuery, by_time: bool) -> Iterable[bytes | None]:
    """From where it may hold the first that is wanted; None in place of what cannot be unpacked."""
    place = index.place_since(query.since_ms or 0) if by_time else index.place_after(query.after_seq)
    if isinstance(index, SparseIndex):
        return read_chunks(file.descriptor, place, file.size)
    return read_blocks(file.descriptor, index.blocks[place:])


def note_damage(shelf: Shelf, file: Opened) -> None:
    name = os.path.basename(shelf.path) if file.is_newest else Segment(file.first_seq, 0, file.is_packed).name
    if shelf.note_damage(file.first_seq, name):
        _log.warning("Some events in %s are damaged and cannot be read; a stream.gap stands in their place.", name)


class _Looking:
    """One question on its way through the files."""

    def __init__(self, query: EventQuery, page: EventPage) -> None:
        self._query = query
        self._page = page
        self._left_bytes = _AT_ONCE_BYTES
        self.is_damaged = False  # between the last event and the next one is something that cannot be read
        self.has_seen_damage = False
        self.file_ends_at: int | None = None  # the number that the file before ends with, where that is known

    @property
    def has_progressed(self) -> bool:
        return self._page.last_seq > self._query.after_seq

    def look_through(self, chunks: Iterable[bytes | None]) -> bool:
        """False: the page is done, and the following files are not looked at."""
        rest = b""
        for chunk in chunks:
            if chunk is None:
                self.is_damaged = self.has_seen_damage = True
                continue
            self._left_bytes -= len(chunk)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if not all(map(self._take, lines)):
                return False
            if self._left_bytes <= 0 and self.has_progressed:
                self._page.is_end = False
                return False
        if rest:  # a line without an end: something was cut off
            self.is_damaged = self.has_seen_damage = True
        return True

    def _take(self, line: bytes) -> bool:
        """False: enough."""
        page = self._page
        record = read_record(line)
        if record is None:
            self.is_damaged = self.has_seen_damage = True
            return True
        was_damaged, self.is_damaged = self.is_damaged, False
        if record.seq <= page.last_seq:
            return True
        if was_damaged and record.seq > page.last_seq + 1 and record.type != "stream.gap":
            gap = gap_record(record.seq, record.ts, "damaged")
            return self._add(gap) and self._add(record)
        return self._add(record)

    def _add(self, record: Record) -> bool:
        query, page = self._query, self._page
        if query.until_ms is not None and record.ts >= query.until_ms:
            return False
        if len(page.records) >= query.limit:
            page.is_end = False
            return False
        page.last_seq = record.seq
        if self._is_wanted(record):
            page.records.append(record)
        return True

    def _is_wanted(self, record: Record) -> bool:
        since = self._query.since_ms
        return (since is None or record.ts >= since) and self._query.filter.matches(record)
