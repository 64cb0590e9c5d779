"""Copying a project's history from one store into another: the two ends, as both kinds of stores offer them.

Nearly everything goes through the port: messages are found page by page and written in batches, and the rest is in the snapshot
of the source. Only the trail has no question that would tell all of it, and a target needs a mark while it is not whole. A copy
that was interrupted is continued by the next one: messages after the newest one that is there, and the trail after as many rows.
"""

from __future__ import annotations

import hashlib
import queue
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import msgspec

from agent_relay.ports.store import (
    BacklogRow,
    Batch,
    DeadLetterQuery,
    DeadLetterRow,
    MessageQuery,
    MessageRow,
    MessageStore,
    Owed,
    OwedQuery,
    Page,
    Snapshot,
    StoreError,
    TrailRow,
)
from agent_relay.storage.posting import Post

_PAGE = 500
_TABLES = ("agents", "spent_tokens", "subscriptions", "members", "streams")

_T = TypeVar("_T")
_encode = msgspec.msgpack.Encoder().encode

Progress = Callable[[str, int, int], None]  # table, rows so far, rows in all


class CopyEnd(Protocol):
    """A store that is copied from, or into. All of it blocks."""

    location: str

    def open_source(self, post: Post) -> tuple[MessageStore, Snapshot]: ...

    def open_target(self, post: Post, source: str) -> tuple[MessageStore, Snapshot]:
        """Begins a copy from there, or continues it; raises StoreUnusable for a store that holds something else."""
        ...

    def count_trail(self) -> int: ...

    def read_trail(self, after: int, limit: int) -> list[tuple[int, TrailRow]]:
        """Rows with their places, ascending."""
        ...

    def place_of_trail(self, count: int) -> int:
        """The place of that many-th row; 0 for the 0th."""
        ...

    def finish(self, snapshot: Snapshot) -> None:
        """Of a target, closed: it is whole from now on."""
        ...

    def close(self) -> None: ...


class Totals(msgspec.Struct, frozen=True):
    rows: int
    sha256: str


class OpenEnd:
    """An end with its store open, and plain calls instead of callbacks."""

    def __init__(self, end: CopyEnd, source: str = "") -> None:
        self.end = end
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        put = self._answers.put
        self.store, self.snapshot = end.open_target(put, source) if source else end.open_source(put)

    def ask(self, start: Callable[..., None], *arguments: Any) -> Any:
        """Raises StoreError."""
        answers: list[Any] = []
        start(*arguments, answers.append)
        while not answers:
            self._answers.get()()
        if isinstance(answers[0], StoreError):
            raise answers[0]
        return answers[0]

    def close(self) -> None:
        self.store.close()
        self.end.close()

    def newest(self) -> int:
        page: Page = self.ask(self.store.find, MessageQuery(limit=1))
        return page.messages[0].number if page.messages else 0

    def messages(self, after: int = 0) -> Iterator[list[MessageRow]]:
        number: int | None = after
        while number is not None:
            page: Page = self.ask(self.store.find, MessageQuery(after=number, limit=_PAGE))
            if page.messages:
                yield page.messages
            number = page.next_before

    def owed(self) -> Iterator[Owed]:
        after = (0, "")
        while page := self.ask(self.store.owed, OwedQuery(after=after, limit=_PAGE)):
            yield from page
            after = (page[-1].message.number, page[-1].recipient)

    def dead_letters(self) -> Iterator[list[DeadLetterRow]]:
        after = (0, "")
        while page := self.ask(self.store.dead_letters, DeadLetterQuery(after=after, limit=_PAGE)):
            yield [letter for letter, _ in page]
            after = (page[-1][0].number, page[-1][0].recipient)

    def trail(self, after: int = 0) -> Iterator[list[TrailRow]]:
        while page := self.end.read_trail(after, _PAGE):
            yield [row for _, row in page]
            after = page[-1][0]

    def total(self) -> dict[str, Totals]:
        """The number of rows of each table, and a checksum over them."""
        snapshot = {name: _sum(sorted(map(_encode, getattr(self.snapshot, name)))) for name in _TABLES}
        return {
            "messages": _sum(_encode(row) for page in self.messages() for row in page),
            "backlog": _sum(_encode((each.message.number, each.recipient, each.seq)) for each in self.owed()),
            "trail": _sum(_encode(row) for page in self.trail() for row in page),
            "dead_letters": _sum(_encode(row) for page in self.dead_letters() for row in page),
            **snapshot,
            "documents": _sum(sorted(map(_encode, self.snapshot.documents.items()))),
        }


def _sum(rows: Iterator[bytes] | list[bytes]) -> Totals:
    digest, count = hashlib.sha256(), 0
    for row in rows:
        digest.update(len(row).to_bytes(4, "big") + row)
        count += 1
    return Totals(count, digest.hexdigest())


def copy_history(source: OpenEnd, target: OpenEnd, progress: Progress) -> None:
    """Raises StoreError. May be ended at any moment, and begun again."""
    _copy_messages(source, target, progress)
    _copy_trail(source, target, progress)
    found = source.snapshot
    backlog = [
        BacklogRow(each.recipient, each.message.number, each.seq, each.message.expires_at, len(each.message.tail))
        for each in source.owed()
    ]
    tables = {name: getattr(found, name) for name in _TABLES}
    letters = [letter for page in source.dead_letters() for letter in page]
    rest = Batch(backlog_added=backlog, dead_letters=letters, documents=found.documents, checkpoint=found.last_number, **tables)
    target.ask(target.store.write, rest)


def _copy_messages(source: OpenEnd, target: OpenEnd, progress: Progress) -> None:
    total, done = source.store.stats().messages, target.store.stats().messages
    for page in source.messages(target.newest()):
        # Up to the checkpoint nothing waits: what does is written at the end.
        target.ask(target.store.write, Batch(messages=page, checkpoint=page[-1].number))
        done += len(page)
        progress("messages", done, total)


def _copy_trail(source: OpenEnd, target: OpenEnd, progress: Progress) -> None:
    total, done = source.end.count_trail(), target.end.count_trail()
    for page in source.trail(source.end.place_of_trail(done)):
        target.ask(target.store.write, Batch(trail=page))
        done += len(page)
        progress("trail", done, total)
