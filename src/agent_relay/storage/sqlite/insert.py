"""Messages into SQLite: the hot path, for the writer.

A plain message (short, no thread, nobody skipped) goes in with up to 511 others in one statement. Half of what that takes is
handing the values to SQLite one by one, and the messages of a batch are much alike: stored in the same moment, of one kind,
often from one agent to another. So a column that is the same in all rows is given once, as one of the statement's first
parameters, and named by every row. The rows are turned into columns to see that, which also saves going over them in Python.
Measured for 200 messages from one agent to another, in instructions a message: 22,000 with every value in every row, 16,500 so.

Python's sqlite3 looks for an adapter for every `None` and every `bytes` it is given, which costs more than storing them; a
bytearray and the left-out column do not. Every statement lets go of the interpreter lock and has to get it back from a busy
loop, so few are better than many. Of large ones there are a few sizes, because each has to be prepared once; what is left goes
into one of exactly its size. A prepared statement keeps what it was last given, so long messages are not put into these.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import astuple

from agent_relay.ports.store import MessageRow

_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines

_MOMENT = ("topic", "kind", "ts", "expires_at", "priority", "queued")
_PAIR = ("sender", "target")
_OWN = ("number", "id", "client_id", "recipients", "tail")
_COLUMNS = (*_MOMENT, *_PAIR, *_OWN)  # what may be shared comes first

_INSERT_FULL = f"INSERT INTO messages ({', '.join(_COLUMNS)}, thread, skipped) VALUES (?{',?' * (len(_COLUMNS) + 1)})"  # noqa: S608

_LARGE = (512, 256, 128, 64)  # rows a statement; 512 are at most 6,656 parameters, and SQLite has allowed 32,766 since 3.32
_FEW = 10  # rows: to find out what fewer have in common takes longer than it saves
_SHORT_BYTES = 2_048

_FIELDS = MessageRow.__struct_fields__
_PARTS = {name: slice(place, None, len(_FIELDS)) for place, name in enumerate(_FIELDS)}  # of the fields of all rows

Statement = tuple[str, list[Any]]  # with its parameters


class _Values(NamedTuple):
    """Plain messages as parameters."""

    shared: list[Any]  # the first columns, as they are in every row
    own: list[Any]  # the others, row by row

    def insert(self, start: int, rows: int) -> Statement:
        shared, own = self
        width = len(_COLUMNS) - len(shared)
        return _insert_of(rows, len(shared)), shared + own[start * width : (start + rows) * width]


def write_messages(connection: sqlite3.Connection, rows: list[MessageRow]) -> None:
    values = _lay_out(rows)
    if values is None:
        connection.executemany(_INSERT_FULL, (_full_values(row) for row in rows if not _is_plain(row)))
        rows = [row for row in rows if _is_plain(row)]
        values = _lay_out(rows)
        assert values is not None
    for start, size in _divide(len(rows)):
        connection.execute(*values.insert(start, size))


def write_alone(rows: list[MessageRow]) -> Statement | None:
    """The one statement that stores all of these and so needs no transaction around it; None: it takes several."""
    if len(rows) >= _LARGE[-1] and len(rows) not in _LARGE:
        return None
    values = _lay_out(rows)
    return None if values is None else values.insert(0, len(rows))


def _divide(count: int) -> Iterator[tuple[int, int]]:
    """The place where each statement's rows begin, and how many they are."""
    start = 0
    for size in _LARGE:
        while count - start >= size:
            yield start, size
            start += size
    if start < count:
        yield start, count - start


def _lay_out(rows: list[MessageRow]) -> _Values | None:
    """None: not all of them are plain."""
    if len(rows) >= _FEW:
        return _lay_out_many(rows)
    values: list[Any] = []
    for row in rows:
        if row.thread is not None or row.skipped or len(row.tail) > _SHORT_BYTES:  # as `_is_plain`, without a call
            return None
        values += _plain_values(row)
    return _Values([], values)


def _lay_out_many(rows: list[MessageRow]) -> _Values | None:
    fields: list[Any] = []
    for row in rows:
        fields += astuple(row)
    columns = {name: fields[part] for name, part in _PARTS.items()}
    if not _are_plain(columns, len(rows)):
        return None
    columns["recipients"] = _encode_lines(columns["recipients"]).decode().split("\n")[:-1]
    columns["tail"] = list(map(bytearray, columns["tail"]))
    shared = _count_shared(columns, len(rows))
    width = len(_COLUMNS) - shared
    own: list[Any] = [None] * (width * len(rows))
    for place, name in enumerate(_COLUMNS[shared:]):
        own[place::width] = columns[name]
    return _Values([columns[name][0] for name in _COLUMNS[:shared]], own)


def _are_plain(columns: dict[str, list[Any]], rows: int) -> bool:
    """A long one among short ones may pass: together they are no more to keep than what is allowed them."""
    return (
        columns["thread"].count(None) == rows
        and not any(columns["skipped"])
        and sum(map(len, columns["tail"])) <= _SHORT_BYTES * rows
    )


def _count_shared(columns: dict[str, list[Any]], rows: int) -> int:
    """The number of first columns that are the same in all rows. Three answers, because a statement is prepared for each."""
    if any(columns[name].count(columns[name][0]) < rows for name in _MOMENT):
        return 0
    if any(columns[name].count(columns[name][0]) < rows for name in _PAIR):
        return len(_MOMENT)
    return len(_MOMENT) + len(_PAIR)


@cache
def _insert_of(rows: int, shared: int) -> str:
    parameters = [f"?{place}" for place in range(1, shared + 1)] + ["?"] * (len(_COLUMNS) - shared)
    row = f"({','.join(parameters)})"
    return f"INSERT INTO messages ({', '.join(_COLUMNS)}) VALUES {','.join([row] * rows)}"  # noqa: S608 - constants of this file


def _is_plain(row: MessageRow) -> bool:
    return row.thread is None and not row.skipped and len(row.tail) <= _SHORT_BYTES


def _plain_values(row: MessageRow) -> tuple[Any, ...]:
    return (
        row.topic, row.kind, row.ts, row.expires_at, row.priority, row.queued, row.sender, row.target, row.number, row.id,
        row.client_id, _encode(row.recipients).decode(), bytearray(row.tail),
    )  # fmt: skip


def _full_values(row: MessageRow) -> tuple[Any, ...]:
    return (*_plain_values(row), row.thread, _encode(row.skipped).decode() if row.skipped else None)
