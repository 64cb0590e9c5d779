"""Full files are packed beside the work, are read as before, and no crash or full disk on the way loses anything."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_relay.events.filter import EventFilter, make_filter
from agent_relay.events.pages import EventQuery
from agent_relay.events.record import Record
from agent_relay.storage.jsonl import check as check_module
from agent_relay.storage.jsonl import packed, packer
from agent_relay.storage.jsonl.lines import read_head
from agent_relay.storage.jsonl.packed import list_blocks
from agent_relay.storage.jsonl.packer import Packer
from agent_relay.storage.jsonl.shelf import Shelf
from agent_relay.storage.jsonl.store import JsonlEvents
from agent_relay.storage.jsonl.writer import Rotation
from tests.support.event_driver import START_MS, EventDriver, make_note
from tests.unit.storage.jsonl.test_lines import make_lines

SMALL = Rotation(max_bytes=3_000)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """As soon as a file is put aside, and in blocks of a few lines."""
    monkeypatch.setattr(packer, "_FIRST_AFTER_S", 0.0)
    monkeypatch.setattr(packer, "RAW_BYTES", 700)
    monkeypatch.setattr(packed, "RAW_BYTES", 700)


def make_driver(folder: Path, rotation: Rotation = SMALL) -> EventDriver:
    return EventDriver(lambda post: JsonlEvents(folder / "events.jsonl", post, rotation))


def plain(folder: Path) -> list[Path]:
    return sorted(folder.glob("events-*.jsonl"))


def gzips(folder: Path) -> list[Path]:
    return sorted(folder.glob("events-*.jsonl.gz"))


def fill(driver: EventDriver, count: int, agent: str = "Alice", text: str = "") -> None:
    begun = len(driver.appended)
    for place in range(begun + 1, begun + count + 1):
        driver.put(make_note(place, agent, text=text))


def fill_and_pack(folder: Path, count: int = 100) -> EventDriver:
    driver = make_driver(folder)
    driver.open()
    fill(driver, count)
    driver.wait_until(lambda: not plain(folder))
    return driver


def lines_of(records: list[Record]) -> list[tuple[int, bytes]]:
    return [(record.seq, record.line) for record in records]


def read_records(driver: EventDriver, wanted: EventFilter | None = None, after: int = 0) -> list[Record]:
    found: list[Record] = []
    while True:
        page = driver.read(EventQuery(wanted or EventFilter(), after, limit=1_000))
        found += page.records
        if page.is_end:
            return found
        after = page.last_seq


# --- packed -----------------------------------------------------------------------------------------------------------------


def test_what_is_packed_is_found_as_it_was_told(tmp_path: Path) -> None:
    driver = fill_and_pack(tmp_path)
    assert len(gzips(tmp_path)) >= 5
    assert lines_of(read_records(driver)) == driver.appended
    for after in (0, 1, 17, 50, 99, 100):
        assert driver.read_all(after_seq=after) == list(range(after + 1, 101))
        assert driver.read_all(since_ms=START_MS + (after + 1) * 1_000) == list(range(after + 1, 101))
    assert driver.read_all(make_filter(["agent.state"])) == []
    driver.store.close()
    assert driver.reopen() == 100
    assert driver.read_all() == list(range(1, 101))
    driver.store.close()


def test_it_takes_less_room_and_is_the_users_alone(tmp_path: Path) -> None:
    driver = fill_and_pack(tmp_path, 300)
    assert driver.store.stats().size_bytes == sum(path.stat().st_size for path in tmp_path.glob("events*.jsonl*"))
    assert driver.store.stats().size_bytes < sum(len(line) for _, line in driver.appended) / 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    for path in gzips(tmp_path):
        assert all(json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines())
    driver.store.close()


def test_the_last_number_is_known_from_a_packed_file_alone(tmp_path: Path) -> None:
    driver = fill_and_pack(tmp_path)
    driver.store.close()
    last = json.loads(gzip.decompress(gzips(tmp_path)[-1].read_bytes()).splitlines()[-1])["_seq"]
    (tmp_path / "events.jsonl").unlink()
    (tmp_path / "events.life").unlink()
    assert driver.reopen() == last
    driver.store.close()


def test_files_of_an_earlier_version_are_packed_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "_FIRST_AFTER_S", 1_000.0)
    driver = make_driver(tmp_path)
    driver.open()
    fill(driver, 60)
    driver.store.close()
    assert len(plain(tmp_path)) > 2
    assert gzips(tmp_path) == []
    monkeypatch.setattr(packer, "_FIRST_AFTER_S", 0.0)
    driver.reopen()
    driver.wait_until(lambda: not plain(tmp_path))
    assert driver.read_all() == list(range(1, 61))
    driver.store.close()


# --- how much is kept ---------------------------------------------------------------------------------------------------------


def test_beyond_the_limit_the_oldest_leave(tmp_path: Path) -> None:
    driver = make_driver(tmp_path, Rotation(2_000, keep_bytes=8_000))
    driver.open()
    most = 0
    for _ in range(40):
        fill(driver, 25)
        most = max(most, driver.store.stats().size_bytes)
    assert most <= 8_000
    driver.wait_until(lambda: not plain(tmp_path))
    stats = driver.store.stats()
    assert stats.size_bytes <= 8_000
    found = driver.read_all()
    assert found == list(range(found[0], 1_001))
    assert 100 < found[0] == stats.oldest_seq == driver.read(EventQuery()).oldest_seq
    assert stats.oldest_ms == START_MS + found[0] * 1_000
    assert stats.limit_bytes == 8_000
    driver.store.close()


def test_the_limit_holds_where_nothing_can_be_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packer, "_FIRST_AFTER_S", 1_000.0)
    driver = make_driver(tmp_path, Rotation(2_000, keep_bytes=8_000))
    driver.open()
    fill(driver, 200)
    assert gzips(tmp_path) == []
    assert sum(path.stat().st_size for path in tmp_path.glob("events*.jsonl*")) <= 8_000
    driver.store.close()


# --- crashes and full disks ---------------------------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def pack_until(folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, fail: Callable[..., Any]) -> Shelf:
    """Two full files, packed until `os.NAME` fails."""
    shelf = Shelf(str(folder / "events.jsonl"))
    shelf.open()
    for first in (1, 31, 61):
        lines = make_lines(30, first=first)
        shelf.write(b"".join(line + b"\n" for line in lines), read_head(lines[0]))  # type: ignore[arg-type]
        if first < 61:
            shelf.put_aside()
    packing = Packer(shelf)
    with monkeypatch.context() as patched:
        patched.setattr(os, name, fail)
        with pytest.raises((Killed, OSError)):
            pack_everything(packing)
    return shelf


def pack_everything(packing: Packer) -> None:
    while packing.due_in_s() == 0:
        packing.step()


@pytest.mark.parametrize("call", range(1, 9))
@pytest.mark.parametrize("name", ["write", "fsync", "replace", "unlink", "open"])
def test_a_daemon_killed_while_it_packs_leaves_all_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, call: int
) -> None:
    real = getattr(os, name)
    calls = 0

    def kill(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            raise Killed
        return real(*arguments, **named)

    before = tmp_path / "before"
    before.mkdir()
    try:
        pack_until(before, monkeypatch, name, kill)
    except pytest.fail.Exception:
        assert calls < call  # it is not called so often
        return
    after = tmp_path / "after"
    shutil.copytree(before, after)
    monkeypatch.setattr(packer, "_FIRST_AFTER_S", 1_000.0)
    driver = make_driver(after)
    assert driver.open() == 90
    assert driver.read_all() == list(range(1, 91))
    assert [path.name for path in after.glob("*.tmp")] == []
    assert len(plain(after)) + len(gzips(after)) == 2
    driver.store.close()


@pytest.mark.parametrize("name", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_the_file_as_it_was_and_it_is_packed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "full")

    shelf = pack_until(tmp_path, monkeypatch, name, fail)
    assert [path.name for path in tmp_path.glob("*.tmp")] == []
    assert (len(plain(tmp_path)), gzips(tmp_path)) == (2, [])
    pack_everything(Packer(shelf))
    assert (plain(tmp_path), len(gzips(tmp_path))) == ([], 2)
    shelf.close()


def test_after_a_full_disk_it_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, "full")

    driver = make_driver(tmp_path)
    monkeypatch.setattr(Shelf, "put_packed", fail)
    driver.open()
    fill(driver, 60)
    assert gzips(tmp_path) == []
    assert driver.store.stats().last_error == "", "everything is written all the same"
    assert 0 < (driver.store._writer._packer.due_in_s() or 0) <= 60  # type: ignore[attr-defined]
    driver.store.close()


# --- forgetting ---------------------------------------------------------------------------------------------------------------


def erase(driver: EventDriver, agent: str) -> object:
    answers: list[object] = []
    driver.store.erase(agent, answers.append)
    driver.wait_until(lambda: answers)
    return answers[0]


def holds(path: Path, word: bytes) -> bool:
    data = path.read_bytes()
    return word in (gzip.decompress(data) if path.suffix == ".gz" else data)


def test_an_erased_agent_is_in_no_packed_file_either(tmp_path: Path) -> None:
    driver = make_driver(tmp_path)
    driver.open()
    for _ in range(4):
        fill(driver, 20, "Alice")
        fill(driver, 20, "Bob", text="zebraquagga")
    driver.wait_until(lambda: not plain(tmp_path))
    assert erase(driver, "bob") == 80
    assert [path.name for path in tmp_path.iterdir() if holds(path, b"zebraquagga") or holds(path, b"Bob")] == []
    alices = [seq for seq in range(1, 161) if (seq - 1) // 20 % 2 == 0]
    assert driver.read_all()[:-1] == alices
    assert driver.store.stats().damaged == ()
    driver.store.close()
    assert driver.reopen() == 160
    driver.store.close()


def test_what_is_half_packed_holds_nothing_of_an_erased_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Packer, "step", lambda self: Packer._begin(self) if self._segment is None else None)  # never ends
    driver = make_driver(tmp_path)
    driver.open()
    fill(driver, 30, "Bob", text="zebraquagga")
    (tmp_path / "events-0000000000000001.jsonl.gz.tmp").write_bytes(b"zebraquagga")
    erase(driver, "Bob")
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".gz" and b"zebraquagga" in path.read_bytes()] == []
    driver.store.close()


# --- damage -------------------------------------------------------------------------------------------------------------------


def harm_block(path: Path, place: int) -> tuple[int, int]:
    """The numbers that are lost."""
    descriptor = os.open(path, os.O_RDONLY)
    blocks = [block for block in list_blocks(descriptor, path.stat().st_size) if block is not None]
    os.close(descriptor)
    data = bytearray(path.read_bytes())
    data[blocks[place].offset + blocks[place].size // 2] ^= 1
    path.write_bytes(data)
    return blocks[place].first.seq, blocks[place].last_seq


def gaps(records: list[Record]) -> list[tuple[int, Any]]:
    return [(record.seq, json.loads(record.line).get("reason")) for record in records if record.type == "stream.gap"]


@pytest.mark.parametrize("place", [0, 1, -1])
def test_a_damaged_block_is_a_gap_in_its_place(tmp_path: Path, place: int) -> None:
    driver = fill_and_pack(tmp_path)
    path = gzips(tmp_path)[2]
    first, last = harm_block(path, place)
    records = read_records(driver)
    whole = [entry for entry in driver.appended if not first <= entry[0] <= last]
    assert lines_of([record for record in records if record.type != "stream.gap"]) == whole
    assert gaps(records) == [(last, "damaged")]
    assert driver.read_all(page=1) == [seq for seq, _ in sorted([*whole, (last, b"")])]
    assert gaps(read_records(driver, make_filter(["agent.state"]))) == [(last, "damaged")], "told to all"
    assert driver.read_all(after_seq=last) == list(range(last + 1, 101))
    assert driver.store.stats().damaged == (path.name,)
    driver.store.close()


def test_a_packed_file_that_was_cut_short_is_a_gap(tmp_path: Path) -> None:
    driver = fill_and_pack(tmp_path)
    path = gzips(tmp_path)[1]
    following = int(gzips(tmp_path)[2].name[7:23])
    descriptor = os.open(path, os.O_RDONLY)
    block = list_blocks(descriptor, path.stat().st_size)[1]
    os.close(descriptor)
    assert block is not None
    os.truncate(path, block.offset)  # even between two blocks
    for page in (1, 7, 1_000):
        found = driver.read_all(page=page)
        assert found == [*range(1, block.first.seq), *range(following - 1, 101)]
    assert gaps(read_records(driver, after=block.first.seq - 1)) == [(following - 1, "damaged")]
    driver.store.close()


def test_a_file_that_is_gone_from_the_middle_is_a_gap(tmp_path: Path) -> None:
    driver = fill_and_pack(tmp_path)
    first, following = (int(path.name[7:23]) for path in gzips(tmp_path)[2:4])
    gzips(tmp_path)[2].unlink()
    assert driver.read_all() == [*range(1, first), *range(following - 1, 101)]
    driver.store.close()


@pytest.mark.parametrize("how", ["block", "cut", "line", "file"])
def test_damage_is_found_without_anybody_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    driver = fill_and_pack(tmp_path)
    driver.store.close()
    path = gzips(tmp_path)[1]
    match how:
        case "block":
            harm_block(path, 1)
        case "cut":
            descriptor = os.open(path, os.O_RDONLY)
            block = list_blocks(descriptor, path.stat().st_size)[1]
            os.close(descriptor)
            assert block is not None
            os.truncate(path, block.offset)
        case "line":
            path = tmp_path / "events.jsonl"
            path.write_bytes(b"#" * 9 + path.read_bytes()[9:])
        case "file":
            path = path.with_name(path.name)
            path.write_bytes(b"\0" * 5_000)
    monkeypatch.setattr(check_module, "_AFTER_S", 0.0)
    driver.reopen()
    driver.wait_until(lambda: driver.store.stats().damaged)
    assert driver.store.stats().damaged == (path.name,)
    driver.store.close()


def test_what_is_whole_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though an agent was erased from it, at the end of a file too, and the machine lost power once."""
    driver = make_driver(tmp_path)
    driver.open()
    for _ in range(30):
        fill(driver, 3, "Alice")
        fill(driver, 3, "Bob")
    driver.wait_until(lambda: not plain(tmp_path))
    erase(driver, "Bob")
    driver.store.close()
    mark = tmp_path / "events.life"
    mark.write_text(json.dumps(json.loads(mark.read_text()) | {"closed": False, "boot": "another"}))
    for _ in range(2):
        driver.reopen()
        fill(driver, 30)
        driver.wait_until(lambda: not plain(tmp_path))
        driver.store.close()
    monkeypatch.setattr(check_module, "_AFTER_S", 0.0)
    driver.reopen()
    driver.wait_until(lambda: not driver.store._check._thread.is_alive())  # type: ignore[attr-defined]
    assert driver.store.stats().damaged == ()
    assert {reason for _, reason in gaps(read_records(driver))} <= {None, "killed"}
    driver.store.close()


