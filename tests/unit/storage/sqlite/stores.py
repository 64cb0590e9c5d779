"""A SQLite store with its driver, for the tests of this room."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agent_relay.storage.sqlite.store import SqliteStore
from tests.support.store_driver import DEADLINE_SECONDS, StoreDriver


class SqliteDriver(StoreDriver):
    def __init__(self, path: Path, post_instead: Callable[..., None] | None = None) -> None:
        self.path = path
        super().__init__(lambda post: SqliteStore(path, post_instead or post, durability="normal"))

    @property
    def sqlite(self) -> SqliteStore:
        assert isinstance(self.store, SqliteStore)
        return self.store

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        """As another program would look into the file."""
        connection = sqlite3.connect(self.path)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()


@contextmanager
def opened(path: Path, post_instead: Callable[..., None] | None = None) -> Iterator[SqliteDriver]:
    driver = SqliteDriver(path, post_instead)
    driver.open()
    try:
        yield driver
    finally:
        driver.store.close()


def wait_for(condition: Callable[[], object]) -> None:
    """For what another thread does by itself, where there is no callback to wait for."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.005)
