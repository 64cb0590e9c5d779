"""A PostgreSQL database of an earlier release is brought to today's schema, and a backup is restored as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_relay.ports.store import Batch, StoreUnusable
from agent_relay.storage.postgres import schema as schemas
from agent_relay.storage.postgres.schema import migrations, newest_version
from agent_relay.storage.postgres.store import PostgresStore
from agent_relay.storage.postgres.url import DatabaseUrl, read_url
from agent_relay.testing.daemon import DaemonProcess
from tests.data.databases import HERE, read_said
from tests.data.databases.postgres import restore
from tests.support.postgres_server import fresh_schema, server
from tests.support.postgres_stores import fresh_url, opened
from tests.support.store_driver import make_message
from tests.support.upgrades import check_goes_on

RELEASES = ["postgres-v1", "postgres-v2"]
LONG = "36500d"
_FUNCTIONS = """
SELECT proname, pg_get_function_identity_arguments(oid), prosrc FROM pg_proc
WHERE pronamespace = '{schema}'::regnamespace ORDER BY 1, 2
"""
_COLUMNS = """
SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default, generation_expression
FROM information_schema.columns WHERE table_schema = '{schema}' AND table_name !~ '_[0-9]+$' ORDER BY 1, 2
"""
_INDEXES = "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = '{schema}' AND tablename !~ '_[0-9]+$' ORDER BY 1, 2"


def restored(which: str) -> DatabaseUrl:
    name = fresh_schema()
    restore(which, server(), name)
    server().psql(f"UPDATE {name}.agents SET uid = {os.geteuid()}")  # names belong to users: those of whoever runs this
    return read_url(server().url(name), "unused")


def version_of(url: DatabaseUrl) -> int:
    ((version,),) = server().psql(f"SELECT max(version) FROM {url.schema}.relay_migrations")
    return int(version)


def describe(url: DatabaseUrl) -> list[list[list[str]]]:
    """Tables, indexes and functions, without the name of the schema."""
    found = [server().psql(query.format(schema=url.schema)) for query in (_COLUMNS, _INDEXES, _FUNCTIONS)]
    return [[[word.replace(url.schema, "") for word in row] for row in rows] for rows in found]


@pytest.mark.parametrize("which", RELEASES)
def test_what_was_owed_is_delivered_and_numbers_go_on(which: str, tmp_path: Path) -> None:
    url = restored(which)
    flags = ("--storage=postgres", f"--storage-url={server().url(url.schema)}")
    with DaemonProcess(*flags, f"--resume-ttl={LONG}", f"--message-retention={LONG}", directory=tmp_path) as daemon:
        check_goes_on(daemon, read_said(which))
    assert version_of(url) == newest_version()


@pytest.mark.parametrize("which", RELEASES)
def test_it_is_the_same_as_a_new_one_then(which: str) -> None:
    old, new = restored(which), fresh_url()
    for url in (old, new):
        with opened(url) as driver:
            driver.write(Batch(messages=[make_message(1)], documents={"budget": b"{}"}))
    assert describe(old) == describe(new)
    assert all(len(part) > 10 for part in describe(new))


@pytest.mark.parametrize("which", RELEASES)
def test_an_upgrade_that_fails_changes_nothing_and_the_next_one_is_whole(which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = restored(which)
    before, version = describe(url), version_of(url)
    broken = (*migrations(), (newest_version() + 1, "SELECT 1 / 0"))
    monkeypatch.setattr(schemas, "migrations", lambda: broken)
    with pytest.raises(StoreUnusable, match="division by zero"):
        PostgresStore(url, lambda callback: None).open()
    assert (describe(url), version_of(url)) == (before, version)
    monkeypatch.undo()
    with opened(url) as driver:
        stored = sum(len(rows) for rows in read_said(which)["stored"].values())
        assert driver.store.stats().messages == stored
    assert version_of(url) == newest_version()


def test_a_backup_is_restored_as_it_was() -> None:
    url = fresh_url()
    with opened(url) as driver:
        driver.write(
            Batch(messages=[make_message(place, f"word{place}") for place in range(1, 50)], documents={"odd": b"\0\xff"})
        )
    dump = server().dump(url.schema)
    server().psql(f"DROP SCHEMA {url.schema} CASCADE")
    server().load(dump)
    with opened(url) as driver:
        assert driver.find(search="word49") == [49]
        driver.put(make_message(50, "word50"))
        assert driver.find(search="word50") == [50]
        assert driver.store.stats().messages == 50


def test_every_migration_but_the_first_has_a_database_it_was_tried_with() -> None:
    assert {f"postgres-v{version - 1}" for version, _ in migrations() if version > 1} <= {
        folder.name for folder in HERE.iterdir()
    }
