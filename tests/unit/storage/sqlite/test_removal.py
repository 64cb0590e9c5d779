from __future__ import annotations

import sqlite3
from pathlib import Path

from agent_relay.ports.store import Batch
from tests.support.store_driver import make_message, time_at

from .stores import SqliteDriver, opened


def fill(driver: SqliteDriver, count: int) -> None:
    messages = [
        make_message(place, f"word{place} " + "filler " * 60, (("Bob", place), ("Carol", place))) for place in range(1, count + 1)
    ]
    driver.write(Batch(messages=messages, checkpoint=messages[-1].number))


def check_words(path: Path) -> None:
    """FTS5 compares its index with the messages, entry for entry; it raises where they differ."""
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO message_words (message_words, rank) VALUES ('integrity-check', 1)")
    connection.close()


def test_the_index_agrees_with_the_messages_after_pruning(tmp_path: Path) -> None:
    path = tmp_path / "messages.sqlite"
    with opened(path) as driver:
        fill(driver, 300)
        assert len(driver.find(search="filler", limit=1_000)) == 300
        assert driver.prune(time_at(200), limit=120) == 120
        assert driver.query("SELECT count(*) FROM message_agents") == [(3 * 180,)]
        assert driver.find(search="word120") == []
        assert driver.find(search="word121") == [121]
    check_words(path)


def test_the_file_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "messages.sqlite"
    with opened(path) as driver:
        fill(driver, 5_000)
        driver.find(search="filler", limit=1)
    full = path.stat().st_size
    with opened(path) as driver:
        while driver.prune(time_at(9_999), limit=500):
            pass
        for _ in range(5):  # each round gives some pages back, also when nothing is left to remove
            driver.prune(time_at(9_999), limit=500)
    assert path.stat().st_size < full / 4
    check_words(path)
