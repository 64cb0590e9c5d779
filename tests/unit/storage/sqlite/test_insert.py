"""Whatever messages have in common or not, each is stored as it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

import pytest
from msgspec.structs import replace

from agent_relay.ports.store import MessageRow
from agent_relay.storage.sqlite.insert import write_alone, write_messages
from agent_relay.storage.sqlite.migrate import apply_migrations
from agent_relay.storage.sqlite.rows import MESSAGE_COLUMNS, read_messages
from tests.support.store_driver import START_MS, make_message

LONG = b'"from":"Alice","payload":{"body":"' + b"x" * 5_000 + b'"}}'


def make_alike(count: int) -> list[MessageRow]:
    """One turn of one agent that writes to another."""
    return [
        make_message(place, f"number {place}", (("Bob", place),), ts=START_MS, expires_at=START_MS + 60_000)
        for place in range(1, count + 1)
    ]


def store(rows: list[MessageRow]) -> list[MessageRow]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        apply_migrations(connection)
        write_messages(connection, rows)
        return read_messages(connection.execute(f"SELECT {MESSAGE_COLUMNS} FROM messages AS m ORDER BY m.number"))


VARIATIONS: dict[str, Any] = {
    "nothing": {},
    "topic": {"topic": "code.review"},
    "kind": {"kind": "status"},
    "ts": {"ts": START_MS + 1},
    "expires_at": {"expires_at": START_MS + 1},
    "priority": {"priority": 9},
    "queued": {"queued": 1},
    "sender": {"sender": "Carol"},
    "target": {"target": "bob"},
    "several recipients": {"target": "*", "recipients": (("Bob", 70), ("Carol", 80))},
    "no recipient": {"recipients": ()},
    "a name with signs": {"recipients": (('Bö"b\n\u2028', 7),)},
    "thread": {"thread": "plan"},
    "skipped": {"skipped": ("Dave", "Eve")},
    "a long body": {"tail": LONG},
    "a body with signs": {"tail": '"payload":{"body":"ä — 🙂\\n"}}'.encode()},
    "a body that is no text": {"tail": b"\xff\x00\n"},
}


@pytest.mark.parametrize("count", [1, 9, 10, 64, 200])
@pytest.mark.parametrize("fields", VARIATIONS.values(), ids=VARIATIONS.keys())
def test_one_that_is_different_is_stored_as_it_is_and_so_are_the_others(count: int, fields: dict[str, Any]) -> None:
    rows = make_alike(count)
    rows[-1] = replace(rows[-1], **fields)
    assert store(rows) == rows
    rows = make_alike(count)
    rows[0] = replace(rows[0], **fields)
    assert store(rows) == rows


def test_nothing_is_stored_of_no_messages() -> None:
    assert store([]) == []


def test_long_ones_alone_are_stored() -> None:
    rows = [replace(row, tail=LONG) for row in make_alike(70)]
    assert write_alone(rows[:64]) is None
    assert store(rows) == rows


@pytest.mark.parametrize(
    ("fields", "values"),
    [({}, 8 + 5 * 64), ({"sender": "Carol"}, 6 + 7 * 64), ({"target": "*"}, 6 + 7 * 64), ({"priority": 1}, 13 * 64)],
)
def test_what_all_have_in_common_is_given_once(fields: dict[str, Any], values: int) -> None:
    rows = make_alike(64)
    rows[40] = replace(rows[40], **fields)
    statement = write_alone(rows)
    assert statement is not None
    assert len(statement[1]) == values


def test_a_number_that_is_taken_fails_all_of_them() -> None:
    rows = make_alike(40)
    with pytest.raises(sqlite3.IntegrityError):
        store([*rows, replace(rows[0], id="msg_another")])
