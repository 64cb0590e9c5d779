"""The check of a large file, which here is any file."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_relay.ports.store import Batch, StoreUnusable
from agent_relay.storage.sqlite import store, writer
from agent_relay.storage.sqlite.files import PAGE_BYTES
from tests.support.store_driver import DEADLINE_SECONDS, make_message

from .stores import SqliteDriver, opened


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "messages.sqlite"
    monkeypatch.setattr(writer, "LISTED_EVERY", 1_000)  # so that a start does not read them all
    with opened(path) as driver:
        messages = [make_message(place, "x" * 500) for place in range(1, 2_001)]
        driver.write(Batch(messages=messages, checkpoint=messages[-1].number))
    monkeypatch.setattr(store, "CHECKED_AT_START_BYTES", 0)
    return path


def test_a_whole_file_is_found_whole(path: Path) -> None:
    with opened(path) as driver:
        check = driver.sqlite._check
        assert check is not None
        assert check.wait(DEADLINE_SECONDS)
        assert check.finished
        assert driver.sqlite.damage is None


def test_damage_in_the_middle_is_found_while_the_store_works(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with path.open("r+b") as file:
        file.seek(100 * PAGE_BYTES)
        file.write(b"\xa5" * PAGE_BYTES)
    with opened(path) as driver:
        check = driver.sqlite._check
        assert check is not None
        assert check.wait(DEADLINE_SECONDS)
        assert driver.sqlite.damage is not None
        assert str(path) in driver.sqlite.damage
        assert driver.find(limit=1) == [2_000]
    assert "is damaged" in caplog.text


def test_a_file_with_its_end_cut_off_is_refused_at_once(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 3 * PAGE_BYTES)
    with pytest.raises(StoreUnusable, match="damaged"):
        SqliteDriver(path).open()


def test_closing_does_not_wait_for_the_check(path: Path) -> None:
    for _ in range(20):
        with opened(path):
            pass
