"""The only connection that writes, and the truth about what it has committed.

An error of the disk at a commit leaves open whether the transaction is in the file: its last frame may be in the WAL although
the flush of it failed, and comes back when the file is next opened. Nor does a later flush that succeeds prove anything, for
after one that failed the system may count the pages as written. So nobody is told anything before it is known. The connection
is given up and a new one looks for the transaction. If it is there, the WAL is written once more, byte for byte, and flushed.
If it is not, its frames are behind the end of the WAL. Either way one more transaction has to succeed: it takes the place of
such frames, and shows that the disk works again. Until then the transaction is in doubt: it is tried once a second, `trouble`
says why, and whoever waits for it is not answered.

The files are looked at after every commit, too: one that was deleted or replaced takes what is written with it.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from agent_relay.ports.store import StoreError, StoreUnusable
from agent_relay.storage.sqlite.errors import is_locked, may_have_written, needs_new_connection, report
from agent_relay.storage.sqlite.files import Durability, FileWatch, connect_writer, copy_database, rewrite_wal
from agent_relay.storage.sqlite.rows import read_meta, write_meta

_TRIED_EVERY_S = 1.0

_T = TypeVar("_T")
_log = logging.getLogger(__name__)

Look = Callable[[sqlite3.Connection], bool]


class NotBegun(StoreError):  # noqa: N818 - named by the condition, as its siblings are
    """The file could not even be locked: no batch is to blame, and trying each on its own would only take longer."""


class GivenUp(Exception):  # noqa: N818
    """The store closes while a transaction is in doubt: nothing can be said about it."""


class Commits:
    def __init__(self, path: Path, durability: Durability, connection: sqlite3.Connection) -> None:
        self._path = path
        self._durability: Durability = durability
        self.connection: sqlite3.Connection | None = connection
        self.batch = read_meta(connection)["batch"]  # the number of the last transaction; one that failed keeps its number
        self.trouble: str | None = None  # why nothing can be stored until it is mended; the loop reads it
        self.failure = ""  # why the last transaction failed; "" since one worked
        self._closing = Event()
        self._watch = FileWatch(path)
        self._severed = ""  # why nothing more can be stored, although all that was is safe

    def give_up(self) -> None:
        """Leaves in doubt what is so by now."""
        self._closing.set()

    def transact(self, action: Callable[[sqlite3.Connection], _T]) -> _T | StoreError:
        """Runs the action as one transaction: all of it is on the disk afterwards, or nothing and the reason."""
        try:
            connection = self._connect()
            connection.execute("BEGIN IMMEDIATE")
        except (sqlite3.Error, StoreUnusable) as error:
            self._abandon(error)
            return NotBegun(str(report(self._path, error)))
        self.batch = number = self.batch + 1
        try:
            result = action(connection)
            write_meta(connection, batch=number)
        except Exception as error:  # noqa: BLE001 - rows that cannot be stored fail their own batch, never the thread
            self._abandon(error)
            return report(self._path, error)
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._abandon(error)
            if not may_have_written(error) or not self._find_out(error, lambda found: read_meta(found)["batch"] == number):
                return report(self._path, error)
        self._confirm()
        return result

    def execute(self, statement: str, values: list[Any], look: Look) -> StoreError | None:
        """As `transact`, for one statement; `look` tells whether it is in the file."""
        try:
            connection = self._connect()
        except (sqlite3.Error, StoreUnusable) as error:
            self._abandon(error)
            return NotBegun(str(report(self._path, error)))
        try:
            connection.execute(statement, values)
        except Exception as error:  # noqa: BLE001 - as there
            self._abandon(error)
            if not may_have_written(error):
                return NotBegun(str(report(self._path, error))) if is_locked(error) else report(self._path, error)
            if not self._find_out(error, look):
                return report(self._path, error)
        self._confirm()
        return None

    def close(self) -> None:
        """Folds the WAL into the file, if nobody else has it open."""
        connection, self.connection = self.connection, None
        if connection is None:
            return
        try:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.Error as error:
            _log.warning("The WAL of %s stays beside it: %s", self._path, error)
        connection.close()

    def _connect(self) -> sqlite3.Connection:
        if self.connection is None:
            if self._watch.find_change() == "file":
                raise StoreUnusable(f"{self._path} was deleted or replaced by another file. Put it back, or restart the daemon.")
            self.connection = connect_writer(self._path, self._durability)
            self._watch.opened()
        return self.connection

    def _abandon(self, error: Exception) -> None:
        """Back to where the transaction began; with a new connection where the old one cannot be trusted."""
        text = str(report(self._path, error))
        if text != self.failure:  # a full disk fails every write, and would fill the log too
            self.failure = text
            _log.warning("Nothing can be stored now: %s", text)
        connection = self.connection
        if connection is None:
            return
        try:
            if connection.in_transaction:
                connection.rollback()
        except sqlite3.Error:
            self.connection = None
        if self.connection is None or needs_new_connection(error):
            self.connection = None
            connection.close()

    # --- files that are gone --------------------------------------------------------------------------------------------

    def _confirm(self) -> None:
        """After a commit: it went into the files that the next start will find. Returns when that is so."""
        self.failure = ""
        change = self._watch.find_change()
        if change is None:
            return
        if change == "wal" and self._fold():
            self._severed = (
                f"{self._path}-wal was deleted or replaced while it was in use. What was stored until then is safe in "
                f"{self._path}, but nothing more can be stored: restart the daemon (`agent-relay down`, then `agent-relay up`)"
            )
            return
        self._hold(self._rescue())

    def hold_if_severed(self) -> None:
        """When everybody has been told about what is safe: from here on nothing is stored."""
        if self._severed:
            self._hold(self._severed)

    def _hold(self, text: str) -> None:
        while self._watch.find_change() is not None:
            self._wait(text)
        self.trouble, self._severed = None, ""
        _log.warning("The files of %s are back.", self._path)

    def _fold(self) -> bool:
        """Moves everything out of a WAL that has no name any more."""
        try:
            return self.connection is not None and not self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        except sqlite3.Error as error:
            _log.warning("%s could not take up its WAL: %s", self._path, error)
            return False

    def _rescue(self) -> str:
        """The file is gone and still open: everything in it can be copied."""
        text = f"{self._path} or its WAL was deleted or replaced while it was in use, and nothing more can be stored. "
        try:
            saved = copy_database(self.connection, self._path, "rescued")
        except (sqlite3.Error, OSError) as error:
            return (
                f"{text}What was in it could not be copied ({error}). Put the files back if you can: the relay then "
                "continues by itself. Otherwise restart the daemon (`agent-relay down`, then `agent-relay up`), which starts "
                "with what is left"
            )
        return (
            f"{text}What was stored is saved in {saved}. Put the files back, and the relay continues by itself; or stop the "
            "daemon "
            f"(`agent-relay down`), move {saved} to {self._path}, remove its -wal and -shm, and start it again"
        )

    # --- in doubt -------------------------------------------------------------------------------------------------------

    def _find_out(self, error: Exception, look: Look) -> bool:
        """Whether the transaction that failed is in the file; returns when that is sure."""
        found: bool | None = None
        while found is None:
            try:
                found = self._look(look)
            except (sqlite3.Error, StoreUnusable, OSError) as why:
                self._drop()
                self._wait(
                    f"The disk failed while {self._path} was written ({error}), and it is not yet known what was stored "
                    f"({why}). Nothing is accepted until then; check the disk, and close programs that have the file open. "
                    "The relay retries every second"
                )
        if self.trouble is not None:
            self.trouble = None
            _log.warning("%s can be written again; what was in doubt is %s.", self._path, "stored" if found else "not stored")
        return found

    def _look(self, look: Look) -> bool:
        connection = self._connect()
        connection.execute("BEGIN IMMEDIATE")  # nobody else writes from here on
        found = look(connection)
        if found:
            rewrite_wal(self._path)
        write_meta(connection, seal=read_meta(connection)["seal"] + 1)
        connection.execute("COMMIT")
        return found

    def _drop(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()  # what it had begun goes with it

    def _wait(self, text: str) -> None:
        if self._closing.is_set():
            raise GivenUp
        if self.trouble is None:
            _log.error("%s.", text)
        self.trouble = text
        self._closing.wait(_TRIED_EVERY_S)
