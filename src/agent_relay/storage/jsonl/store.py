"""`JsonlEvents`: events in files of lines, put together from a writer and a reader, each with its thread."""

from __future__ import annotations

import os
from functools import partial

from agent_relay.events.drafts import Draft
from agent_relay.events.pages import EventQuery
from agent_relay.ports.events import CountDone, EventStats, OnAppended, PageDone
from agent_relay.ports.store import StoreError
from agent_relay.storage.jsonl.check import Check
from agent_relay.storage.jsonl.life import Life, read_boot_id
from agent_relay.storage.jsonl.reader import Reader
from agent_relay.storage.jsonl.shelf import Shelf
from agent_relay.storage.jsonl.writer import Rotation, Writer
from agent_relay.storage.posting import Post, post_answer

_FILES_A_LIMIT = 8  # so that an eighth of what may be kept leaves at once, at most
_FILES_A_RETENTION = 7  # so that what is too old leaves a seventh of the time late, at most


def rotation_for(retention_ms: int, keep_bytes: int) -> Rotation:
    return Rotation(
        min(Rotation().max_bytes, keep_bytes // _FILES_A_LIMIT), max(1, retention_ms // _FILES_A_RETENTION), keep_bytes
    )


class JsonlEvents:
    def __init__(
        self,
        path: str | os.PathLike[str],
        post: Post,
        rotation: Rotation | None = None,
        *,
        syncs: bool = True,
        boot_id: str | None = None,
    ) -> None:
        self._path = os.fspath(path)
        self._post = post
        self._shelf = Shelf(self._path)
        life = Life(self._path.removesuffix(".jsonl") + ".life", read_boot_id() if boot_id is None else boot_id)
        self._writer = self._make_writer(life, rotation or Rotation(), syncs=syncs)
        self._reader = Reader(self._shelf, post)
        self._check = Check(self._shelf)
        self._limit_bytes = 0 if rotation is None else rotation.keep_bytes or 0
        self._is_open = False

    def _make_writer(self, life: Life, rotation: Rotation, *, syncs: bool) -> Writer:
        return Writer(self._shelf, life, rotation, self._post, syncs=syncs)

    def open(self, on_appended: OnAppended) -> int:
        self._writer.start(on_appended)
        self._reader.start()
        self._check.start()
        self._is_open = True
        return self._writer.last.seq

    @property
    def last_seq(self) -> int:
        return self._writer.last.seq

    @property
    def last_message(self) -> int | None:
        return self._writer.message

    def cover(self, message: int) -> None:
        if self._is_open:
            self._writer.cover(message)

    def append(self, drafts: list[Draft]) -> None:
        if self._is_open:
            self._writer.append(drafts)

    def read(self, query: EventQuery, done: PageDone) -> None:
        if self._is_open:
            self._reader.submit(query, done)
        else:
            post_answer(self._post, partial(done, StoreError("The store is closed.")))

    def prune(self, before_ms: int) -> None:
        if self._is_open:
            self._writer.prune(before_ms)

    def erase(self, agent: str, done: CountDone) -> None:
        if self._is_open:
            self._writer.erase(agent, done)
        else:
            post_answer(self._post, partial(done, StoreError("The store is closed.")))

    def stats(self) -> EventStats:
        writer, oldest = self._writer, self._shelf.oldest()
        return EventStats(
            kind="jsonl",
            last_seq=writer.last.seq,
            size_bytes=self._shelf.size_bytes(),
            waiting=writer.waiting,
            lost=writer.lost,
            last_error=writer.last_error,
            location=self._path,
            oldest_seq=0 if oldest is None else oldest.seq,
            oldest_ms=0 if oldest is None else oldest.ts,
            limit_bytes=self._limit_bytes,
            damaged=self._shelf.damage(),
        )

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._check.stop()
            self._reader.stop()
            self._writer.stop()
