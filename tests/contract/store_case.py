"""What every test of a store of messages begins with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from agent_relay.ports.store import (
    MessageRow,
    MessageStore,
    Snapshot,
)
from tests.support.store_driver import (
    Post,
    StoreDriver,
)


class StoreCase:
    """A store of each test's own, and what it holds after a restart."""

    persistent: ClassVar[bool] = True
    folder: Path

    def make_store(self, post: Post) -> MessageStore:
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _keep_folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @pytest.fixture
    def driver(self, _keep_folder: None) -> Iterator[StoreDriver]:
        driver = StoreDriver(self.make_store)
        driver.open()
        yield driver
        driver.store.close()

    def reopen(self, driver: StoreDriver) -> Snapshot:
        """The snapshot after a restart; `driver` goes on with the store that was opened."""
        driver.store.close()
        if self.persistent:
            driver.replace_store()
        return driver.open()

    def reopen_and_list(self, driver: StoreDriver) -> list[MessageRow]:
        """The messages that wait after a restart."""
        self.reopen(driver)
        return [each.message for each in driver.owed(limit=100_000)]
