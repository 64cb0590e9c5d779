"""The schema of this version, brought about by the numbered files in `migrations/`, all in one transaction.

Two daemons that start at once do it one after the other, under a lock of the server; the second finds it done.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from agent_relay.ports.store import StoreUnusable
from agent_relay.storage.postgres.connection import Connection
from agent_relay.storage.postgres.url import DatabaseUrl

_OLDEST_SERVER = 13

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('agent-relay schema ' || $1, 0))"
_IS_THERE = "SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)"
_IS_OURS = "SELECT to_regclass('relay_migrations') IS NOT NULL"
_IS_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1))"
_TABLE = "CREATE TABLE relay_migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """(version, SQL), ascending. The version is the number the file's name begins with."""
    files = sorted(Path(__file__).with_name("migrations").glob("[0-9]*.sql"))
    return tuple((int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)


def newest_version() -> int:
    return migrations()[-1][0]


async def apply_migrations(connection: Connection, url: DatabaseUrl) -> None:
    """Raises StoreUnusable for a schema that is not ours or newer than this program, and the driver's errors."""
    if connection.get_server_version().major < _OLDEST_SERVER:
        raise StoreUnusable(f"{url.location}: the server is older than PostgreSQL {_OLDEST_SERVER}; update it.")
    if await _version_of(connection, url) == newest_version():
        return
    async with connection.transaction():
        await connection.execute(_LOCK, url.schema)
        if not await connection.fetchval(_IS_THERE, url.schema):
            quoted = await connection.fetchval("SELECT quote_ident($1)", url.schema)
            await connection.execute(f"CREATE SCHEMA {quoted}")
        present = await _version_of(connection, url)
        if present == 0:
            if not await connection.fetchval(_IS_EMPTY, url.schema):
                raise StoreUnusable(
                    f"{url.location}: the schema has tables of another program; choose another with ?schema=NAME."
                )
            await connection.execute(_TABLE)
        for version, sql in migrations():
            if version > present:
                await connection.execute(sql)
                await connection.execute("INSERT INTO relay_migrations (version) VALUES ($1)", version)


async def _version_of(connection: Connection, url: DatabaseUrl) -> int:
    if not await connection.fetchval(_IS_OURS):
        return 0
    version: int = await connection.fetchval("SELECT coalesce(max(version), 0) FROM relay_migrations")
    if version > newest_version():
        raise StoreUnusable(
            f"{url.location} was written by a newer version of Agent Relay (schema {version}, this one knows "
            f"{newest_version()}). Update agent-relay."
        )
    return version
