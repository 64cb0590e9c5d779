from __future__ import annotations

import os
import sqlite3
import stat
import time
from pathlib import Path

import pytest

from agent_relay.ports.store import StoreUnusable
from agent_relay.storage.sqlite import files
from tests.support.store_driver import make_message

from .stores import SqliteDriver, opened


def test_the_file_and_its_companions_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "messages.sqlite"
    before = os.umask(0)
    try:
        with opened(path) as driver:
            driver.put(make_message(1))
            assert driver.page().messages
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    names = {f"messages.sqlite{ending}" for ending in ("", "-wal", "-shm", "-mark")}
    assert modes == dict.fromkeys(names, 0o600)


def test_a_new_file_has_large_pages_and_can_shrink(tmp_path: Path) -> None:
    with opened(tmp_path / "messages.sqlite") as driver:
        assert driver.query("PRAGMA page_size") == [(files.PAGE_BYTES,)]
        assert driver.query("PRAGMA auto_vacuum") == [(2,)]
        assert driver.query("PRAGMA journal_mode") == [("wal",)]


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
def test_durability_is_how_sqlite_syncs(tmp_path: Path, durability: files.Durability, level: int) -> None:
    files.make_file(tmp_path / "m")
    connection = files.connect_writer(tmp_path / "m", durability)
    assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (2_000,)
    connection.close()


def test_closing_leaves_the_file_and_how_far_it_came(tmp_path: Path) -> None:
    with opened(tmp_path / "messages.sqlite") as driver:
        driver.put(make_message(1))
    assert {file.name for file in tmp_path.iterdir()} == {"messages.sqlite", "messages.sqlite-mark"}


def test_a_path_with_odd_characters_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "a ?b#c%20d&mode=memory" / "mess ages.sqlite"
    path.parent.mkdir()
    with opened(path) as driver:
        driver.put(make_message(1))
    assert path.stat().st_size > 0


def test_a_foreign_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE photos (name)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="another program") as raised:
        SqliteDriver(path).open()
    assert str(path) in str(raised.value)
    assert path.read_bytes() == before


def test_an_sqlite_file_with_nothing_in_it_is_a_new_one(tmp_path: Path) -> None:
    """A crash between making the file and the first migration leaves exactly this."""
    path = tmp_path / "messages.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    assert path.stat().st_size > 0
    with opened(path) as driver:
        driver.put(make_message(1))
        assert driver.find() == [1]


def test_a_reader_cannot_write(tmp_path: Path) -> None:
    with opened(tmp_path / "messages.sqlite") as driver:
        connection = files.connect_reader(driver.path)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            connection.execute("DELETE FROM messages")
        connection.close()


def test_what_is_deleted_is_overwritten(tmp_path: Path) -> None:
    """Some builds of SQLite do it by themselves, most do not."""
    path = tmp_path / "messages.sqlite"
    files.make_file(path)
    connection = files.connect_writer(path, "full")
    assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)
    connection.close()


# --- the files that were opened ----------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    for name in ("m", "m-wal"):
        (tmp_path / name).touch()
    return tmp_path / "m"


def date(folder: Path, seconds_ago: float) -> None:
    then = time.time() - seconds_ago
    os.utime(folder, (then, then))


@pytest.mark.parametrize(("name", "change"), [("m", "file"), ("m-wal", "wal")])
@pytest.mark.parametrize("age_s", [0, 60])
def test_a_file_that_goes_is_noticed(path: Path, name: str, change: str, age_s: float) -> None:
    watch = files.FileWatch(path)
    date(path.parent, age_s)
    assert watch.find_change() is None
    assert watch.find_change() is None
    (path.parent / name).rename(path.parent / "away")
    assert watch.find_change() == change
    (path.parent / "away").rename(path.parent / name)
    assert watch.find_change() is None


def test_another_file_in_its_place_is_noticed(path: Path) -> None:
    watch = files.FileWatch(path)
    other = path.parent / "other"
    other.touch()
    other.rename(path)
    assert watch.find_change() == "file"


def test_a_change_in_the_same_tick_of_a_coarse_clock_is_noticed(path: Path) -> None:
    watch = files.FileWatch(path)
    date(path.parent, 0)
    before = path.parent.stat().st_mtime_ns
    assert watch.find_change() is None
    path.unlink()
    os.utime(path.parent, ns=(before, before))
    assert watch.find_change() == "file"


def test_a_quiet_folder_is_looked_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = files.FileWatch(path)
    date(path.parent, 60)
    watch.find_change()
    looked_at = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda place, **more: looked_at.append(place) or stat(place, **more))
    watch.find_change()
    monkeypatch.undo()
    assert looked_at == [str(path.parent)]


def test_a_folder_that_is_moved_is_noticed(path: Path) -> None:
    watch = files.FileWatch(path)
    date(path.parent, 60)
    assert watch.find_change() is None
    path.parent.rename(path.parent.with_name("elsewhere"))
    assert watch.find_change() == "file"


def test_a_new_wal_of_our_own_is_no_change(path: Path) -> None:
    watch = files.FileWatch(path)
    wal = path.with_name("m-wal")
    wal.rename(path.with_name("old"))
    wal.touch()
    assert watch.find_change() == "wal"
    watch.opened()
    assert watch.find_change() is None
