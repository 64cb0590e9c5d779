from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_relay.ports.store import Batch, MessageQuery, Page, StoreError
from agent_relay.storage.sqlite import files, writer
from agent_relay.storage.sqlite.index import CHUNK_ROWS
from tests.support.store_driver import make_agent, make_message, number_at

from .stores import SqliteDriver, opened, wait_for


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "messages.sqlite"


def watch_statements(driver: SqliteDriver) -> list[str]:
    """From now on: the first word of everything the writer executes, as it happens."""
    writer = driver.sqlite._writer
    assert writer is not None
    assert writer._commits.connection is not None
    words: list[str] = []
    writer._commits.connection.set_trace_callback(lambda sql: words.append(sql.split()[0]))
    return words


def count_transactions(words: list[str]) -> int:
    inside, count = False, 0
    for word in words:
        inside = word == "BEGIN" or (inside and word != "COMMIT")
        count += not inside  # a commit, or a statement by itself
    return count


def test_batches_that_wait_together_are_one_transaction(path: Path) -> None:
    with opened(path) as driver:
        words = watch_statements(driver)
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        outcomes: list[StoreError | None] = []
        for place in range(1, 51):
            driver.store.write(Batch(messages=[make_message(place)]), outcomes.append)
        blocker.execute("COMMIT")
        blocker.close()
        driver.wait_until(lambda: len(outcomes) == 50)
        assert outcomes == [None] * 50
        assert 1 <= count_transactions(words) <= 2  # the first may have been taken before the others came


@pytest.mark.parametrize(
    ("count", "statements"), [(1, 1), (7, 1), (63, 1), (64, 1), (65, 5), (300, 5), (511, 7), (512, 1), (1_100, 7)]
)
def test_any_number_of_messages_takes_few_statements(path: Path, count: int, statements: int) -> None:
    """Each costs a turn of waiting for the interpreter lock. One alone needs no BEGIN and no COMMIT."""
    with opened(path) as driver:
        words = watch_statements(driver)
        rows = [make_message(place) for place in range(1, count + 1)]
        driver.put(*rows)
        assert len(words) == statements, words
        assert driver.find(limit=2_000) == list(range(count, 0, -1))


def test_long_messages_are_not_kept_in_memory_with_the_statement_that_stored_them(path: Path) -> None:
    with opened(path) as driver:
        words = watch_statements(driver)
        driver.put(*(make_message(place, tail=b'"payload":{"body":"' + b"x" * 3_000 + b'"}}') for place in range(1, 4)))
        assert words == ["BEGIN", "INSERT", "INSERT", "INSERT", "UPDATE", "COMMIT"]
        assert driver.find() == [3, 2, 1]


