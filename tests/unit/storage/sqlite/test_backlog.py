"""What waits, in the file: the ways a page is found by, and that a start costs no more for a store that holds more."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.ports.store import Batch, OwedQuery, StreamRow
from agent_relay.storage.sqlite import backlog
from agent_relay.storage.sqlite.backlog import adopt_later, build_page, read_owed, write_backlog
from agent_relay.storage.sqlite.insert import write_messages
from agent_relay.storage.sqlite.migrate import apply_migrations
from agent_relay.storage.sqlite.rows import read_meta, write_rest
from agent_relay.storage.sqlite.snapshot import load_snapshot
from tests.support.store_driver import make_message, make_waiting, number_at, time_at

from .stores import opened


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    apply_migrations(connection)
    yield connection
    connection.close()


def plan_of(connection: sqlite3.Connection, query: OwedQuery) -> str:
    sql, values = build_page(query, backlog._choose_way(connection, query))
    return "; ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))


def fill(connection: sqlite3.Connection, count: int) -> None:
    """Bob has read the older half."""
    rows = [make_message(place, recipients=(("Bob", place),), expires_at=time_at(place + 60)) for place in range(1, count + 1)]
    write_messages(connection, rows)
    waiting = [make_waiting(row) for row in rows[count // 2 :]]
    batch = Batch(streams=[StreamRow("", "Alice", "Bob", count, count, 0, count // 2, ())])
    write_rest(connection, batch)
    write_backlog(connection, Batch(backlog_added=waiting, checkpoint=number_at(count)))


def count_steps(connection: sqlite3.Connection) -> list[int]:
    """From now on: virtual instructions, by tens."""
    steps = [0]

    def count() -> int:
        steps[0] += 1
        return 0

    connection.set_progress_handler(count, 10)
    return steps


@pytest.mark.parametrize(
    ("query", "way"),
    [
        (OwedQuery(recipient="Bob"), "SEARCH b USING PRIMARY KEY (recipient=? AND number>?)"),
        (OwedQuery(recipient="Bob", expired_at=5), "SEARCH b USING PRIMARY KEY (recipient=? AND number>?)"),
        (OwedQuery(sender="Alice"), "SEARCH b USING INDEX backlog_by_number ((number,recipient)>(?,?))"),
        (OwedQuery(), "SEARCH b USING INDEX backlog_by_number ((number,recipient)>(?,?))"),
        (OwedQuery(expired_at=5), "SEARCH b USING INDEX backlog_by_expiry (expires_at<?)"),
    ],
)
def test_each_page_has_its_way(connection: sqlite3.Connection, query: OwedQuery, way: str) -> None:
    plan = plan_of(connection, query)
    assert way in plan
    assert "SEARCH m USING INTEGER PRIMARY KEY (rowid=?)" in plan
    assert "SEARCH t USING INDEX trail_by_stream (recipient=? AND sender=? AND topic=? AND first_seq=? AND last_seq=?)" in plan
    assert ("TEMP B-TREE" in plan) == (query.expired_at is not None and query.recipient is None)  # the few that have expired


def test_many_that_have_expired_are_not_sorted_for_every_page(connection: sqlite3.Connection) -> None:
    fill(connection, 2 * backlog._FEW_EXPIRED + 10)
    plan = plan_of(connection, OwedQuery(expired_at=time_at(99_999)))
    assert "backlog_by_number" in plan
    assert "TEMP B-TREE" not in plan
    steps = count_steps(connection)
    first = read_owed(connection, OwedQuery(expired_at=time_at(99_999), limit=10))
    assert [each.seq for each in first] == list(range(backlog._FEW_EXPIRED + 6, backlog._FEW_EXPIRED + 16))
    assert steps[0] < 10 * backlog._FEW_EXPIRED  # counting them, and then ten


def test_a_start_with_nothing_new_writes_nothing_and_reads_no_message(connection: sqlite3.Connection) -> None:
    fill(connection, 400)
    before = connection.total_changes
    steps = count_steps(connection)
    snapshot = load_snapshot(connection)
    few = steps[0]
    assert [(row.recipient, row.count) for row in snapshot.waiting] == [("Bob", 200)]
    assert connection.total_changes == before
    connection.execute("DELETE FROM backlog WHERE number <= ?", (number_at(390),))
    steps[0] = 0
    load_snapshot(connection)
    assert steps[0] < few / 3  # as much as waits; the 400 messages are not looked at


def test_what_came_since_is_adopted_whole_or_not_at_all(connection: sqlite3.Connection) -> None:
    write_messages(connection, [make_message(place, recipients=(("Bob", place),)) for place in range(1, 11)])
    connection.execute("CREATE TRIGGER full BEFORE INSERT ON streams BEGIN SELECT raise(ABORT, 'no room'); END")
    for _ in range(2):
        with pytest.raises(sqlite3.Error, match="no room"):
            adopt_later(connection, 0, number_at(10))
        assert connection.execute("SELECT count(*) FROM backlog").fetchone() == (0,)
        assert read_meta(connection)["checkpoint"] == 0
        assert not connection.in_transaction
    connection.execute("DROP TRIGGER full")
    adopt_later(connection, 0, number_at(10))
    assert connection.execute("SELECT count(*) FROM backlog").fetchone() == (10,)
    assert read_meta(connection)["checkpoint"] == number_at(10)


def test_many_numbers_done_above_the_cursor_cost_one_look_each(connection: sqlite3.Connection) -> None:
    count = 1_000
    write_messages(connection, [make_message(place, recipients=(("Bob", place),)) for place in range(1, count + 1)])
    above = tuple(range(3, count + 1, 2))
    write_rest(connection, Batch(streams=[StreamRow("", "Alice", "Bob", count, count, count, 1, above)]))
    steps = count_steps(connection)
    adopt_later(connection, 0, number_at(count))
    assert connection.execute("SELECT count(*), min(seq) FROM backlog").fetchone() == (count // 2, 2)
    assert steps[0] < 20 * count  # reading the list anew for each message would be 50 times that


def test_a_body_on_many_pages_is_counted_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "messages.sqlite"
    with opened(path) as driver:
        message = make_message(1, "x" * 500_000)
        driver.put(message)
    with opened(path) as driver:
        assert driver.query("SELECT size FROM backlog") == [(len(message.tail),)]
