"""A batch that no record can hold: refused as a whole, before any of it is in the log."""

from __future__ import annotations

from collections.abc import Callable

from agent_relay.cluster.store import ClusterStore
from agent_relay.ports.cluster import AppendDone, Appended, UnseatReason
from agent_relay.ports.store import Batch, MessageRow, StoreError
from agent_relay.storage.memory import MemoryStore


class Confirming:
    """A log that confirms every record at once."""

    def __init__(self) -> None:
        self.records: list[bytes] = []

    def append(self, record: bytes, after: int, done: AppendDone) -> None:
        self.records.append(record)
        done(Appended(after + 1))

    def give_up(self) -> None: ...


class Notes:
    def __init__(self) -> None:
        self.said: list[str] = []

    def note(self, what: str, **fields: object) -> None:
        del fields
        self.said.append(what)


def row(number: int, size: int) -> MessageRow:
    return MessageRow(number, f"m{number}", "A", "c", "B", "", "message", None, 1, 2, 5, 0, (), (("B", number),), b"x" * size)


def make_store(log: Confirming, notes: Notes, lost: list[UnseatReason]) -> tuple[ClusterStore, Callable[[Batch], list[object]]]:
    def post(call: Callable[[], None]) -> None:
        call()

    copy = MemoryStore(post)
    store = ClusterStore(copy, copy.open(), log, lost.append, lambda _position: None, lambda: 1_000, notes, 0)

    def write(batch: Batch) -> list[object]:
        heard: list[object] = []
        store.write(batch, heard.append)
        return heard

    return store, write


def test_a_message_that_no_record_can_hold_is_refused_with_the_reason_and_keeps_nobody_waiting() -> None:
    log, notes, lost = Confirming(), Notes(), list[UnseatReason]()
    store, write = make_store(log, notes, lost)
    refused, next_ = write(Batch(messages=[row(1, 10), row(2, 5_000), row(3, 10)])), write(Batch(messages=[row(4, 10)]))
    assert (refused, next_, log.records) == ([], [], [])  # never from inside the call
    store.clock_says(50)
    (error,) = refused
    assert isinstance(error, StoreError)
    assert "max_payload" in str(error)
    assert next_ == [None]
    assert len(log.records) == 1, "a part of what was refused is in the log"
    assert notes.said == ["cluster_record_too_large"]
    store.clock_says(60_000)
    assert lost == []  # a log that is well is not given up


def test_a_batch_larger_than_a_record_is_stored_in_parts_and_answered_once() -> None:
    log, notes, lost = Confirming(), Notes(), list[UnseatReason]()
    _, write = make_store(log, notes, lost)
    assert write(Batch(messages=[row(number, 300) for number in range(1, 7)], checkpoint=6)) == [None]
    assert len(log.records) == 3
