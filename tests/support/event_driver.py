"""Drivers for events in tests: any store of them with a loop small enough to see through, and the core's own over memory."""

from __future__ import annotations

import json
import queue
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from agent_relay.events.bus import EventBus
from agent_relay.events.drafts import Draft, Note
from agent_relay.events.filter import EventFilter
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.record import split_lines
from agent_relay.events.recorder import Recorder
from agent_relay.events.types import Delta as DeltaPart
from agent_relay.events.types import ItemDelta
from agent_relay.ports.events import EventStore
from agent_relay.storage.event_memory import MemoryEvents

START_MS = 1_800_000_000_000
DEADLINE_S = 30.0

Post = Callable[[Callable[[], None]], None]


def make_note(place: int, agent: str = "Alice", session_id: str = "ses_1", text: str = "") -> Note:
    """An event a second after the one before."""
    event = ItemDelta(session_id=session_id, item_id=f"i{place}", delta=DeltaPart(type="text", content=text or f"word {place}"))
    return Note(event, agent, session_id, START_MS + place * 1_000)


class EventDriver:
    """A store whose callbacks are queued, and run by whoever waits."""

    def __init__(self, make: Callable[[Post], EventStore]) -> None:
        self._make = make
        self._callbacks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.store = make(self._callbacks.put)
        self.appended: list[tuple[int, bytes]] = []  # every number and line that was told

    def open(self) -> int:
        return self.store.open(self._told)

    def reopen(self) -> int:
        """A new store over the same files, as a restarted daemon has."""
        self.store = self._make(self._callbacks.put)
        return self.open()

    def _told(self, first_seq: int, count: int, data: bytes) -> None:
        told = list(enumerate(split_lines(data), first_seq))
        assert len(told) == count
        self.appended += told

    def wait_until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            try:
                callback = self._callbacks.get(timeout=min(0.05, max(deadline - time.monotonic(), 0)))
            except queue.Empty:
                if time.monotonic() >= deadline:
                    raise AssertionError("the store did not do it in time") from None
            else:
                callback()

    def put(self, *drafts: Draft) -> None:
        """Returns when all of it was told."""
        wanted = len(self.appended) + len(drafts)
        self.store.append(list(drafts))
        self.wait_until(lambda: len(self.appended) >= wanted)

    def read(self, query: EventQuery) -> EventPage:
        answers: list[EventPage | Exception] = []
        self.store.read(query, answers.append)
        self.wait_until(lambda: answers)
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

    def read_all(self, wanted: EventFilter | None = None, page: int = 7, **query: Any) -> list[int]:
        """The numbers of everything that is found, page by page."""
        found: list[int] = []
        after = int(query.pop("after_seq", 0))
        while True:
            answer = self.read(EventQuery(wanted or EventFilter(), after, limit=page, **query))
            found += [record.seq for record in answer.records]
            if answer.is_end:
                return found
            assert answer.last_seq > after, "a page must get further"
            after = answer.last_seq


class HarnessEvents:
    """For a core in a test's hands: what it tells is recorded in memory, as soon as `step` lets it."""

    def __init__(self) -> None:
        self._posts: deque[Callable[[], None]] = deque()
        self.store = MemoryEvents(self._posts.append)
        self.lines: list[bytes] = []
        self.store.open(self._appended)
        self.bus = EventBus(self.store)
        self.recorder = Recorder(self.store.append, self._posts.append)

    def _appended(self, first_seq: int, count: int, data: bytes) -> None:
        self.lines += split_lines(data)
        self.bus.published(first_seq, count, data)

    def step(self) -> bool:
        if not self._posts:
            return False
        self._posts.popleft()()
        return True

    def named(self, *kinds: str) -> list[dict[str, Any]]:
        """Every event of these types (all, if none is named), oldest first."""
        events: list[dict[str, Any]] = [json.loads(line) for line in self.lines]
        return [event for event in events if not kinds or event["type"] in kinds]
