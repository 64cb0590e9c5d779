"""Reading pages of events, in a thread of its own, through the sparse index."""

from __future__ import annotations

import os
from functools import partial
from queue import SimpleQueue
from threading import Thread

from agent_relay.events.paging import EventPage, EventQuery
from agent_relay.events.record import Record, read_record
from agent_relay.ports.events import PageDone
from agent_relay.ports.store import StoreError
from agent_relay.storage.jsonl.index import SparseIndex
from agent_relay.storage.jsonl.shelf import Opened, Shelf
from agent_relay.storage.posting import Post, post_answer

_AT_ONCE_BYTES = 4 * 1024 * 1024  # looked at for one page, so that a rare filter does not keep the others waiting
_CHUNK_BYTES = 256 * 1024
_INDEXES = 64  # files whose index is remembered


class Reader:
    def __init__(self, shelf: Shelf, post: Post) -> None:
        self._shelf = shelf
        self._post = post
        self._queue: SimpleQueue[tuple[EventQuery, PageDone] | None] = SimpleQueue()
        self._indexes: dict[tuple[int, int], SparseIndex] = {}  # by the first number of the file, and its edition
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
        oldest = self._shelf.oldest_seq()
        page = EventPage([], query.after_seq, 1 if oldest is None else oldest, is_end=True)
        by_time = query.since_ms is not None and query.after_seq < page.oldest_seq
        file = self._shelf.open_since(query.since_ms or 0) if by_time else self._shelf.open_at(query.after_seq + 1)
        looking = _Looking(query, page)
        while file is not None:
            if file.first_seq > page.last_seq + 1:  # those before it are gone, perhaps only just now
                if looking.has_progressed:
                    page.is_end = False
                    os.close(file.descriptor)
                    break
                page.oldest_seq = self._shelf.oldest_seq() or file.first_seq
            file = self._look_through(file, looking, self._place(file, query, by_time))
        return page

    def _look_through(self, file: Opened, looking: _Looking, offset: int) -> Opened | None:
        """The file to go on with."""
        try:
            if not looking.look_through(file, offset):
                return None
            following = self._shelf.open_following(file.first_seq)
            if following is None or not file.is_newest:
                return following
            # It was put aside meanwhile, and may have grown before.
            grown = file._replace(size=os.fstat(file.descriptor).st_size)
            if looking.look_through(grown, file.size):
                return following
            os.close(following.descriptor)
            return None
        finally:
            os.close(file.descriptor)

    def _place(self, file: Opened, query: EventQuery, by_time: bool) -> int:
        index = self._indexes.setdefault((file.first_seq, file.edition), SparseIndex())
        if len(self._indexes) > _INDEXES:
            del self._indexes[next(iter(self._indexes))]
        index.extend(file.descriptor, file.size)
        return index.place_since(query.since_ms or 0) if by_time else index.place_after(query.after_seq)


class _Looking:
    """One question on its way through the files."""

    def __init__(self, query: EventQuery, page: EventPage) -> None:
        self._query = query
        self._page = page
        self._left_bytes = _AT_ONCE_BYTES

    @property
    def has_progressed(self) -> bool:
        return self._page.last_seq > self._query.after_seq

    def look_through(self, file: Opened, offset: int) -> bool:
        """False: the page is done, and the following files are not looked at."""
        rest = b""
        while offset < file.size:
            if self._left_bytes <= 0 and self.has_progressed:
                self._page.is_end = False
                return False
            chunk = os.pread(file.descriptor, min(_CHUNK_BYTES, file.size - offset), offset)
            if not chunk:
                break
            offset += len(chunk)
            self._left_bytes -= len(chunk)
            lines = (rest + chunk).split(b"\n")
            rest = lines.pop()
            if not all(map(self._take, lines)):
                return False
        return True

    def _take(self, line: bytes) -> bool:
        """False: enough."""
        query, page = self._query, self._page
        record = read_record(line)
        if record is None or record.seq <= page.last_seq:
            return True
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
