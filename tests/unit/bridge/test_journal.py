"""What a bridge remembers over restarts."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from agent_relay.bridge import journal as module
from agent_relay.bridge.journal import Journal
from agent_relay.protocol.errors import RelayError


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "bridge.sqlite")


def test_it_remembers_over_restarts(path: str) -> None:
    first = Journal(path)
    first.note_done("a")
    first.note_done("a")
    first.note_peer("bob-7", "Bob")
    first.begin_at("alice-acme", "msg_1")
    first.begin_at("alice-acme", "msg_9")  # it has begun already
    name = first.bridge_id
    first.close()
    again = Journal(path)
    assert (again.is_done("a"), again.is_done("b")) == (True, False)
    assert again.peers() == {"bob-7": "Bob"}
    assert again.since("alice-acme") == "msg_1"
    assert again.since("somebody") is None
    assert again.bridge_id == name
    again.close()


def test_the_cursor_stays_a_little_behind(path: str) -> None:
    journal = Journal(path)
    journal.begin_at("a", "start")
    for number in range(63):
        journal.note_read("a", f"msg_{number:03d}")
    assert journal.since("a") == "start"
    journal.note_read("a", "msg_063")
    journal.note_read("a", "msg_064")
    assert journal.since("a") == "msg_001"
    journal.close()


def test_the_oldest_are_forgotten(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 100)
    journal = Journal(path)
    for number in range(1_000):
        journal.note_done(str(number))
    assert not journal.is_done("899")
    assert journal.is_done("900")
    journal.close()


def test_one_bridge_at_a_time_and_nobody_else_reads_it(path: str) -> None:
    journal = Journal(path)
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
    with pytest.raises(RelayError, match="running"):
        Journal(path)
    journal.close()
    Journal(path).close()
