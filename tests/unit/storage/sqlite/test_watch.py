from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from agent_relay.storage.sqlite.watch import FileWatch


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
    watch = FileWatch(path)
    date(path.parent, age_s)
    assert watch.find_change() is None
    assert watch.find_change() is None
    (path.parent / name).rename(path.parent / "away")
    assert watch.find_change() == change
    (path.parent / "away").rename(path.parent / name)
    assert watch.find_change() is None


def test_another_file_in_its_place_is_noticed(path: Path) -> None:
    watch = FileWatch(path)
    other = path.parent / "other"
    other.touch()
    other.rename(path)
    assert watch.find_change() == "file"


def test_a_change_in_the_same_tick_of_a_coarse_clock_is_noticed(path: Path) -> None:
    watch = FileWatch(path)
    date(path.parent, 0)
    before = path.parent.stat().st_mtime_ns
    assert watch.find_change() is None
    path.unlink()
    os.utime(path.parent, ns=(before, before))
    assert watch.find_change() == "file"


def test_a_quiet_folder_is_looked_at_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = FileWatch(path)
    date(path.parent, 60)
    watch.find_change()
    looked_at = []
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda place, **more: looked_at.append(place) or stat(place, **more))
    watch.find_change()
    monkeypatch.undo()
    assert looked_at == [str(path.parent)]


def test_a_folder_that_is_moved_is_noticed(path: Path) -> None:
    watch = FileWatch(path)
    date(path.parent, 60)
    assert watch.find_change() is None
    path.parent.rename(path.parent.with_name("elsewhere"))
    assert watch.find_change() == "file"


def test_a_new_wal_of_our_own_is_no_change(path: Path) -> None:
    watch = FileWatch(path)
    wal = path.with_name("m-wal")
    wal.rename(path.with_name("old"))
    wal.touch()
    assert watch.find_change() == "wal"
    watch.opened()
    assert watch.find_change() is None