def test_forgetting_somebody_leaves_a_gap_in_place_of_what_is_damaged(tmp_path: Path) -> None:
    driver = fill_and_pack(tmp_path)
    path = gzips(tmp_path)[2]
    _, last = harm_block(path, 1)
    before = driver.read_all()
    assert driver.store.stats().damaged == (path.name,)
    erase(driver, "Bob")
    assert driver.read_all() == before
    assert gaps(read_records(driver)) == [(last, "damaged")]
    assert driver.store.stats().damaged == (), "there is nothing in it any more that cannot be read"
    driver.store.close()


def test_a_file_that_is_found_anew_is_not_taken_for_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where lines begin was known of the file before an agent was erased from it, and then all files were opened again."""
    monkeypatch.setattr(packer, "_FIRST_AFTER_S", 1_000.0)
    monkeypatch.setattr("agent_relay.storage.jsonl.index.STEP_BYTES", 400)
    driver = make_driver(tmp_path)
    driver.open()
    for _ in range(20):
        fill(driver, 1, "Bob")
        fill(driver, 4, "Alice")
    driver.read_all(page=1)
    erase(driver, "Bob")
    driver.store._writer._open()  # type: ignore[attr-defined]
    alices = [seq for seq in range(1, 101) if seq % 5 != 1]
    assert driver.read_all(page=1) == alices
    assert driver.store.stats().damaged == ()
    driver.store.close()
