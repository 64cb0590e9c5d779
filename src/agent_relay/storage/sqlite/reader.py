"""The thread that answers questions from its own read-only connection, so that neither the loop nor the writer waits."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any

from agent_relay.ports.store import StoreError
from agent_relay.storage.posting import Post, post_answer
from agent_relay.storage.sqlite.files import connect_reader, report

Read = Callable[[sqlite3.Connection], Any]

_log = logging.getLogger(__name__)


class Reader:
    def __init__(self, path: Path, post: Post) -> None:
        self._path = path
        self._post = post
        self._queue: SimpleQueue[tuple[Read, Callable[[Any], None]] | None] = SimpleQueue()
        self._connection: sqlite3.Connection | None = None
        self._thread = Thread(target=self._run, name="relay-store-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, read: Read, done: Callable[[Any], None]) -> None:
        self._queue.put((read, done))

    def stop(self) -> None:
        """Returns when everything submitted before is answered."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        self._answer(_look)  # so that it has the file open, whatever becomes of its name
        while (task := self._queue.get()) is not None:
            read, done = task
            post_answer(self._post, partial(done, self._answer(read)))
        self._disconnect()

    def _answer(self, read: Read) -> Any:
        try:
            if self._connection is None:
                self._connection = connect_reader(self._path)
            return read(self._connection)
        except sqlite3.Error as error:
            self._disconnect()
            _log.warning("A read from %s failed: %s", self._path, error)
            return report(self._path, error)
        except Exception as error:  # noqa: BLE001 - an odd question must not end the thread that answers all the others
            self._disconnect()
            _log.exception("A read from %s failed.", self._path)
            return StoreError(f"The query failed ({type(error).__name__}).")

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _look(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT 1 FROM meta LIMIT 1").fetchall()
