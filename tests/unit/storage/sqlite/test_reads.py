"""That each question takes the way through the file it was given an index for. What it answers is the contract suite's."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from agent_relay.ports.store import MessageQuery
from agent_relay.storage.sqlite import reads
from agent_relay.storage.sqlite.insert import write_messages
from agent_relay.storage.sqlite.migrate import apply_migrations
from agent_relay.storage.sqlite.rows import write_meta
from tests.support.store_driver import make_message, number_at


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    apply_migrations(connection)
    yield connection
    connection.close()


def explain(connection: sqlite3.Connection, sql: str, values: Any) -> str:
    return "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))


@pytest.mark.parametrize(
    ("query", "way"),
    [
        (MessageQuery(topic="code"), "messages_by_topic"),
        (MessageQuery(thread="t"), "messages_by_thread"),
        (MessageQuery(target="#dev"), "messages_by_target"),
        (MessageQuery(target="*"), "messages_by_target"),
        (MessageQuery(search="words"), "SCAN w VIRTUAL TABLE"),
        (MessageQuery(with_agent="Bob"), "SEARCH a USING PRIMARY KEY (agent=? AND number<?)"),
        (MessageQuery(sender="Bob", search="x"), "SCAN w VIRTUAL TABLE"),
        (MessageQuery(since=1, until=2), "SEARCH m USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
    ],
)
def test_each_question_has_its_way_and_needs_no_sorting(connection: sqlite3.Connection, query: MessageQuery, way: str) -> None:
    source = reads._choose_sources(query, 0)[-1]
    plan = explain(connection, *reads._build_find(query, source, 0))
    assert way in plan
    assert "TEMP B-TREE" not in plan


def test_replay_stops_where_every_stream_has_begun(connection: sqlite3.Connection) -> None:
    write_messages(connection, [make_message(place, recipients=(("Bob", place),)) for place in range(1, 2_001)])
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.set_progress_handler(count, 1)
    page = reads.replay_messages(connection, "Bob", {("", "Alice"): 1_990})
    assert [row.recipients[0][1] for row in page.messages] == list(range(1_991, 2_001))
    assert steps < 2_000  # virtual instructions; reading all 2,000 rows takes tens of thousands


def test_what_is_not_indexed_yet_follows_without_gap_or_repeat(connection: sqlite3.Connection) -> None:
    write_messages(connection, [make_message(place, recipients=(("Bob", place),)) for place in range(1, 21)])
    connection.executemany(
        "INSERT INTO message_agents VALUES ('Bob', ?)", [(number_at(place),) for place in range(1, 13)]
    )  # two more than the watermark says: a read that began before the index was filled further
    write_meta(connection, indexed_to=number_at(10))
    found = reads.find_messages(connection, MessageQuery(recipient="bob", limit=15))
    assert [row.recipients[0][1] for row in found.messages] == list(range(20, 5, -1))
    assert found.next_before == number_at(6)
    assert len(reads.replay_messages(connection, "BOB", {("", "Alice"): 0}).messages) == 20
