from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from agent_relay.storage.sqlite import migrate


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    yield connection
    connection.close()


def test_migrations_are_numbered_from_one_without_a_gap() -> None:
    assert [version for version, _ in migrate.migrations()] == list(range(1, migrate.newest_version() + 1))


def test_an_empty_file_gets_the_newest_schema_and_our_mark(connection: sqlite3.Connection) -> None:
    migrate.apply_migrations(connection)
    assert migrate.version_of(connection) == migrate.newest_version()
    assert connection.execute("PRAGMA application_id").fetchone()[0] == migrate.APPLICATION_ID
    assert connection.execute("SELECT count(*) FROM messages").fetchone()[0] == 0


def test_applying_twice_changes_nothing(connection: sqlite3.Connection) -> None:
    migrate.apply_migrations(connection)
    connection.execute("UPDATE meta SET value = 7 WHERE key = 'checkpoint'")
    migrate.apply_migrations(connection)
    assert connection.execute("SELECT value FROM meta WHERE key = 'checkpoint'").fetchone()[0] == 7


def test_only_what_is_missing_is_applied(connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [(1, "CREATE TABLE one (x);"), (2, "CREATE TABLE two (x);")]
    monkeypatch.setattr(migrate, "migrations", lambda: steps[:1])
    migrate.apply_migrations(connection)
    monkeypatch.setattr(migrate, "migrations", lambda: steps)
    migrate.apply_migrations(connection)
    assert migrate.version_of(connection) == 2
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("one",), ("two",)]


def test_a_migration_that_fails_leaves_the_version_before_it(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = [(1, "CREATE TABLE one (x);"), (2, "CREATE TABLE two (x); CREATE TABLE one (again);")]
    monkeypatch.setattr(migrate, "migrations", lambda: steps)
    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate.apply_migrations(connection)
    assert migrate.version_of(connection) == 1
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("one",)]
    assert not connection.in_transaction
