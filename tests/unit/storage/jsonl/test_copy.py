"""Events that were numbered elsewhere, in this host's files: each number once, over crashes and holes."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.events.drafts import encode_drafts
from agent_relay.ports.events import EventStore, NumberedEvents
from agent_relay.storage.jsonl import copy as copies
from agent_relay.storage.jsonl.copy import JsonlEventCopy
from agent_relay.storage.jsonl.store import JsonlEvents
from agent_relay.storage.jsonl.writer import Rotation
from tests.support.event_driver import EventDriver, Post, make_note


class CopyDriver(EventDriver):
    """`take(5, 3, 9)`: the events 5, 6 and 7 come with record 9 of the log."""

    store: JsonlEventCopy

    def take(self, first_seq: int, count: int, position: int, numbering: str = "n") -> None:
        data, ts = encode_drafts([make_note(seq) for seq in range(first_seq, first_seq + count)], first_seq, 0)
        self.store.put(NumberedEvents(numbering, first_seq, count, ts, data, position))

    def settle(self) -> None:
        self.wait_until(lambda: self.store.waiting == 0)
        self.wait_until(lambda: not self.appended or self.appended[-1][0] == self.store.last_seq)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[CopyDriver]:
    def make(post: Post) -> EventStore:
        return JsonlEventCopy(tmp_path / "events.jsonl", post, Rotation(max_bytes=1_500), syncs=False)

    found = CopyDriver(make)
    found.open()
    yield found
    found.store.close()


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_what_comes_is_written_once_and_told(driver: CopyDriver) -> None:
    driver.take(1, 3, 2)
    driver.take(1, 3, 2)
    driver.take(2, 4, 3)  # as far as it is new
    driver.take(6, 0, 4)
    driver.settle()
    assert driver.read_all() == [1, 2, 3, 4, 5]
    assert [seq for seq, _ in driver.appended] == [1, 2, 3, 4, 5]
    driver.store.close()
    assert driver.reopen() == 5
    assert (driver.store.numbering, driver.store.position, driver.store.last_ts) == ("n", 4, make_note(5).at_ms)


def test_a_copy_may_begin_anywhere_and_a_hole_in_it_is_told(driver: CopyDriver) -> None:
    driver.take(500, 2, 9)
    driver.take(600, 2, 12)
    driver.settle()
    assert driver.read_all() == [500, 501, 599, 600, 601]
    gap = json.loads(next(line for seq, line in driver.appended if seq == 599))
    assert (gap["type"], gap["_seq"], gap["oldest"], gap["_ts"]) == ("stream.gap", 599, 600, make_note(600).at_ms)


def test_after_a_crash_it_goes_on_from_the_position_that_was_noted(driver: CopyDriver, tmp_path: Path) -> None:
    driver.take(1, 2, 1)
    driver.settle()
    driver.store.close()
    life = (tmp_path / "events.life").read_bytes()
    driver.reopen()
    driver.take(3, 2, 2)
    driver.settle()
    driver.store.close()
    (tmp_path / "events.life").write_bytes(life)  # as if it had been killed before it noted that
    with open(tmp_path / "events.jsonl", "ab") as file:
        file.write(b'{"type":"item.delta","_seq":5,"_ts":1')  # and in the middle of a line
    assert driver.reopen() == 4
    assert driver.store.position == 1
    for position in (2, 3):
        driver.take(2 * position - 1, 2, position)
    driver.settle()
    assert driver.read_all() == [1, 2, 3, 4, 5, 6]


def test_the_position_is_noted_while_it_runs(driver: CopyDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_NOTED_EVERY_S", 0.0)
    driver.take(1, 2, 7)
    driver.wait_until(lambda: json.loads((tmp_path / "events.life").read_text()).get("position") == 7)


def test_files_that_were_taken_away_are_asked_for_again(driver: CopyDriver, tmp_path: Path) -> None:
    driver.take(1, 3, 5)
    driver.settle()
    driver.store.close()
    (tmp_path / "events.jsonl").unlink()
    driver.reopen()
    assert (driver.store.position, driver.store.last_seq) == (0, 0)
    driver.take(1, 3, 5)
    driver.settle()
    assert driver.read_all() == [1, 2, 3]


def test_events_of_another_numbering_are_moved_away(driver: CopyDriver, tmp_path: Path) -> None:
    for position in range(1, 30):
        driver.take(2 * position - 1, 2, position)
    driver.settle()
    driver.take(1, 2, 1, "another")
    driver.wait_until(lambda: driver.store.numbering == "another" and driver.store.waiting == 0)
    assert [event["_seq"] for event in lines(tmp_path)] == [1, 2]
    (aside,) = tmp_path.glob("events-alone-*")
    assert len(list(aside.iterdir())) > 2  # all files of the other
    driver.store.close()
    assert driver.reopen() == 2
    assert driver.store.numbering == "another"


def test_own_events_may_be_the_beginning_and_what_is_written_alone_later_is_none_of_it(tmp_path: Path) -> None:
    def alone(post: Post) -> EventStore:
        return JsonlEvents(tmp_path / "events.jsonl", post)

    own = EventDriver(alone)
    own.open()
    own.put(make_note(1), make_note(2))
    own.store.close()
    driver = CopyDriver(lambda post: JsonlEventCopy(tmp_path / "events.jsonl", post, syncs=False))
    assert driver.open() == 2
    assert (driver.store.numbering, driver.store.is_whole) == ("", True)
    driver.store.adopt("n")
    driver.take(3, 1, 2)
    driver.settle()
    driver.store.close()
    assert [event["_seq"] for event in lines(tmp_path)] == [1, 2, 3]
    own.reopen()
    own.put(make_note(4))
    own.store.close()
    driver.reopen()
    assert (driver.store.numbering, driver.store.position) == ("", 0)
    driver.store.close()


def test_a_disk_that_takes_nothing_for_a_while_costs_nothing(driver: CopyDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", refuse)
    driver.take(1, 2, 1)
    driver.wait_until(lambda: driver.store.stats().last_error)
    assert driver.store.waiting == 1
    monkeypatch.undo()
    driver.take(3, 2, 2)
    driver.settle()
    assert driver.read_all() == [1, 2, 3, 4]
