"""Crashes, full disks, closed doors and old files: what was seen is kept, what is lost is told, and nothing stops."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_relay.events.drafts import Exchange, weigh
from agent_relay.events.filter import make_filter
from agent_relay.events.pages import EventQuery
from agent_relay.storage.jsonl import shelf as shelf_module
from agent_relay.storage.jsonl import writer as writer_module
from agent_relay.storage.jsonl.store import JsonlEvents, rotation_for
from agent_relay.storage.jsonl.writer import Rotation
from tests.support.event_driver import START_MS, EventDriver, make_note

GAP = {"type": "stream.gap", "_sessionId": "", "_agentName": "", "reason": "damaged"}


def make_driver(folder: Path, **options: Any) -> EventDriver:
    return EventDriver(lambda post: JsonlEvents(folder / "events.jsonl", post, **options))


def put(driver: EventDriver, count: int) -> None:
    begun = len(driver.appended)
    driver.put(*(make_note(place) for place in range(begun + 1, begun + count + 1)))


class Disk:
    """`os.write` of the files of events: takes so many bytes, then fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self.error = errno.ENOSPC
        self._write: Callable[[int, Any], int] = os.write
        monkeypatch.setattr(shelf_module.os, "write", self)

    def __call__(self, descriptor: int, data: Any) -> int:
        if self.room is None or descriptor < 3:
            return self._write(descriptor, data)
        if self.room == 0:
            raise OSError(self.error, os.strerror(self.error))
        written = self._write(descriptor, bytes(data)[: self.room])
        self.room -= written
        return written


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr(writer_module, "_RETRY_S", 0.02)
    return Disk(monkeypatch)


# --- files ------------------------------------------------------------------------------------------------------------------


def test_the_files_are_the_users_alone(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=500))
    driver.open()
    for _ in range(3):
        put(driver, 3)
    driver.store.close()
    assert len(list(tmp_path.iterdir())) >= 4
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_one_object_a_line(tmp_path: Path) -> None:
    driver = make_driver(tmp_path)
    driver.open()
    driver.put(make_note(1, text="two\nlines"), make_note(2))
    driver.store.close()
    lines = (tmp_path / "events.jsonl").read_text().splitlines()
    assert [json.loads(line)["_seq"] for line in lines] == [1, 2]


def test_files_are_put_aside_by_size_and_by_age(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=10_000, max_age_ms=50_000))
    driver.open()
    put(driver, 30)
    put(driver, 30)
    driver.put(make_note(200))
    driver.store.close()
    aside = sorted(path.name for path in tmp_path.glob("events-*.jsonl"))
    assert aside == ["events-0000000000000001.jsonl", "events-0000000000000031.jsonl"]
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 1


def test_old_files_are_removed_and_young_ones_stay(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=3_000))
    driver.open()
    for _ in range(10):
        put(driver, 10)
    driver.store.prune(START_MS + 55_000)
    put(driver, 1)  # written after the files are gone
    found = driver.read_all()
    assert found == list(range(found[0], 102))
    assert 30 < found[0] <= 55
    assert driver.read(EventQuery(after_seq=3)).oldest_seq == found[0]
    driver.store.close()


def test_what_is_removed_between_two_pages_is_told_as_gone(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=3_000))
    driver.open()
    for _ in range(10):
        put(driver, 10)
    page = driver.read(EventQuery(limit=15))
    driver.store.prune(START_MS + 55_000)
    put(driver, 1)
    following = driver.read(EventQuery(after_seq=page.last_seq))
    assert following.oldest_seq == following.records[0].seq > page.last_seq + 1
    driver.store.close()


def test_what_is_removed_while_it_is_read_ends_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=3_000))
    driver.open()
    for _ in range(10):
        put(driver, 10)
    opened = shelf_module.Shelf.open_following

    def late(shelf: Any, first_seq: int) -> Any:
        monkeypatch.setattr(shelf_module.Shelf, "open_following", opened)
        shelf.prune(START_MS + 55_000)
        return opened(shelf, first_seq)

    monkeypatch.setattr(shelf_module.Shelf, "open_following", late)
    page = driver.read(EventQuery())
    assert (page.last_seq, page.is_end) == (len(page.records), False)
    following = driver.read(EventQuery(after_seq=page.last_seq))
    assert following.oldest_seq == following.records[0].seq > page.last_seq + 1
    driver.store.close()


def test_the_last_number_outlives_everything_that_is_removed(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=500))
    driver.open()
    for _ in range(5):
        put(driver, 5)
    driver.store.prune(START_MS * 2)
    driver.store.close()
    assert driver.reopen() == 25
    driver.store.close()


