"""What a killed daemon could not tell any more: bounded, in order, and with a gap where there is too much of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from agent_relay.daemon import missed_events
from agent_relay.daemon.missed_events import tell_missed
from agent_relay.daemon.recording import Recording
from agent_relay.daemon.system import SystemClock
from agent_relay.events.drafts import Lost
from agent_relay.ports.store import Batch, MessageQuery, MessageRow, PageDone, StoreError
from agent_relay.protocol.ulid import encode_counter, encode_number, encode_time
from agent_relay.storage.jsonl.store import JsonlEvents
from agent_relay.storage.memory import MemoryStore

START_MS = 1_800_000_000_000


def make_row(place: int) -> MessageRow:
    at_ms = START_MS + place
    tail = b'"from":"Alice","payload":{"body":"word %d"}}' % place
    id_ = f"msg_{encode_time(at_ms)}000000000000{encode_counter(0)}"
    return MessageRow(
        encode_number(at_ms, 0), id_, "Alice", f"c{place}", "Bob", "", "message", None, at_ms, at_ms, 5, 0, (),
        (("Bob", place),), tail,
    )  # fmt: skip


class Broken(MemoryStore):
    def find(self, query: MessageQuery, done: PageDone) -> None:
        del query
        self._post(lambda: done(StoreError("no")))


class Silent(MemoryStore):
    def find(self, query: MessageQuery, done: PageDone) -> None:
        """Never answers."""


def start(folder: Path, kind: type[MemoryStore], stored: int, told: int | None) -> list[dict[str, object]]:
    """So many messages are stored, and up to one of them they have been told; the lines that are in the file afterwards."""

    async def run() -> None:
        loop = asyncio.get_running_loop()
        store = kind(loop.call_soon_threadsafe)
        store.open(10, 0)
        written = loop.create_future()
        store.write(Batch(messages=[make_row(place) for place in range(1, stored + 1)]), written.set_result)
        await written
        events = JsonlEvents(folder / "events.jsonl", loop.call_soon_threadsafe)
        recording = Recording(events, loop, SystemClock(), 1_000_000)
        if told is not None:
            events._writer.message = make_row(told).number
        recording.recorder.record([Lost(START_MS + 1_000_000, 77)])  # something of this daemon's own
        await tell_missed(recording, store, make_row(stored).number, lambda _name: None)
        assert recording.bus.last_seq == events.last_seq > 0
        recording.close()

    asyncio.run(run())
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def bodies(lines: list[dict[str, object]]) -> list[object]:
    return [line.get("body", line["type"]) for line in lines]


def test_what_is_missing_comes_before_what_is_new(tmp_path: Path) -> None:
    lines = start(tmp_path, MemoryStore, stored=200, told=100)
    assert bodies(lines) == [*(f"word {place}" for place in range(101, 201)), "stream.gap"]
    assert [line["_ts"] for line in lines[:100]] == [START_MS + place for place in range(101, 201)]


def test_of_more_than_is_derived_the_newest_are_and_a_gap_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_events, "MOST", 100)
    lines = start(tmp_path, MemoryStore, stored=300, told=0)
    assert lines[0]["reason"] == "killed"
    assert bodies(lines)[1:-1] == [f"word {place}" for place in range(301 - len(lines[1:-1]), 301)]
    assert 100 <= len(lines[1:-1]) < 200
    assert json.loads((tmp_path / "events.life").read_text())["message"] == make_row(300).number


@pytest.mark.parametrize("kind", [Broken, Silent])
def test_a_store_that_cannot_be_read_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[MemoryStore]
) -> None:
    monkeypatch.setattr(missed_events, "_PATIENCE_S", 0.05)
    lines = start(tmp_path, kind, stored=3, told=0)
    assert [line["type"] for line in lines] == ["stream.gap", "stream.gap"]
    assert [line["reason"] for line in lines] == ["killed", "unwritten"]


def test_nothing_is_asked_where_everything_was_told(tmp_path: Path) -> None:
    assert [line["type"] for line in start(tmp_path, Silent, stored=3, told=3)] == ["stream.gap"]
