"""Clearing deleted content out of the files.

SQLite overwrites what it deletes (`secure_delete`), but the words of deleted messages stay in the full-text index until its
parts are merged, and the WAL holds earlier pages until it is cut. So after a deletion the index is merged, a few pages at a
time so that no write waits long for it, and then the WAL is emptied: at once for an agent that is erased, else once an hour.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct

from agent_relay.ports.store import StoreError
from agent_relay.storage.sqlite.commits import Commits

_CLEARED_EVERY_S = 3_600.0  # after pruning: it reads the whole index
_MERGED_PAGES = 64  # of the index in one step: some 10 ms
_PAGES_RETURNED = 256  # 2 MiB of file a round: enough to keep up, too little to be noticed
_WAL_TRIES = 20  # somebody else may be reading for long: then the next clearing empties the WAL

_log = logging.getLogger(__name__)


class _Round(Struct):
    """One clearing from beginning to end. `done` are told when nothing of what was deleted is left."""

    done: list[Callable[[], None]]
    is_merging: bool = True
    begins: bool = True
    has_failed: bool = False
    tries: int = 0


class Clearing:
    """Used by the writer's thread alone, a step between two writes."""

    def __init__(self, path: Path, commits: Commits) -> None:
        self._path = path
        self._commits = commits
        self._round: _Round | None = None
        self._uncleared_since: float | None = None

    @property
    def is_under_way(self) -> bool:
        return self._round is not None

    @property
    def due_in_s(self) -> float | None:
        """The time until there is something to clear; None: there is nothing."""
        since = self._uncleared_since
        return None if since is None else max(since + _CLEARED_EVERY_S - time.monotonic(), 0.0)

    def begin(self, done: Callable[[], None]) -> None:
        """At once; one that is under way begins anew, for what was deleted just now as well."""
        told = [] if self._round is None else self._round.done
        self._round = _Round([*told, done])

    def note_deleted(self) -> None:
        """Something is to be cleared, with the next round."""
        if self._uncleared_since is None:
            self._uncleared_since = time.monotonic()

    def step(self) -> None:
        """One step, if there is one to do."""
        if self._round is None and self.due_in_s == 0.0:
            self._round = _Round([])
        clearing = self._round
        if clearing is None:
            return
        if clearing.is_merging:
            if clearing.begins:  # what is pruned from now on is for the next clearing
                self._uncleared_since = None
            more = self._commits.transact(partial(merge_index, begins=clearing.begins))
            clearing.begins = False
            clearing.is_merging = more is True
            clearing.has_failed = isinstance(more, StoreError)
            return
        clearing.tries += 1
        if self._empty_wal() or clearing.tries >= _WAL_TRIES:
            self.shrink()
            if clearing.has_failed or clearing.tries >= _WAL_TRIES:
                self.note_deleted()  # the next clearing tries again
            self.end()

    def end(self) -> None:
        clearing, self._round = self._round, None
        for tell in clearing.done if clearing is not None else ():
            tell()

    def shrink(self) -> None:
        """Makes the file smaller by some of what is free in it."""
        try:
            connection = self._commits.connection
            if connection is not None:
                _return_pages(connection)
        except sqlite3.Error as error:
            _log.info("%s was not made smaller this time: %s", self._path, error)

    def _empty_wal(self) -> bool:
        """False: somebody reads from it just now."""
        try:
            connection = self._commits.connection
            return connection is not None and not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error as error:
            _log.info("The WAL of %s was not emptied this time: %s", self._path, error)
            return False


def merge_index(connection: sqlite3.Connection, *, begins: bool) -> bool:
    """One step, inside the caller's transaction; True: there is more to do."""
    before = connection.total_changes
    pages = -_MERGED_PAGES if begins else _MERGED_PAGES  # negative: all parts are to become one
    connection.execute("INSERT INTO message_words (message_words, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes - before >= 2


def _return_pages(connection: sqlite3.Connection) -> None:
    """Gives free pages at the end of the file back to the file system; outside of any transaction."""
    # Not execute(): the pragma answers a row without columns for each page, and Python stops at the first of them.
    connection.executescript(f"PRAGMA incremental_vacuum({_PAGES_RETURNED})")