def test_a_seventh_of_the_retention_is_one_file() -> None:
    assert rotation_for(7 * 86_400_000, 2**28) == Rotation(16 * 1024 * 1024, 86_400_000, 2**28)
    assert rotation_for(1, 2**20) == Rotation(2**17, 1, 2**20)


def test_reading_looks_at_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40,000 events, some 8 MB in two files: the last few are found without reading the rest."""
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=4_000_000))
    driver.open()
    for _ in range(40):
        put(driver, 1_000)
    driver.read(EventQuery(after_seq=1, limit=1))  # the index of the first file
    seen: list[int] = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda *where: seen.append(len(found := pread(*where))) or found)
    page = driver.read(EventQuery(after_seq=39_990))
    assert [record.seq for record in page.records] == list(range(39_991, 40_001))
    assert driver.store.stats().size_bytes > 7_000_000
    assert sum(seen) < 400_000
    driver.store.close()


def test_a_rare_type_is_looked_for_in_bounded_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.storage.jsonl.reader._AT_ONCE_BYTES", 100_000)
    driver = make_driver(tmp_path)
    driver.open()
    for _ in range(3):
        put(driver, 1_000)
    page = driver.read(EventQuery(make_filter(["agent.state"])))
    assert (page.records, page.is_end) == ([], False)
    assert 0 < page.last_seq < 3_000
    assert driver.read_all(make_filter(["agent.state"])) == []
    driver.store.close()


def test_a_file_that_is_put_aside_while_it_is_read_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=3_000))
    driver.open()
    put(driver, 5)
    opened = shelf_module.Shelf.open_following

    def busy(shelf: Any, first_seq: int) -> Any:
        monkeypatch.setattr(shelf_module.Shelf, "open_following", opened)
        driver.store.append([make_note(place) for place in range(6, 9)])
        driver.store.append([make_note(place) for place in range(9, 30)])
        while driver.store.last_seq < 29:  # in the reader's thread, while the writer goes on
            pass
        return opened(shelf, first_seq)

    monkeypatch.setattr(shelf_module.Shelf, "open_following", busy)
    page = driver.read(EventQuery())
    assert [record.seq for record in page.records] == list(range(1, 30))
    driver.store.close()


# --- crashes ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("torn", [b'{"type":"item.de', b"{", b"\0" * 4_096, b'{"type":"x"}\n', b"\xff\xfe\n"])
def test_a_torn_last_line_is_cut_off_and_its_number_given_again(tmp_path: Path, torn: bytes) -> None:
    """Nobody has seen it: an event is only told once all of it was written."""
    driver = make_driver(tmp_path)
    driver.open()
    put(driver, 3)
    driver.store.close()
    with (tmp_path / "events.jsonl").open("ab") as file:
        file.write(torn)
    assert driver.reopen() == 3
    put(driver, 2)
    assert driver.read_all() == [1, 2, 3, 4, 5]
    driver.store.close()
    lines = (tmp_path / "events.jsonl").read_bytes().splitlines()
    assert [json.loads(line)["_seq"] for line in lines] == [1, 2, 3, 4, 5]


def test_a_damaged_line_in_the_middle_is_a_gap(tmp_path: Path) -> None:
    driver = make_driver(tmp_path)
    driver.open()
    put(driver, 5)
    driver.store.close()
    lines = (tmp_path / "events.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "events.jsonl").write_bytes(b"".join([*lines[:2], b"#" * 50 + b"\n", *lines[3:]]))
    assert driver.reopen() == 5
    records = driver.read(EventQuery()).records
    assert [record.seq for record in records] == driver.read_all(page=1) == [1, 2, 3, 4, 5]
    assert json.loads(records[2].line) == GAP | {"_seq": 3, "_ts": records[3].ts, "oldest": 4}
    driver.store.close()


def test_after_a_power_cut_numbers_are_passed_over_and_a_gap_says_so(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, boot_id="first")
    driver.open()
    put(driver, 3)
    driver.store.close()
    mark = json.loads((tmp_path / "events.life").read_text())
    (tmp_path / "events.life").write_text(json.dumps(mark | {"closed": False}))
    again = make_driver(tmp_path, boot_id="second")
    first = again.open()
    assert first > 1_000
    again.put(make_note(9))
    again.wait_until(lambda: len(again.appended) == 2)
    assert [json.loads(line)["type"] for _, line in again.appended] == ["stream.gap", "item.delta"]
    assert [seq for seq, _ in again.appended] == [first + 1, first + 2]
    assert again.read_all() == [1, 2, 3, first + 1, first + 2]
    again.store.close()


def test_a_killed_daemon_on_a_running_machine_passes_nothing_over(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, boot_id="same")
    driver.open()
    put(driver, 3)
    other = make_driver(tmp_path, boot_id="same")  # the first one never said goodbye
    assert other.open() == 3
    other.store.close()
    driver.store.close()


def test_a_file_of_something_else_is_moved_away_and_numbers_do_not_begin_again(tmp_path: Path) -> None:
    (tmp_path / "events.jsonl").write_bytes(b"something else\n" * 100_000)
    driver = make_driver(tmp_path)
    assert driver.open() > 10_000
    put(driver, 1)
    driver.store.close()
    assert (tmp_path / "events.jsonl.damaged").stat().st_size == 1_500_000


# --- a disk that does not take it ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", [0, 1, 150, 200, 300])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_what_a_full_disk_does_not_take_waits_and_follows(tmp_path: Path, disk: Disk, room: int, error: int) -> None:
    driver = make_driver(tmp_path)
    driver.open()
    put(driver, 3)
    disk.room, disk.error = room, error
    driver.store.append([make_note(4), make_note(5)])
    driver.wait_until(lambda: driver.store.stats().last_error)
    assert driver.read_all() == [1, 2, 3]
    assert [seq for seq, _ in driver.appended] == [1, 2, 3]
    assert driver.store.stats().waiting == 2
    disk.room = None
    driver.wait_until(lambda: len(driver.appended) == 5)
    assert driver.read_all() == [1, 2, 3, 4, 5]
    stats = driver.store.stats()
    assert (stats.waiting, stats.lost, stats.last_error) == (0, 0, "")
    driver.store.close()
    assert driver.reopen() == 5
    driver.store.close()


def test_what_is_lost_is_counted_and_told_in_its_place(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_WAITING", 10)
    driver = make_driver(tmp_path)
    driver.open()
    disk.room = 0
    for place in range(1, 31):
        driver.store.append([make_note(place)])
    driver.wait_until(lambda: driver.store.stats().last_error)
    assert driver.store.stats().lost == 20
    disk.room = None
    driver.wait_until(lambda: len(driver.appended) == 10)
    driver.put(make_note(31))
    driver.wait_until(lambda: len(driver.appended) == 12)
    events = [json.loads(line) for _, line in driver.appended]
    assert [event["_seq"] for event in events] == list(range(1, 13))
    assert {name: events[10][name] for name in ("type", "lost", "oldest")} == {"type": "stream.gap", "lost": 20, "oldest": 12}
    assert events[11]["itemId"] == "i31"
    driver.store.close()


def test_waiting_bodies_are_bounded_in_bytes(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_WAITING_BYTES", 1_000)
    driver = make_driver(tmp_path)
    driver.open()
    disk.room = 0
    for place in range(20):
        driver.store.append([make_note(place)])
    assert driver.store.stats().waiting <= 3
    assert driver.store.stats().lost >= 17
    driver.store.close()


def test_what_is_lost_at_the_end_is_told_as_well(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MAX_WAITING", 2)
    driver = make_driver(tmp_path)
    driver.open()
    disk.room = 0
    for place in range(1, 6):
        driver.store.append([make_note(place)])
    disk.room = None
    driver.store.close()
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert [line["type"] for line in lines] == ["item.delta", "item.delta", "stream.gap"]
    assert lines[-1]["lost"] == 3


def test_a_gap_that_is_found_late_stands_before_what_waits_and_nothing_is_doubled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "_RETRY_S", 0.02)
    driver = make_driver(tmp_path)
    driver.open()
    put(driver, 2)
    path, aside, life = tmp_path / "events.jsonl", tmp_path / "aside", tmp_path / "events.life"
    killed = life.read_bytes()
    driver.store.close()
    life.write_bytes(killed)  # as if it had never said goodbye
    path.rename(aside)
    path.symlink_to("nowhere/at/all")
    later = make_driver(tmp_path)
    later.open()
    later.store.append([make_note(place) for place in (3, 4, 5)])
    assert later.store.stats().last_error
    aside.rename(path)
    later.wait_until(lambda: not later.store.stats().waiting)
    later.store.close()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert [event["type"] for event in events[2:]] == ["stream.gap", *[events[0]["type"]] * 3]
    assert [event["_seq"] for event in events] == [1, 2, 3, 4, 5, 6]
    assert len({event["_ts"] for event in events[3:]}) == 3


def test_a_place_that_cannot_be_opened_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "_RETRY_S", 0.02)
    (tmp_path / "events.jsonl").mkdir()
    driver = make_driver(tmp_path)
    assert driver.open() == 0
    driver.store.append([make_note(1)])
    assert driver.store.stats().last_error
    (tmp_path / "events.jsonl").rmdir()
    driver.wait_until(lambda: driver.appended)
    assert driver.read_all() == [1]
    driver.store.close()


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_taken_away_is_followed_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(writer_module, "_SYNC_S", 0.01)
    driver = make_driver(tmp_path)
    driver.open()
    path = tmp_path / "events.jsonl"
    put(driver, 3)
    path.unlink()
    if how == "replaced":
        path.write_bytes(b"")
    put(driver, 1)
    driver.wait_until(lambda: path.exists() and driver.store.stats().size_bytes == 0)
    put(driver, 2)
    assert [seq for seq, _ in driver.appended] == [1, 2, 3, 4, 5, 6]
    assert driver.read_all() == [5, 6]
    driver.store.close()


def test_an_old_file_that_somebody_removed_is_told_as_gone(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, rotation=Rotation(max_bytes=500))
    driver.open()
    for _ in range(3):
        put(driver, 3)
    (tmp_path / "events-0000000000000001.jsonl").unlink()
    page = driver.read(EventQuery())
    assert ([record.seq for record in page.records], page.oldest_seq) == ([4, 5, 6, 7, 8, 9], 4)
    (tmp_path / "events-0000000000000004.jsonl").unlink()
    assert driver.read_all() == [7, 8, 9]
    assert driver.read_all(since_ms=1) == [7, 8, 9]
    driver.store.prune(START_MS + 1_000_000_000)
    put(driver, 1)
    driver.store.close()


def test_the_newest_file_that_vanishes_is_an_answer_and_no_end(tmp_path: Path) -> None:
    driver = make_driver(tmp_path)
    driver.open()
    put(driver, 3)
    (tmp_path / "events.jsonl").unlink()
    with pytest.raises(Exception, match="No such file"):
        driver.read(EventQuery())
    driver.store.close()


def test_where_the_numbers_go_on_is_known_though_nothing_can_be_written(tmp_path: Path, disk: Disk) -> None:
    driver = make_driver(tmp_path)
    driver.open()
    put(driver, 3)
    driver.store.close()
    disk.room = 0
    assert driver.reopen() == 3
    assert driver.read_all() == [1, 2, 3]
    driver.store.append([make_note(4)])
    disk.room = None
    driver.wait_until(lambda: len(driver.appended) == 4)
    assert driver.read_all() == [1, 2, 3, 4]
    driver.store.close()


def test_an_event_that_cannot_be_encoded_takes_no_other_with_it_and_is_told_as_lost(tmp_path: Path) -> None:
    driver = make_driver(tmp_path)
    driver.open()
    bad = make_note(2)
    bad = msgspec.structs.replace(bad, event=msgspec.structs.replace(bad.event, item_id=object()))
    driver.store.append([make_note(1), bad, make_note(3)])
    driver.wait_until(lambda: len(driver.appended) == 2)
    assert driver.store.stats().lost == 1
    driver.put(make_note(4))
    driver.wait_until(lambda: len(driver.appended) == 4)
    assert [json.loads(line)["type"] for _, line in driver.appended] == ["item.delta", "item.delta", "stream.gap", "item.delta"]
    assert driver.store.stats().waiting == 0
    driver.store.close()


def test_what_waits_is_weighed_the_same_when_it_goes_as_when_it_came(tmp_path: Path) -> None:
    """Else, under a load that never lets the store rest, it would seem to be full one day."""
    store = JsonlEvents(tmp_path / "events.jsonl", lambda _: None)
    writer = store._writer
    writer._open()
    writer.append([Exchange(0, START_MS, "", "A", "", "msg_1", "A", "B", "message", "y" * 10_000)])
    writer._take()
    later = make_note(9)
    writer.append([later])
    assert writer._waiting_bytes > 10_000
    writer._write_all()
    assert (writer.waiting, writer._waiting_bytes) == (1, weigh([later]))
    writer._shelf.close()


def test_an_event_that_cannot_be_encoded_takes_no_thread_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = make_driver(tmp_path)
    driver.open()
    encode = writer_module.encode_drafts

    def fail(*_: object) -> Any:
        monkeypatch.setattr(writer_module, "encode_drafts", encode)
        raise TypeError("no JSON")

    monkeypatch.setattr(writer_module, "encode_drafts", fail)
    driver.store.append([make_note(1)])
    driver.wait_until(lambda: driver.store.stats().lost == 1)
    put(driver, 1)
    driver.wait_until(lambda: len(driver.appended) == 2)  # the gap, and that one
    assert driver.read_all() == [1, 2]
    driver.store.close()
