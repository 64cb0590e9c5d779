"""Copies of one log: erasing, and what may differ between them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.cluster.copy import Copy
from agent_relay.cluster.records import Claim, Erasure, encode_batch, encode_claim, encode_erasure
from agent_relay.ports.store import Batch, DeadLetterRow, MessageRow, Snapshot, StreamRow
from agent_relay.storage.sqlite.store import SqliteStore
from tests.support.store_driver import (
    StoreDriver,
    make_agent,
    make_message,
    make_waiting,
    number_at,
    time_at,
)


class Notes:
    def note(self, what: str, **fields: object) -> None: ...


class CopyOnDisk:
    """A host's copy, with its file."""

    def __init__(self, path: Path) -> None:
        self.driver = StoreDriver(lambda post: SqliteStore(path, post, "normal", is_copy=True))
        self.erased: list[str] = []
        self._open(self.driver.open())

    def _open(self, snapshot: Snapshot) -> None:
        self.position = snapshot.position
        self.copy = Copy(self.driver.store, snapshot.position, self._applied, Notes(), self.erased.append)

    def _applied(self, position: int, _claim: Claim | None) -> None:
        self.position = position

    def hear(self, records: list[bytes], after: int = 0) -> None:
        for sequence, record in enumerate(records, after + 1):
            self.copy.heard(sequence, record)
        self.driver.wait_until(lambda: self.position == after + len(records))

    def reopen(self) -> Snapshot:
        self.copy.close()
        self.driver.store.close()
        self.driver.replace_store()
        snapshot = self.driver.open()
        self._open(snapshot)
        return snapshot

    def count(self) -> int:
        return len(self.driver.find(limit=10_000))


@pytest.fixture
def copies(tmp_path: Path) -> Iterator[tuple[CopyOnDisk, CopyOnDisk]]:
    found = CopyOnDisk(tmp_path / "a.sqlite"), CopyOnDisk(tmp_path / "b.sqlite")
    yield found
    for each in found:
        each.driver.store.close()


def message(place: int, sender: str = "Alice") -> MessageRow:
    return make_message(place, recipients=(("Bob", place),), sender=sender)


def old_history() -> list[bytes]:
    """Twelve messages: two wait for Bob, one is a dead letter, the last four come after the checkpoint."""
    batches = [
        Batch(agents=[make_agent("Alice"), make_agent("Bob")]),
        Batch(messages=[message(place) for place in range(1, 9)]),
        Batch(
            backlog_added=[make_waiting(message(3)), make_waiting(message(5))],
            dead_letters=[DeadLetterRow(number_at(6), "Bob", time_at(8), "EXPIRED")],
            streams=[StreamRow("", "Alice", "Bob", last_seq=8, wire_seq=8, heard_seq=8, done_seq=2, done_above=(4, 6, 7, 8))],
            checkpoint=number_at(8),
        ),
        Batch(messages=[message(place) for place in range(9, 13)]),
    ]
    return [encode_batch(batch) for batch in batches]


def test_copies_that_were_pruned_at_other_times_are_the_same_for_whoever_takes_the_seat(
    copies: tuple[CopyOnDisk, CopyOnDisk],
) -> None:
    pruned, whole = copies
    records = old_history()
    for each in copies:
        each.hear(records)
    assert pruned.driver.prune(time_at(1_000)) == 5  # it had the seat for a while, or its clock is ahead
    assert (pruned.count(), whole.count()) == (7, 12)
    for each in copies:
        each.hear([encode_claim(Claim(1, "a", "a-1"))], len(records))
    seen = [each.driver.seen("Alice", since=time_at(9)) for each in copies]
    assert len(seen[0]) == 4
    assert seen[0] == seen[1]  # a repeated SEND is a duplicate at both
    assert pruned.driver.dead_letters() == whole.driver.dead_letters() != []
    assert pruned.driver.owed_places() == whole.driver.owed_places()
    first, second = (each.reopen() for each in copies)
    assert first == second
    assert first.waiting[0].count == 6  # those two, and the four that came after the checkpoint


def test_an_erasure_goes_through_every_copy_and_comes_again_after_a_crash(copies: tuple[CopyOnDisk, CopyOnDisk]) -> None:
    here, crashed = copies
    records = [
        encode_batch(Batch(agents=[make_agent("Alice"), make_agent("Bob"), make_agent("Eve")])),
        encode_batch(Batch(messages=[message(place, "Eve") for place in range(1, 1_202)])),
        encode_batch(Batch(messages=[message(2_000)])),
    ]
    for each in copies:
        each.hear(records)
    erasure = [encode_erasure(Erasure("Eve"))]
    here.hear(erasure, len(records))
    assert (here.count(), here.erased) == (1, ["Eve"])
    assert crashed.driver.erase("Eve", 500) == 500  # killed after the first slice
    assert crashed.reopen().position == len(records)
    crashed.hear(erasure, len(records))
    assert crashed.count() == 1
    assert here.reopen() == crashed.reopen()
