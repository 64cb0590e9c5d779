"""A driver for any `ports.store.MessageStore`, and rows to feed it: what the conformance suite and other tests of stores use.

`StoreDriver` turns the calls with callbacks into plain ones, under a deadline. The rows stand at places in time, a second
apart: `make_message(3)` is accepted at `time_at(3)` and has `number_at(3)`.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from typing import Any

import msgspec

from agent_relay.ports.store import (
    AgentRow,
    BacklogRow,
    Batch,
    DeadLetterQuery,
    DeadLetterRow,
    MessageQuery,
    MessageRow,
    MessageStore,
    Owed,
    OwedQuery,
    Page,
    Snapshot,
    StoreError,
    StreamRow,
    TrailRow,
)
from agent_relay.protocol.encode import encode_tail
from agent_relay.protocol.ulid import encode_number

START_MS = 1_750_000_000_000  # the wall clock of message 1; each later one is a second after the one before
SECOND_MS = 1_000
DEADLINE_SECONDS = 30.0

Post = Callable[[Callable[[], None]], None]


class StoreDriver:
    """A store and a loop small enough to see through: callbacks are queued by `post` and run by whoever waits."""

    def __init__(self, make: Callable[[Post], MessageStore]) -> None:
        self._make = make
        self._callbacks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.store = make(self._callbacks.put)

    def replace_store(self) -> None:
        """A new store over the same files, as a restarted daemon has."""
        self.store = self._make(self._callbacks.put)

    def open(self) -> Snapshot:
        return self.store.open()

    def wait_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            try:
                callback = self._callbacks.get(timeout=max(deadline - time.monotonic(), 0))
            except queue.Empty:
                raise AssertionError("the store did not answer in time") from None
            callback()

    def run_ready(self) -> int:
        """Runs what is queued now; how much that was."""
        count = 0
        while not self._callbacks.empty():
            self._callbacks.get_nowait()()
            count += 1
        return count

    def call(self, start: Callable[..., None], *arguments: Any) -> Any:
        answers: list[Any] = []
        start(*arguments, answers.append)
        self.wait_until(lambda: answers)
        return answers[0]

    def ask(self, start: Callable[..., None], *arguments: Any) -> Any:
        """A call that must succeed."""
        answer = self.call(start, *arguments)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    def write(self, batch: Batch) -> None:
        self.ask(self.store.write, batch)

    def put(self, *messages: MessageRow) -> None:
        self.write(Batch(messages=list(messages)))

    def find(self, **wanted: Any) -> list[int]:
        """The places (see `place_of`) of the messages found, as they come."""
        return [place_of(row) for row in self.page(**wanted).messages]

    def page(self, **wanted: Any) -> Page:
        page: Page = self.ask(self.store.find, MessageQuery(**wanted))
        return page

    def fetch(self, *numbers: int) -> list[MessageRow]:
        page: Page = self.ask(self.store.fetch, list(numbers))
        return page.messages

    def trail(self, message: MessageRow) -> list[TrailRow]:
        rows: list[TrailRow] = self.ask(self.store.trail, message)
        return rows

    def replay(self, recipient: str, after: dict[tuple[str, str], int]) -> list[int]:
        page: Page = self.ask(self.store.replay, recipient, after)
        return [place_of(row) for row in page.messages]

    def owed(self, **wanted: Any) -> list[Owed]:
        found: list[Owed] = self.ask(self.store.owed, OwedQuery(**wanted))
        return found

    def owed_places(self, **wanted: Any) -> list[tuple[int, str]]:
        """The place of each message that waits, and for whom."""
        return [(place_of(each.message), each.recipient) for each in self.owed(**wanted)]

    def seen(self, sender: str, since: int = 0, limit: int = 1_000) -> dict[str, int]:
        found: dict[str, int] = self.ask(self.store.seen, sender, since, limit)
        return found

    def dead_letters(self, limit: int = 100, after: tuple[int, str] | None = None) -> list[tuple[DeadLetterRow, MessageRow]]:
        query = DeadLetterQuery(after=after, limit=limit)
        found: list[tuple[DeadLetterRow, MessageRow]] = self.ask(self.store.dead_letters, query)
        return found

    def prune(self, before: int, limit: int = 1_000) -> int:
        removed: int = self.ask(self.store.prune, before, limit)
        return removed

    def erase(self, agent: str, limit: int = 1_000) -> int:
        looked_at: int = self.ask(self.store.erase, agent, limit)
        return looked_at


def time_at(place: int) -> int:
    return START_MS + place * SECOND_MS


def number_at(place: int) -> int:
    return encode_number(time_at(place), 0)


def place_of(row: MessageRow) -> int:
    return (row.ts - START_MS) // SECOND_MS


def make_message(place: int, body: str = "hello", recipients: Any = (("Bob", 1),), **fields: Any) -> MessageRow:
    """The message of that place in time, from Alice to Bob unless told otherwise."""
    sender, topic = fields.get("sender", "Alice"), fields.get("topic", "")
    values: dict[str, Any] = {
        "number": number_at(place), "id": f"msg_{place:026d}", "sender": sender, "client_id": f"c-{place}",
        "target": recipients[0][0] if recipients else "*", "topic": topic, "kind": "message", "thread": None,
        "ts": time_at(place), "expires_at": time_at(place) + 86_400_000, "priority": 5, "queued": 0, "skipped": (),
        "recipients": tuple(recipients), "tail": encode_tail(sender, topic, msgspec.json.encode({"body": body}), b""),
    }  # fmt: skip
    return MessageRow(**(values | fields))


def make_waiting(message: MessageRow, recipient: str = "Bob") -> BacklogRow:
    """It waits for that one of its recipients."""
    seq = dict(message.recipients)[recipient]
    return BacklogRow(recipient, message.number, seq, message.expires_at, len(message.tail))


def make_agent(name: str, **fields: Any) -> AgentRow:
    values: dict[str, Any] = {
        "name": name, "cli": "claude", "uid": 1000, "session_id": f"ses_{name}", "token_hash": f"hash-{name}",
        "previous_token_hash": None, "registered_at": START_MS, "last_seen_at": START_MS, "connected": True, "meta": b"{}",
    }  # fmt: skip
    return AgentRow(**(values | fields))


def make_stream(sender: str, recipient: str, topic: str = "", done_above: tuple[int, ...] = ()) -> StreamRow:
    return StreamRow(topic, sender, recipient, last_seq=9, wire_seq=7, heard_seq=5, done_seq=3, done_above=done_above)


def make_trail(first: int, last: int, at: int, event: str, recipient: str = "Bob", **fields: Any) -> TrailRow:
    values: dict[str, Any] = {"topic": "", "sender": "Alice"} | fields
    return TrailRow(recipient=recipient, first_seq=first, last_seq=last, at=at, event=event, **values)
