"""A database of an earlier schema, opened by this version: what waited waits, and the ids that were used are known.

The whole upgrade, with a daemon, kills and full disks, is in the integration tests.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_relay.ports.store import AgentRow, StreamRow
from agent_relay.storage.sqlite import migrate, sent
from agent_relay.storage.sqlite.insert import write_messages
from agent_relay.storage.sqlite.migrate import apply_migrations
from agent_relay.storage.sqlite.rows import read_meta
from tests.data.databases import read_said, unpack
from tests.support.store_driver import make_agent, make_message, number_at

from .stores import opened

ALL = pytest.mark.parametrize("which", ["v1-closed", "v1-killed", "v2-closed", "v2-killed"])


def body_of(tail: bytes) -> str:
    return str(msgspec.json.decode(b"{" + tail)["payload"]["body"])


@ALL
def test_what_was_owed_waits_for_each_of_its_recipients(which: str, tmp_path: Path) -> None:
    said = read_said(which)
    with opened(unpack(which, tmp_path / "state")) as driver:
        for recipient, owed in said["owed"].items():
            found = driver.owed(recipient=recipient)
            assert [[each.message.sender, each.message.topic, each.seq, body_of(each.message.tail)] for each in found] == owed
        assert len(driver.owed(limit=10_000)) == sum(map(len, said["owed"].values()))


@ALL
def test_what_waits_is_counted(which: str, tmp_path: Path) -> None:
    said = read_said(which)
    with opened(unpack(which, tmp_path / "state")) as driver:
        driver.store.close()
        driver.replace_store()
        snapshot = driver.open()
        assert {row.recipient: row.count for row in snapshot.waiting} == {name: len(owed) for name, owed in said["owed"].items()}
        assert snapshot.last_number == said["snapshot"]["last_number"]
        before = {(row["topic"], row["sender"], row["recipient"]): row for row in said["snapshot"]["streams"]}
        for row in snapshot.streams:
            was = before.pop((row.topic, row.sender, row.recipient), None)
            assert was is None or (row.done_seq, row.wire_seq) == (was["done_seq"], was["wire_seq"])
            assert was is None or row.last_seq >= was["last_seq"]
        assert before == {}


@ALL
def test_the_ids_that_were_used_are_known(which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent, "LISTED_EVERY", 4)
    said = read_said(which)
    with opened(unpack(which, tmp_path / "state")) as driver:
        assert driver.query("SELECT count(*) FROM sent_ids") > [(0,)]
        for sender, stored in said["stored"].items():
            seen = driver.seen(sender)
            assert list(seen) == [client_id for client_id, _, _ in stored]
            assert [row.id for row in driver.fetch(*seen.values())] == [message_id for _, message_id, _ in stored]


def make_first(connection: sqlite3.Connection, **rows: list[Any]) -> None:
    """A database of the first schema, with nothing but these."""
    sql = dict(migrate.migrations())[1]
    connection.executescript(f"{sql} PRAGMA application_id = {migrate.APPLICATION_ID}; PRAGMA user_version = 1;")
    write_messages(connection, rows["messages"])
    agents: list[AgentRow] = rows["agents"]
    connection.executemany("INSERT INTO agents VALUES (?,?,?,?,?,?,?,?,?,?)", map(msgspec.structs.astuple, agents))
    streams: list[StreamRow] = rows["streams"]
    for row in streams:
        above = msgspec.json.encode(row.done_above).decode() if row.done_above else ""
        connection.execute("INSERT INTO streams VALUES (?,?,?,?,?,?,?,?)", (*msgspec.structs.astuple(row)[:7], above))
    connection.executemany("INSERT INTO backlog VALUES (?)", [(number,) for number in rows["backlog"]])


def test_each_row_of_the_old_backlog_is_divided_among_those_who_had_not_done_with_it() -> None:
    to_all = (("Bob", 5), ("Carol", 5), ("Dave", 5), ("Gone", 5))
    messages = [
        make_message(1, recipients=to_all),
        make_message(2, recipients=(("bob", 6), ("Carol", 6), ("Dave", 6))),
        make_message(3, recipients=to_all, sender="Nobody"),
        make_message(4, recipients=(("Bob", 5),), topic="code"),
        make_message(5, recipients=(("Bob", 7),)),  # settled: not in the backlog
    ]
    streams = [
        StreamRow("", "alice", "Bob", 7, 7, 7, 4, (5, 7)),
        StreamRow("", "Alice", "carol", 6, 6, 6, 5, ()),
    ]
    agents = [make_agent(name) for name in ("Alice", "Bob", "Carol", "Dave")]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        numbers = [number_at(place) for place in (1, 2, 3, 4, 9)]
        make_first(connection, messages=messages, agents=agents, streams=streams, backlog=numbers)
        apply_migrations(connection)
        rows = connection.execute(
            "SELECT number, recipient, seq, expires_at, size FROM backlog ORDER BY number, recipient"
        ).fetchall()
        expected = [(1, "Dave", 5), (2, "bob", 6), (2, "Carol", 6), (2, "Dave", 6), (4, "Bob", 5)]
        ends = {row.number: (row.expires_at, len(row.tail)) for row in messages}
        assert rows == [(number_at(place), name, seq, *ends[number_at(place)]) for place, name, seq in expected]
        assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name LIKE '%before%'").fetchone() == (0,)
        assert read_meta(connection)["listed_to"] == 0
