"""One body of tests over every store of events."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent_relay.events.filter import EventFilter, make_filter
from agent_relay.events.pages import EventQuery
from agent_relay.ports.events import EventStore
from agent_relay.ports.store import StoreError
from agent_relay.storage.event_memory import MemoryEvents
from agent_relay.storage.jsonl import packed, packer
from agent_relay.storage.jsonl.store import JsonlEvents
from agent_relay.storage.jsonl.writer import Rotation
from tests.support.event_driver import START_MS, EventDriver, Post, make_note


def pack_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as a file is put aside, and in blocks of two or three lines."""
    monkeypatch.setattr(packer, "_FIRST_AFTER_S", 0.0)
    monkeypatch.setattr(packer, "RAW_BYTES", 500)
    monkeypatch.setattr(packed, "RAW_BYTES", 500)


Make = Callable[[Post, Path], EventStore]


def _memory(post: Post, _folder: Path) -> EventStore:
    return MemoryEvents(post)


def _jsonl(post: Post, folder: Path) -> EventStore:
    return JsonlEvents(folder / "events.jsonl", post)


def _many_files(post: Post, folder: Path) -> EventStore:
    return JsonlEvents(folder / "events.jsonl", post, Rotation(max_bytes=2_000))


def _packed(post: Post, folder: Path) -> EventStore:
    return _many_files(post, folder)


