"""Rows of the port into SQLite and back. Called by the writer inside its transaction, and by everything that reads.

How messages are stored is in `insert`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from agent_relay.ports.store import (
    AgentRow,
    Batch,
    DeadLetterRow,
    MemberRow,
    MessageRow,
    SpentToken,
    StreamRow,
    SubscriptionRow,
)

_encode = msgspec.json.Encoder().encode
_decode_recipients = msgspec.json.Decoder(tuple[tuple[str, int], ...]).decode
_decode_names = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_numbers = msgspec.json.Decoder(tuple[int, ...]).decode

MESSAGE_COLUMNS = ", ".join(f"m.{name}" for name in MessageRow.__struct_fields__)


def write_rest(connection: sqlite3.Connection, batch: Batch) -> None:
    """Everything of a batch but its messages and the backlog. Who is forgotten goes first: the same name may register in the
    same turn."""
    if batch.forgotten:
        _forget(connection, batch.forgotten)
    if batch.agents:
        connection.executemany("INSERT OR REPLACE INTO agents VALUES (?,?,?,?,?,?,?,?,?,?)", map(astuple, batch.agents))
    if batch.spent_tokens:
        connection.executemany("INSERT OR REPLACE INTO spent_tokens VALUES (?,?,?)", map(astuple, batch.spent_tokens))
    if batch.subscriptions:
        _write_pairs(connection, "subscriptions", "agent", "pattern", batch.subscriptions)
    if batch.members:
        _write_pairs(connection, "members", "channel", "agent", batch.members)
    if batch.streams:
        write_streams(connection, batch.streams)
    if batch.trail:
        connection.executemany("INSERT INTO trail VALUES (NULL,?,?,?,?,?,?,?,?)", map(astuple, batch.trail))
    if batch.dead_letters:
        _write_dead_letters(connection, batch.dead_letters)
    if batch.documents:
        _write_documents(connection, batch.documents)


def write_streams(connection: sqlite3.Connection, rows: list[StreamRow]) -> None:
    connection.executemany(
        "INSERT INTO streams VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET last_seq = excluded.last_seq, "
        "wire_seq = excluded.wire_seq, heard_seq = excluded.heard_seq, done_seq = excluded.done_seq, "
        "done_above = excluded.done_above",
        map(_stream_values, rows),
    )


def _forget(connection: sqlite3.Connection, names: list[str]) -> None:
    for statement in (
        "DELETE FROM agents WHERE name = ?1",
        "DELETE FROM streams WHERE recipient = ?1 OR sender = ?1",
        "DELETE FROM subscriptions WHERE agent = ?1",
        "DELETE FROM members WHERE agent = ?1",
        "DELETE FROM spent_tokens WHERE agent = ?1",
        "DELETE FROM backlog WHERE recipient = ?1",
    ):
        connection.executemany(statement, ((name,) for name in names if name))


def _write_pairs(
    connection: sqlite3.Connection, table: str, first: str, second: str, rows: Iterable[SubscriptionRow | MemberRow]
) -> None:
    for row in rows:
        *pair, active = astuple(row)
        if active:
            connection.execute(f"INSERT OR REPLACE INTO {table} VALUES (?,?)", pair)  # noqa: S608 - names from this file
        else:
            connection.execute(f"DELETE FROM {table} WHERE {first} = ? AND {second} = ?", pair)  # noqa: S608


def _stream_values(row: StreamRow) -> tuple[Any, ...]:
    above = _encode(row.done_above).decode() if row.done_above else ""
    return (row.topic, row.sender, row.recipient, row.last_seq, row.wire_seq, row.heard_seq, row.done_seq, above)


def _write_dead_letters(connection: sqlite3.Connection, rows: list[DeadLetterRow]) -> None:
    for row in rows:
        if row.active:
            values = (row.number, row.recipient, row.at, row.code)
            connection.execute("INSERT OR REPLACE INTO dead_letters VALUES (?,?,?,?)", values)
        else:
            connection.execute("DELETE FROM dead_letters WHERE number = ? AND recipient = ?", (row.number, row.recipient))


def _write_documents(connection: sqlite3.Connection, documents: dict[str, bytes]) -> None:
    kept = [(name, content) for name, content in documents.items() if content]
    connection.executemany("INSERT OR REPLACE INTO documents VALUES (?,?)", kept)
    gone = [(name,) for name, content in documents.items() if not content]
    connection.executemany("DELETE FROM documents WHERE name = ?", gone)


def write_meta(connection: sqlite3.Connection, **values: int) -> None:
    connection.executemany("UPDATE meta SET value = ? WHERE key = ?", ((value, key) for key, value in values.items()))


def write_place(connection: sqlite3.Connection, **values: int) -> None:
    """Of a copy, in the log that it follows. Databases that are no copy do not have these."""
    connection.executemany(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", values.items()
    )


def read_meta(connection: sqlite3.Connection) -> dict[str, int]:
    return dict(connection.execute("SELECT key, value FROM meta"))


def read_message(row: tuple[Any, ...]) -> MessageRow:
    """From a row of MESSAGE_COLUMNS."""
    return MessageRow(*row[:12], read_skipped(row[12]), _decode_recipients(row[13]), row[14])  # type: ignore[call-arg]


def read_messages(cursor: Iterable[tuple[Any, ...]]) -> list[MessageRow]:
    return [read_message(row) for row in cursor]


def read_skipped(text: str | None) -> tuple[str, ...]:
    return _decode_names(text) if text else ()


def read_agents(connection: sqlite3.Connection) -> list[AgentRow]:
    rows = [AgentRow(*row) for row in connection.execute("SELECT * FROM agents ORDER BY registered_at, name")]
    return [replace(row, connected=bool(row.connected)) for row in rows]


def read_streams(connection: sqlite3.Connection) -> list[StreamRow]:
    return [_read_stream(row) for row in connection.execute("SELECT * FROM streams")]


def _read_stream(row: tuple[Any, ...]) -> StreamRow:
    return StreamRow(*row[:7], _decode_numbers(row[7]) if row[7] else ())  # type: ignore[call-arg]


def read_documents(connection: sqlite3.Connection) -> dict[str, bytes]:
    return dict(connection.execute("SELECT name, content FROM documents"))


def read_plain_tables(connection: sqlite3.Connection) -> dict[str, Any]:
    """The tables that are kept whole in memory by the core and need no decoding, and how many dead letters there are."""
    return {
        "spent_tokens": [SpentToken(*row) for row in connection.execute("SELECT * FROM spent_tokens ORDER BY spent_at")],
        "subscriptions": [SubscriptionRow(*row) for row in connection.execute("SELECT * FROM subscriptions")],
        "members": [MemberRow(*row) for row in connection.execute("SELECT * FROM members")],
        "dead_letters": connection.execute("SELECT count(*) FROM dead_letters").fetchone()[0],
    }
