"""The store in a PostgreSQL database. Nothing of it is loaded for a daemon that does not use one."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.daemon.config import Config
from agent_relay.ports.store import MessageStore
from agent_relay.protocol import places


def make_database_store(config: Config, post: Callable[[Callable[[], None]], None]) -> MessageStore:
    """Raises StoreUnusable where the driver is not installed."""
    from agent_relay.storage.postgres.store import PostgresStore  # noqa: PLC0415 - see above
    from agent_relay.storage.postgres.url import read_url  # noqa: PLC0415

    assert config.storage_url is not None
    url = read_url(config.storage_url, places.project_id(config.project_root))
    return PostgresStore(url, post, config.project_root, config.durability)