@pytest.fixture(params=[_memory, _jsonl, _many_files, _packed], ids=["memory", "jsonl", "many files", "packed"])
def driver(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[EventDriver]:
    make: Make = request.param
    if make is _packed:
        pack_at_once(monkeypatch)
    found = EventDriver(lambda post: make(post, tmp_path))
    found.open()
    yield found
    found.store.close()


def fill(driver: EventDriver, count: int, agent: str = "Alice", session_id: str = "ses_1") -> None:
    begun = len(driver.appended)
    for place in range(begun + 1, begun + count + 1):
        driver.put(make_note(place, agent, session_id))


def test_numbers_count_up_by_one_from_one(driver: EventDriver) -> None:
    driver.put(make_note(1), make_note(2))
    driver.put(make_note(3))
    assert [seq for seq, _ in driver.appended] == [1, 2, 3]
    assert [json.loads(line)["_seq"] for _, line in driver.appended] == [1, 2, 3]
    assert driver.store.last_seq == driver.store.stats().last_seq == 3


def test_what_was_told_is_found_as_it_was_told(driver: EventDriver) -> None:
    fill(driver, 25)
    page = driver.read(EventQuery())
    assert [(record.seq, record.line) for record in page.records] == driver.appended
    assert (page.last_seq, page.oldest_seq, page.is_end) == (25, 1, True)


@pytest.mark.parametrize("after", [0, 1, 13, 24, 25, 26, 99])
def test_everything_after_a_number(driver: EventDriver, after: int) -> None:
    fill(driver, 25)
    assert driver.read_all(after_seq=after) == list(range(after + 1, 26))


@pytest.mark.parametrize(("limit", "pages"), [(1, 25), (10, 3), (25, 1), (100, 1)])
def test_pages(driver: EventDriver, limit: int, pages: int) -> None:
    fill(driver, 25)
    after, asked, found = 0, 0, []
    while True:
        page = driver.read(EventQuery(after_seq=after, limit=limit))
        asked, found, after = asked + 1, found + page.records, page.last_seq
        assert len(page.records) <= limit
        if page.is_end:
            break
    assert ([record.seq for record in found], asked) == (list(range(1, 26)), pages)


@pytest.mark.parametrize(("since", "until"), [(None, 12), (5, None), (5, 12), (12, 12), (0, 99), (26, None)])
def test_by_time(driver: EventDriver, since: int | None, until: int | None) -> None:
    fill(driver, 25)
    times = [None if place is None else START_MS + place * 1_000 for place in (since, until)]
    wanted = range(max(1, since or 1), min(26, until if until is not None else 26))
    assert driver.read_all(since_ms=times[0], until_ms=times[1]) == list(wanted)


def test_by_agent_session_and_type(driver: EventDriver) -> None:
    fill(driver, 10, "Alice", "ses_1")
    fill(driver, 10, "Bob", "ses_2")
    assert driver.read_all(EventFilter(agent="bob")) == list(range(11, 21))
    assert driver.read_all(EventFilter(session_id="ses_1")) == list(range(1, 11))
    assert driver.read_all(make_filter(["item.*"])) == list(range(1, 21))
    assert driver.read_all(make_filter(["agent.state"])) == []


def test_times_never_go_back(driver: EventDriver) -> None:
    driver.put(make_note(50))
    driver.put(make_note(10))
    assert [json.loads(line)["_ts"] for _, line in driver.appended] == [START_MS + 50_000] * 2


def test_what_is_old_is_let_go_and_numbers_go_on(driver: EventDriver) -> None:
    fill(driver, 40)
    driver.store.prune(START_MS + 1_000_000)
    driver.wait_until(lambda: True)
    driver.put(make_note(2_000))
    found = driver.read_all()
    assert found[-1] == 41
    assert found == list(range(found[0], 42))
    page = driver.read(EventQuery())
    assert page.oldest_seq == found[0]


def test_what_is_young_stays(driver: EventDriver) -> None:
    fill(driver, 40)
    driver.store.prune(START_MS + 20_000)
    driver.put(make_note(41))
    assert driver.read_all()[-22:] == list(range(20, 42))


def test_an_empty_store_has_nothing(driver: EventDriver) -> None:
    page = driver.read(EventQuery(after_seq=0))
    assert (page.records, page.last_seq, page.is_end) == ([], 0, True)
    assert driver.read(EventQuery(since_ms=1)).records == []


def test_a_closed_one_says_so(driver: EventDriver) -> None:
    driver.store.close()
    driver.store.append([make_note(1)])
    with pytest.raises(StoreError):
        driver.read(EventQuery())
    driver.store.close()


@pytest.mark.parametrize("make", [_jsonl, _many_files], ids=["jsonl", "many files"])
def test_numbers_and_events_outlive_a_restart(make: Make, tmp_path: Path) -> None:
    driver = EventDriver(lambda post: make(post, tmp_path))
    assert driver.open() == 0
    for life in range(4):
        fill(driver, 10)
        driver.store.close()
        assert driver.reopen() == (life + 1) * 10
        assert driver.read_all() == list(range(1, (life + 1) * 10 + 1))
    driver.store.close()


def erase(driver: EventDriver, agent: str) -> object:
    answers: list[int | StoreError] = []
    driver.store.erase(agent, answers.append)
    driver.wait_until(lambda: answers)
    return answers[0]


def test_an_agent_that_is_erased_is_not_found_and_the_others_are(driver: EventDriver) -> None:
    fill(driver, 20, "Alice")
    fill(driver, 20, "Bob")
    fill(driver, 20, "Alice")
    assert len(driver.read_all(make_filter(agent="bob"))) == 20
    assert erase(driver, "BOB") == 20
    assert driver.read_all(make_filter(agent="bob")) == []
    assert driver.read_all() == [*range(1, 21), *range(41, 61)]
    assert driver.read_all(after_seq=30) == list(range(41, 61))
    fill(driver, 5, "Alice")
    assert driver.read_all(after_seq=50) == list(range(51, 66))
    assert erase(driver, "Nobody") == 0


def test_numbers_go_on_after_the_newest_event_was_erased(driver: EventDriver) -> None:
    fill(driver, 10, "Alice")
    fill(driver, 5, "Bob")
    assert erase(driver, "Bob") == 5
    driver.store.close()
    if not isinstance(driver.store, MemoryEvents):
        assert driver.reopen() == 15
    else:
        driver.open()
    fill(driver, 1, "Alice")
    assert driver.appended[-1][0] == 16


def test_a_closed_store_erases_nothing(driver: EventDriver) -> None:
    driver.store.close()
    assert isinstance(erase(driver, "Bob"), StoreError)


def test_nothing_of_an_erased_agent_is_left_in_the_files(tmp_path: Path) -> None:
    driver = EventDriver(lambda post: _many_files(post, tmp_path))
    driver.open()
    fill(driver, 30, "Alice")
    for place in range(3):
        driver.put(make_note(place, "Bob", text="zebraquagga"))
        fill(driver, 20, "Alice")
    assert erase(driver, "Bob") == 3
    assert [file.name for file in tmp_path.iterdir() if b"zebraquagga" in file.read_bytes() or b"Bob" in file.read_bytes()] == []
    driver.store.close()


def test_of_events_that_are_all_too_old_only_the_number_stays(tmp_path: Path) -> None:
    driver = EventDriver(lambda post: _jsonl(post, tmp_path))
    driver.open()
    fill(driver, 30, "Alice")
    driver.store.prune(START_MS + 1_000_000)
    driver.wait_until(lambda: b"Alice" not in (tmp_path / "events.jsonl").read_bytes())
    driver.store.close()
    assert driver.reopen() == 30
    driver.store.close()
