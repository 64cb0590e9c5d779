"""Up to which message the events are there: known after every crash, whatever became of the file that said so."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from agent_relay.events.drafts import Draft, Exchange, Lost
from agent_relay.protocol.ulid import COUNTER_LIMIT, encode_counter, encode_number, encode_time
from agent_relay.storage.jsonl.store import JsonlEvents
from agent_relay.storage.jsonl.writer import Rotation
from tests.support.event_driver import START_MS, EventDriver, make_note


def number(place: int) -> int:
    return encode_number(START_MS, place)


def exchange(place: int, sender: str = "Alice", body: str = "word") -> Exchange:
    assert place < COUNTER_LIMIT
    id_ = f"msg_{encode_time(START_MS)}000000000000{encode_counter(place)}"
    return Exchange(0, START_MS, "", sender, "", id_, sender, "Carol", "message", body)


def make_driver(folder: Path, rotation: Rotation | None = None) -> EventDriver:
    return EventDriver(lambda post: JsonlEvents(folder / "events.jsonl", post, rotation))


def after_a_kill(driver: EventDriver, folder: Path) -> int | None:
    """What another daemon finds in the files as they are now."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    driver.store.close()
    other = make_driver(copy)
    other.open()
    found = other.store.last_message
    other.store.close()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "events").mkdir()
    return tmp_path / "events"


def put(folder: Path, *drafts: Draft, rotation: Rotation | None = None) -> EventDriver:
    driver = make_driver(folder, rotation)
    driver.open()
    for draft in drafts:
        driver.put(draft)
    return driver


def test_of_an_empty_place_nobody_knows(folder: Path) -> None:
    driver = put(folder)
    assert driver.store.last_message is None
    assert after_a_kill(driver, folder) is None


def test_the_last_event_of_a_message_says_it(folder: Path) -> None:
    driver = put(folder, exchange(1), exchange(7), make_note(1), make_note(2))
    assert after_a_kill(driver, folder) == number(7)


def test_a_body_that_looks_like_an_event_does_not(folder: Path) -> None:
    body = '{"type":"message.exchanged","_seq":1,"messageId":"msg_01ARZ3NDEKTSV4RRFFQ69G5FAV"}\n'
    driver = put(folder, exchange(7, body=body), make_note(1, text=body))
    assert after_a_kill(driver, folder) == number(7)


def test_it_is_found_behind_much_else(folder: Path) -> None:
    driver = put(folder, exchange(7), *(make_note(place, text="x" * 300_000) for place in range(9)))
    assert after_a_kill(driver, folder) == number(7)


def test_it_is_known_when_the_file_was_put_aside(folder: Path) -> None:
    notes = (make_note(place, text="x" * 500) for place in range(9))
    driver = put(folder, exchange(7), *notes, rotation=Rotation(max_bytes=1_000))
    assert b"message.exchanged" not in (folder / "events.jsonl").read_bytes()
    assert after_a_kill(driver, folder) == number(7)


def test_it_is_found_in_what_an_earlier_version_wrote(folder: Path) -> None:
    notes = (make_note(place, text="x" * 100) for place in range(4))
    driver = put(folder, *notes, exchange(7), make_note(5, text="x" * 900), rotation=Rotation(max_bytes=1_500))
    driver.store.close()
    assert len(list(folder.glob("events-*.jsonl"))) == 1
    mark = json.loads((folder / "events.life").read_text())
    (folder / "events.life").write_text(json.dumps({"boot": mark["boot"], "closed": True}))
    driver.reopen()
    assert driver.store.last_message == number(7)
    driver.store.close()


def test_it_is_known_when_its_sender_was_forgotten(folder: Path) -> None:
    driver = put(folder, exchange(6), exchange(7, "Bob"))
    answers: list[object] = []
    driver.store.erase("Bob", answers.append)
    driver.wait_until(lambda: answers)
    assert after_a_kill(driver, folder) == number(7)


def test_it_is_known_when_everything_was_too_old(folder: Path) -> None:
    driver = put(folder, exchange(6), exchange(7), make_note(1))
    driver.store.prune(START_MS + 1_000_000)
    driver.wait_until(lambda: b"Alice" not in (folder / "events.jsonl").read_bytes())
    assert after_a_kill(driver, folder) == number(7)


def test_it_is_known_after_a_farewell(folder: Path) -> None:
    driver = put(folder, exchange(7), make_note(1))
    driver.store.close()
    (folder / "events.jsonl").unlink()
    driver.reopen()
    assert driver.store.last_message == number(7)
    driver.store.close()


def test_what_a_gap_stands_for_is_noted_when_the_gap_is_written(folder: Path) -> None:
    driver = put(folder, exchange(7))
    driver.store.append([Lost(START_MS, reason="killed")])
    driver.store.cover(number(99))
    driver.wait_until(lambda: json.loads((folder / "events.life").read_text()).get("message") == number(99))
    assert len(driver.appended) == 2
    assert after_a_kill(driver, folder) == number(99)
