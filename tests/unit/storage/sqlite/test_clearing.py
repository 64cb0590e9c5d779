"""What was erased or pruned is gone from the files: not in a page, not in the index of words, not in the WAL."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

from agent_relay.ports.store import Batch
from agent_relay.storage.sqlite import clearing
from tests.support.store_driver import make_message, time_at

from .stores import SqliteDriver, opened
from .test_removal import check_words

SECRETS = (b"zebraquagga", b"xylophonist")
DEADLINE_S = 60.0


def left_in(path: Path) -> dict[str, list[bytes]]:
    """Which of the words stand in which file. Words share their beginnings in the index, so their ends are looked for."""
    files = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    return {name: found for name, data in files.items() if (found := [word for word in SECRETS if word[2:] in data])}


def fill(driver: SqliteDriver) -> None:
    """A thousand messages; two of them are Bob's, one with a body that is longer than a page."""
    messages = [make_message(place, f"word{place} common filler", (("Carol", place),)) for place in range(1, 1_001)]
    messages[499] = make_message(500, "zebraquagga " + "and more " * 4_000, (("Bob", 1),), target="Bob")
    messages[700] = make_message(701, "xylophonist", (("Carol", 701),), sender="Bob", target="Carol")
    for start in range(0, 1_000, 100):
        part = messages[start : start + 100]
        driver.write(Batch(messages=part, checkpoint=part[-1].number))
        driver.find(search="common")  # the index gets a part of its own each time
    assert driver.find(search="zebraquagga") == [500]


def test_nothing_of_an_erased_agent_is_left_in_any_file(tmp_path: Path) -> None:
    path = tmp_path / "messages.sqlite"
    with opened(path) as driver:
        fill(driver)
        assert {word for found in left_in(path).values() for word in found} == set(SECRETS)
        assert driver.erase("Bob") == 2
        assert left_in(path) == {}
        assert driver.find(search="word999") == [999]
    check_words(path)


def test_nothing_of_what_was_pruned_is_left_once_the_files_are_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "messages.sqlite"
    monkeypatch.setattr(clearing, "_CLEARED_EVERY_S", 0.0)
    with opened(path) as driver:
        fill(driver)
        while driver.prune(time_at(900), limit=200):
            pass
        deadline = time.monotonic() + DEADLINE_S
        while left_in(path):
            assert time.monotonic() < deadline, left_in(path)
            time.sleep(0.01)
        assert driver.find(search="common", limit=1) == [1000]
    check_words(path)


def test_what_is_pruned_while_the_files_are_cleared_is_cleared_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "messages.sqlite"
    monkeypatch.setattr(clearing, "_CLEARED_EVERY_S", 0.0)
    merge_index = clearing.merge_index
    with opened(path) as driver:
        fill(driver)
        store, waiting = driver.store, [time_at(900)]

        def prune_before_the_merge_ends(connection: sqlite3.Connection, *, begins: bool) -> bool:
            more = merge_index(connection, begins=begins)
            if more or not waiting:
                return more
            store.prune(waiting.pop(), 1_000, lambda _: None)
            return True

        monkeypatch.setattr(clearing, "merge_index", prune_before_the_merge_ends)
        assert driver.prune(time_at(10), limit=5)
        deadline = time.monotonic() + DEADLINE_S
        while waiting or left_in(path):
            assert time.monotonic() < deadline, left_in(path)
            time.sleep(0.01)
    check_words(path)


def test_writes_go_on_while_the_files_are_cleared(tmp_path: Path) -> None:
    path = tmp_path / "messages.sqlite"
    with opened(path) as driver:
        fill(driver)
        erased: list[object] = []
        driver.store.erase("Bob", 1_000, erased.append)
        for place in range(2_000, 2_050):
            driver.write(Batch(messages=[make_message(place, "common later", (("Carol", place),))]))
        deadline = time.monotonic() + DEADLINE_S
        while not erased:
            assert time.monotonic() < deadline
            driver.run_ready()
            time.sleep(0.01)
        assert erased == [2]
        assert left_in(path) == {}
        assert len(driver.find(search="later", limit=100)) == 50


def test_a_store_that_closes_answers_whoever_waits_for_an_erasure(tmp_path: Path) -> None:
    with opened(tmp_path / "messages.sqlite") as driver:
        fill(driver)
        erased: list[object] = []
        driver.store.erase("Bob", 1_000, erased.append)
        driver.store.close()
        driver.run_ready()
        assert len(erased) == 1
