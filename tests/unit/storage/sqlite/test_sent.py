"""The blocks that senders' ids are listed in."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent_relay.ports.store import Batch, MessageRow
from agent_relay.storage.sqlite import sent, writer
from tests.support.store_driver import make_agent, make_message, number_at, time_at

from .stores import SqliteDriver, opened

BLOCK = 10


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sent, "LISTED_EVERY", BLOCK)
    monkeypatch.setattr(writer, "LISTED_EVERY", BLOCK)
    return tmp_path / "messages.sqlite"


def make_all(first: int, last: int) -> list[MessageRow]:
    return [make_message(place, sender="Alice" if place % 2 else "Carol") for place in range(first, last + 1)]


def put_each(driver: SqliteDriver, first: int, last: int) -> None:
    for row in make_all(first, last):
        driver.put(row)


def places_of(driver: SqliteDriver, sender: str = "alice") -> list[list[int]]:
    """The places of the messages in each block of a sender."""
    rows = driver.query(f"SELECT last_number, ids FROM sent_ids WHERE sender = '{sender}' ORDER BY last_number")
    blocks = [(last, json.loads(ids)) for last, ids in rows]
    assert all(block[-1][1] == last for last, block in blocks)
    return [[int(client_id.removeprefix("c-")) for client_id, _ in block] for _, block in blocks]


def listed_to(driver: SqliteDriver) -> int:
    return dict(driver.query("SELECT key, value FROM meta"))["listed_to"]  # type: ignore[no-any-return]


def test_ids_are_listed_a_block_at_a_time(path: Path) -> None:
    with opened(path) as driver:
        put_each(driver, 1, 9)
        driver.write(Batch(agents=[make_agent("Bob")]))
        assert places_of(driver) == []
        put_each(driver, 10, 24)
        assert places_of(driver) == [[1, 3, 5, 7, 9], [11, 13, 15, 17, 19]]
        assert places_of(driver, "carol") == [[2, 4, 6, 8, 10], [12, 14, 16, 18, 20]]
        assert listed_to(driver) == number_at(20)
        assert list(driver.seen("Alice").values()) == [number_at(place) for place in range(1, 25, 2)]


def test_what_was_not_listed_before_a_restart_is_listed_after_it(path: Path) -> None:
    with opened(path) as driver:
        put_each(driver, 1, 16)
    with opened(path) as driver:
        assert list(driver.seen("Alice")) == [f"c-{place}" for place in range(1, 17, 2)]
        put_each(driver, 17, 20)
        assert places_of(driver) == [[1, 3, 5, 7, 9], [11, 13, 15, 17, 19]]


def test_what_was_not_listed_before_a_kill_is_listed_after_it(path: Path, tmp_path: Path) -> None:
    """The files of a store that was not closed: as a kill leaves them."""
    with opened(path) as driver:
        put_each(driver, 1, 14)
        copy = tmp_path / "killed"
        copy.mkdir()
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, copy)
    with opened(copy / path.name) as driver:
        assert list(driver.seen("Alice")) == [f"c-{place}" for place in range(1, 15, 2)]
        driver.put(*make_all(15, 40))
        assert places_of(driver) == [[1, 3, 5, 7, 9], list(range(11, 41, 2))]
        assert listed_to(driver) == number_at(40)


def test_a_file_without_any_list_is_listed_at_the_start(path: Path) -> None:
    with opened(path) as driver:
        put_each(driver, 1, 35)
        driver.write(Batch(checkpoint=number_at(35)))
    with opened(path) as driver:
        writer = driver.sqlite._writer
        assert writer is not None
        connection = writer._commits.connection
        assert connection is not None
        connection.execute("DELETE FROM sent_ids")
        connection.execute("UPDATE meta SET value = 0 WHERE key = 'listed_to'")
    with opened(path) as driver:
        assert listed_to(driver) == number_at(30)
        assert list(driver.seen("Alice")) == [f"c-{place}" for place in range(1, 36, 2)]
        assert list(driver.seen("Alice", since=time_at(14), limit=100)) == [f"c-{place}" for place in range(15, 36, 2)]


def test_a_batch_that_failed_is_not_listed(path: Path) -> None:
    with opened(path) as driver:
        put_each(driver, 1, 8)
        failed = Batch(messages=[make_message(8, client_id="c-100"), *make_all(9, 20)])
        for _ in range(3):
            assert driver.call(driver.store.write, failed) is not None
        assert listed_to(driver) == 0
        put_each(driver, 9, 12)
        assert places_of(driver) == [[1, 3, 5, 7, 9]]
        assert list(driver.seen("carol")) == [f"c-{place}" for place in range(2, 13, 2)]


def test_pruning_takes_blocks_that_are_older(path: Path) -> None:
    with opened(path) as driver:
        put_each(driver, 1, 45)
        driver.write(Batch(checkpoint=number_at(45)))
        driver.prune(time_at(20), limit=1)
        assert places_of(driver)[0] == [11, 13, 15, 17, 19]
        assert places_of(driver, "carol")[0] == [2, 4, 6, 8, 10]  # a few at a time
        driver.prune(time_at(20), limit=100)
        assert places_of(driver)[0] == [21, 23, 25, 27, 29]
        assert places_of(driver, "carol")[0] == [12, 14, 16, 18, 20]  # its last one is not older
        assert list(driver.seen("carol", since=time_at(20))) == [f"c-{place}" for place in range(20, 46, 2)]


def test_the_ids_of_erased_messages_are_in_no_file(path: Path) -> None:
    """Those it sent, listed or not, and those of messages that went to it alone."""
    with opened(path) as driver:
        driver.put(make_message(1, sender="Bob", client_id="zebraquagga"), *make_all(2, 9))
        driver.put(make_message(10, recipients=(("Bob", 1),), client_id="xylophonist", target="Bob"))
        driver.put(*(make_message(place, recipients=(("Carol", place),)) for place in range(11, 15)))
        driver.put(make_message(15, sender="bob", client_id="quetzalcoatl", recipients=(("Carol", 15),)))
        assert "zebraquagga" in str(driver.query("SELECT ids FROM sent_ids"))
        while driver.erase("Bob", limit=3) == 3:
            pass
        for word in (b"zebraquagga", b"xylophonist", b"quetzalcoatl"):
            assert [file.name for file in path.parent.iterdir() if word[2:] in file.read_bytes()] == []
        put_each(driver, 16, 40)
        assert "quetzal" not in str(driver.query("SELECT ids FROM sent_ids"))
        assert driver.seen("Bob") == {}


def test_an_erasure_loses_no_ids_of_others_that_were_not_listed_yet(path: Path) -> None:
    with opened(path) as driver:
        put_each(driver, 1, 6)
        assert driver.erase("Nobody") == 0
        put_each(driver, 7, 25)
        assert list(driver.seen("Alice")) == [f"c-{place}" for place in range(1, 26, 2)]


def test_an_erasure_takes_ids_along_whose_messages_were_pruned(path: Path) -> None:
    with opened(path) as driver:
        put_each(driver, 1, 25)
        driver.write(Batch(checkpoint=number_at(25)))
        driver.prune(time_at(6))
        assert places_of(driver)[0] == [1, 3, 5, 7, 9]  # a block goes with the last of it
        driver.erase("Alice")
        assert places_of(driver) == []
        assert "c-3" not in str(driver.query("SELECT ids FROM sent_ids"))
