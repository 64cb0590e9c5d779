"""Brings a database file to the schema of this version: the numbered files in `migrations/`, each in one transaction."""

from __future__ import annotations

import sqlite3
from functools import cache
from pathlib import Path

APPLICATION_ID = 0x41524C59  # "ARLY": what tells our files from other people's


@cache
def migrations() -> tuple[tuple[int, str], ...]:
    """(version, SQL), ascending. The version is the number the file's name begins with."""
    files = sorted(Path(__file__).with_name("migrations").glob("[0-9]*.sql"))
    return tuple((int(file.name.partition("_")[0]), file.read_text("utf-8")) for file in files)


def newest_version() -> int:
    return migrations()[-1][0]


def version_of(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def apply_migrations(connection: sqlite3.Connection) -> None:
    """A crash between two statements leaves the version before, whole: SQLite keeps both pragmas in the transaction."""
    present = version_of(connection)
    for version, sql in migrations():
        if version <= present:
            continue
        marks = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {version};"
        try:
            connection.executescript(f"BEGIN IMMEDIATE;\n{sql}\n{marks}\nCOMMIT;")
        except sqlite3.Error:
            if connection.in_transaction:
                connection.rollback()
            raise
