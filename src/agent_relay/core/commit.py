"""Group commit: everything that arrived while the last batch was being written is the next batch.

One batch is under way at a time. So a message gets its place in every order (its number, its sequence numbers) only when
its batch sets off, and a batch that fails takes nothing with it: the counters go back to where they were. In a steady stream
a batch waits a moment for more (`gathering`). While the store is in trouble, what has gathered is refused; of the batch under
way nothing is said until the store knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from agent_relay.core.context import Context
from agent_relay.core.gathering import Gathering
from agent_relay.core.journal import Journal
from agent_relay.core.messages import Delivery, Message
from agent_relay.ports.store import Batch, MessageRow, MessageStore, StoreError
from agent_relay.protocol.ulid import COUNTER_LIMIT, PAIRS

_RETRY_MS = 100
_IDS_AT_ONCE = 256  # taken from the source in one go; what is left of them at the end of a batch stays unused

Settled = Callable[[StoreError | None], None]


class _Change(NamedTuple):
    """A change of the registry that somebody waits for."""

    fill: Callable[[Batch], None]
    settled: Settled


class Committer:
    def __init__(
        self, context: Context, store: MessageStore, journal: Journal,
        on_stored: Callable[[list[Message], list[Delivery]], None], on_failed: Callable[[list[Message], StoreError], None],
    ) -> None:  # fmt: skip
        self._context = context
        self._store = store
        self._journal = journal
        self._on_stored = on_stored
        self._on_failed = on_failed
        self.messages: list[Message] = []  # accepted, for the next batch
        self._changes: list[_Change] = []
        self.under_way = False
        self.gathering = Gathering()
        self._failed_at: int | None = None  # the last write, if it did

    @property
    def idle(self) -> bool:
        return not self.under_way and not self.messages and not self._changes

    def change(self, fill: Callable[[Batch], None], settled: Settled) -> None:
        self._changes.append(_Change(fill, settled))

    def when_written(self, then: Callable[[], None]) -> None:
        """Calls back once everything that is known now, cursors and trails included, is in the store (or could not be)."""
        self.change(lambda _batch: None, lambda _error: then())

    def flush(self) -> None:
        """Called at the end of every turn."""
        if self._store.trouble is not None:
            self._refuse(self._store.trouble)
            return
        if self.under_way:
            return
        news_due = self._is_news_due()
        if not (self.messages or self._changes or news_due):
            return
        size = len(self.messages) + len(self._changes)
        if self.gathering.holds(size, self._context.steady_ms):
            return
        self.gathering.began(size, self._context.steady_ms)
        messages, self.messages = self.messages, []
        changes, self._changes = self._changes, []
        batch = Batch()
        for change in changes:
            change.fill(batch)
        taken = self._journal.fill(batch) if news_due else None
        batch.messages, deliveries = self._number(messages)

        def written(error: StoreError | None) -> None:
            self.under_way = False
            self._failed_at = None if error is None else self._context.steady_ms
            if error is None:
                self._succeed(messages, deliveries, changes)
                for callback in taken.then if taken is not None else ():
                    callback()
            else:
                if taken is not None:
                    self._journal.take_back(batch, taken)
                self._fail(messages, deliveries, changes, error)
            self.flush()

        self.under_way = True
        self._store.write(batch, written)

    def _is_news_due(self) -> bool:
        """News go with every change. Where the last write failed they wait a moment, or they would be tried again at once."""
        if self._failed_at is not None and self._context.steady_ms - self._failed_at < _RETRY_MS:
            return False
        return self._journal.is_due() or (bool(self._changes) and self._journal.has_news())

    def _refuse(self, trouble: str) -> None:
        """Refuses what waits for the next batch: it has no place in any order yet. Of the one under way nothing can be said."""
        messages, self.messages = self.messages, []
        changes, self._changes = self._changes, []
        if messages or changes:
            self._fail(messages, [], changes, StoreError(trouble))

    def _number(self, messages: list[Message]) -> tuple[list[MessageRow], list[Delivery]]:
        """Gives each message its place: its number, and in each recipient's stream the next sequence number."""
        wall_ms, deliveries = self._context.wall_ms, []
        ids_left = number = counter = 0
        prefix = ""
        for message in messages:
            row, recipients, sender = message.row, message.recipients, message.sender
            needed = 1 + len(recipients)
            if ids_left < needed:
                ids_left = max(needed, _IDS_AT_ONCE)
                prefix, number = self._context.ids.reserve_run(wall_ms, ids_left)
                counter = number % COUNTER_LIMIT
            ids_left -= needed
            row.number = number
            row.id = f"msg_{prefix}{PAIRS[counter >> 10]}{PAIRS[counter & 1023]}"
            row.ts = wall_ms
            row.expires_at = wall_ms + message.expires - message.accepted
            number += needed
            topic = row.topic
            key, places = (topic, sender.key), []
            for agent in recipients:  # the ids right behind a message's own are its deliveries'
                counter += 1
                stream = agent.streams.get(key) or agent.stream_from(sender, topic, self._context.first_seq)
                stream.last_seq = seq = stream.last_seq + 1
                places.append((agent.name, seq))
                deliveries.append(
                    Delivery(message, agent, stream, seq, f"d_{prefix}{PAIRS[counter >> 10]}{PAIRS[counter & 1023]}")
                )
                if agent.peer is None:
                    row.queued += 1
            counter += 1
            row.recipients = tuple(places)
            if message.copies:
                for delivery in deliveries[-message.copies :]:
                    delivery.is_copy = True
                    row.queued -= delivery.recipient.peer is None
        return [message.row for message in messages], deliveries

    def _succeed(self, messages: list[Message], deliveries: list[Delivery], changes: list[_Change]) -> None:
        if messages:
            self._journal.stored(messages[-1].row.number)
            self._on_stored(messages, deliveries)
        for change in changes:
            change.settled(None)

    def _fail(self, messages: list[Message], deliveries: list[Delivery], changes: list[_Change], error: StoreError) -> None:
        self._context.log.note("store_failed", error=str(error), messages=len(messages), changes=len(changes))
        for delivery in deliveries:
            delivery.stream.last_seq -= 1
        self._on_failed(messages, error)
        for change in reversed(changes):  # the last one first, so that each undoes what it found
            change.settled(error)