def test_when_the_file_is_locked_all_that_wait_are_refused_together(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other would each wait for the lock, and the last would be told after minutes."""
    monkeypatch.setattr(files, "_BUSY_MS", 300)
    with opened(path) as driver:
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        words = watch_statements(driver)
        outcomes: list[StoreError | None] = []
        for place in range(1, 21):
            driver.store.write(Batch(messages=[make_message(place)]), outcomes.append)
        driver.wait_until(lambda: len(outcomes) == 20)
        assert all(outcome is not None and "locked" in str(outcome) for outcome in outcomes)
        assert len(words) <= 2
        blocker.execute("COMMIT")
        blocker.close()
        driver.put(make_message(21))
        assert driver.find() == [21]


def test_ordinary_messages_are_in_no_index_until_there_is_time(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_IDLE_SECONDS", 600)
    with opened(path) as driver:
        driver.put(*(make_message(place) for place in range(1, 101)))
        assert driver.query("SELECT count(*) FROM message_agents") == [(0,)]
        assert driver.query("SELECT count(*) FROM message_words WHERE message_words MATCH 'hello'") == [(0,)]
        for column, part in (
            ("topic", "topic > ''"),
            ("thread", "thread IS NOT NULL"),
            ("target", "target > '' AND target < '0'"),
        ):
            assert driver.query(f"SELECT count(*) FROM messages INDEXED BY messages_by_{column} WHERE {part}") == [(0,)]
        assert driver.find(with_agent="bob", limit=2) == [100, 99]  # and yet they are found


def test_in_silence_the_index_fills_by_itself(path: Path) -> None:
    with opened(path) as driver:
        count = 2 * CHUNK_ROWS + 7
        driver.put(*(make_message(place) for place in range(1, count + 1)))
        wait_for(lambda: driver.query("SELECT value FROM meta WHERE key = 'indexed_to'") == [(number_at(count),)])
        assert driver.query("SELECT count(*) FROM message_agents") == [(2 * count,)]
        assert driver.query("SELECT count(*) FROM message_words WHERE message_words MATCH 'hello'") == [(count,)]
        assert driver.find(with_agent="bob", limit=2) == [count, count - 1]


def test_writes_go_on_while_a_search_waits_for_the_index(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_IDLE_SECONDS", 600)
    with opened(path) as driver:
        count = 8 * CHUNK_ROWS
        driver.put(*(make_message(place) for place in range(1, count + 1)))
        order: list[str] = []
        driver.ask(lambda done: start_search_and_write(driver, count, order, done))
        assert order == ["written", "found"]


def start_search_and_write(driver: SqliteDriver, count: int, order: list[str], done: Callable[[object], None]) -> None:
    def found(page: Page | StoreError) -> None:
        order.append("found")
        done(page)

    driver.store.find(MessageQuery(search="hello", limit=1), found)
    driver.store.write(Batch(messages=[make_message(count + 1)]), lambda _: order.append("written"))


def test_a_loop_that_takes_no_answers_does_not_stop_the_writer(path: Path) -> None:
    def refuse(callback: object) -> None:
        raise RuntimeError("Event loop is closed")

    with opened(path, post_instead=refuse) as driver:
        driver.store.write(Batch(messages=[make_message(1)]), print)
        driver.store.write(Batch(messages=[make_message(2)]), print)
        wait_for(lambda: driver.query("SELECT count(*) FROM messages") == [(2,)])


@pytest.mark.parametrize(
    "row",
    [make_message(2, number=2**70), make_message(2, target="\ud800"), make_message(2, kind=None), make_message(2, tail=None)],
    ids=["number", "surrogate", "null", "tail"],
)
@pytest.mark.parametrize("has_more", [True, False])
def test_rows_that_cannot_be_stored_fail_their_own_batch(path: Path, row: object, has_more: bool) -> None:
    with opened(path) as driver:
        outcomes: list[StoreError | None] = []
        for messages in ([make_message(1)], [row], [make_message(3)]):
            agents = [make_agent(f"A{len(outcomes)}")] if has_more else []
            driver.store.write(Batch(messages=messages, agents=agents), outcomes.append)  # type: ignore[arg-type]
        driver.wait_until(lambda: len(outcomes) == 3)
        assert [outcome is None for outcome in outcomes] == [True, False, True]
        assert driver.find() == [3, 1]


def test_the_count_is_kept_without_counting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LISTED_EVERY", 10)
    with opened(path) as driver:
        for place in range(1, 26):
            driver.put(make_message(place))
        saved = dict(driver.query("SELECT key, value FROM meta"))
        assert (saved["counted"], saved["counted_to"]) == (20, number_at(20))
        assert driver.store.stats().messages == 25
    with opened(path) as driver:
        assert driver.store.stats().messages == 25
        assert dict(driver.query("SELECT key, value FROM meta"))["counted"] == 25


def test_a_lagging_clock_is_noted_once(path: Path) -> None:
    with opened(path) as driver:
        driver.put(make_message(1))
        assert dict(driver.query("SELECT key, value FROM meta"))["lag_ms"] == 0
        driver.put(make_message(2, ts=make_message(2).ts - 5_000))
        driver.put(make_message(3, ts=make_message(3).ts - 2_000))
        assert dict(driver.query("SELECT key, value FROM meta"))["lag_ms"] == 5_000


def test_the_wal_stays_bounded(path: Path) -> None:
    with opened(path) as driver:
        for start in range(0, 40_000, 500):
            driver.put(*(make_message(place, "x" * 400) for place in range(start + 1, start + 501)))
        stats = driver.store.stats()
        assert stats.size_bytes > 16_000_000
        assert stats.wal_bytes < 8_000_000
