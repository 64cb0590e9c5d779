"""Stores on the PostgreSQL server of the tests, each in a schema of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agent_relay.storage.postgres.store import PostgresStore
from agent_relay.storage.postgres.url import DatabaseUrl, read_url
from tests.support.postgres_server import fresh_schema, server
from tests.support.store_driver import StoreDriver


def fresh_url() -> DatabaseUrl:
    return read_url(server().url(fresh_schema()), "unused")


@contextmanager
def opened(url: DatabaseUrl) -> Iterator[StoreDriver]:
    driver = StoreDriver(lambda post: PostgresStore(url, post))
    driver.open()
    try:
        yield driver
    finally:
        driver.store.close()
