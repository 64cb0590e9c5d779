"""Messages that wait in the store alone: the rest of a long queue, and after a restart every queue, until its owner comes.

It is read a page at a time. Everything noted so far is durable before a page is asked for, so the store knows all of the rest;
what is left there meanwhile comes after it. What ends without being read here (it expired, or its sender was erased) is done
by its stream when a page that was asked for before brings it all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_relay.core.context import Context
from agent_relay.core.journal import Journal
from agent_relay.core.messages import Delivery, Message, delivery_id
from agent_relay.core.registry import Registry
from agent_relay.ports.store import MessageStore, Owed, OwedQuery, StoreError
from agent_relay.protocol.encode import read_shadows, read_tail
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.ulid import time_of_number

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

Take = Callable[[list[Delivery]], None]
TakePage = Callable[[list[Delivery] | None], None]

_AT_ONCE = 100  # of those that end in the store: some milliseconds of work, and not too much where they are large


class Rest:
    def __init__(
        self, context: Context, registry: Registry, store: MessageStore, journal: Journal, last_number: int
    ) -> None:  # fmt: skip
        self._context = context
        self._registry = registry
        self._store = store
        self._journal = journal
        self._expiring = False
        self._started = (context.steady_ms, context.wall_ms)
        self._set_back = max(0, time_of_number(last_number) - context.wall_ms)  # the clock, since the last message was stored

    def leave(self, delivery: Delivery) -> None:
        """It is durable, and there is no room for it here."""
        row = delivery.message.row
        delivery.recipient.mailbox.leave(row.number, len(row.tail))
        self._journal.listed(delivery)

    def read(self, recipient: Agent, take: TakePage) -> None:
        """Gives the next page of an agent's rest to `take`, unless enough of its queue is here; None: it could not be read."""
        box, limit = recipient.mailbox, recipient.mailbox.page
        if not limit:
            return
        box.reading = True
        left, left_bytes = box.left, box.left_bytes  # what comes later may not be durable yet when the page is asked for

        def ask() -> None:
            query = OwedQuery(recipient=recipient.name, after=(box.rest_from - 1, recipient.name), limit=limit)

            def read(page: list[Owed] | StoreError) -> None:
                box.reading = False
                if isinstance(page, StoreError):
                    self._context.log.note("backlog_unreadable", agent=recipient.name, error=str(page))
                    take(None)
                    return
                missing = box.rest - (box.left - left)
                if not page and missing > 0:
                    self._context.log.note("backlog_miscounted", agent=recipient.name, missing=missing)
                    box.fetched(max(box.rest_bytes - (box.left_bytes - left_bytes), 0), missing)
                found = self._revive_all(page)
                if page:
                    box.rest_from = page[-1].message.number + 1
                take(found)

            self._store.owed(query, read)

        self._journal.then(ask)

    def end(self, query: OwedQuery, end: Take, done: Callable[[int], None]) -> None:
        """Gives everything of the rest that the query means to `end`, page by page; and then says how many they were."""

        def end_page(page: list[Owed]) -> int:
            found = self._revive_all(page)
            end(found)
            return len(found)

        self._walk(query, end_page, done)

    def count(self, query: OwedQuery, done: Callable[[int], None]) -> None:
        """The part of the rest that the query means."""

        def count_page(page: list[Owed]) -> int:
            recipients = [(owed, self._registry.find(owed.recipient)) for owed in page]
            return sum(1 for owed, agent in recipients if agent and agent.mailbox.is_in_rest(owed.message.number))

        self._walk(query, count_page, done)

    def _walk(self, query: OwedQuery, visit: Callable[[list[Owed]], int], done: Callable[[int], None]) -> None:
        """Through all that the query means, as far as it can be read; `done` is told the sum of what the visits returned."""
        count = 0

        def ask(after: tuple[int, str]) -> None:
            self._store.owed(replace(query, after=after, limit=_AT_ONCE), read)

        def read(page: list[Owed] | StoreError) -> None:
            nonlocal count
            if isinstance(page, StoreError):
                self._context.log.note("backlog_unreadable", error=str(page))
                done(count)
                return
            count += visit(page)
            if len(page) < _AT_ONCE:
                done(count)
            else:
                ask((page[-1].message.number, page[-1].recipient))

        self._journal.then(lambda: ask((0, "")))

    def expire(self, end: Take) -> None:
        """Ends what has expired, as far as it is not here."""
        if self._expiring:
            return
        self._expiring = True

        def done(_count: int) -> None:
            self._expiring = False

        self.end(OwedQuery(expired_at=self._moment()), end, done)

    def _moment(self) -> int:
        """The wall clock for what has expired. One that is set does not end anything early, nor let what is left of before this
        start live longer."""
        steady_ms, wall_ms = self._started
        even_ms = wall_ms + self._context.steady_ms - steady_ms
        return min(even_ms, self._context.wall_ms) + self._set_back

    def _revive_all(self, page: list[Owed]) -> list[Delivery]:
        """Those that are still owed and not here; they are counted out of the rest."""
        found = []
        for owed in page:
            row = owed.message
            sender, recipient = self._registry.find(row.sender), self._registry.find(owed.recipient)
            if sender is None or recipient is None:  # it is for nobody, or from nobody, any more
                self._journal.unlisted(owed.recipient, row.number)
                if recipient is not None and recipient.mailbox.is_in_rest(row.number):
                    recipient.mailbox.fetched(len(row.tail))
                continue
            box, stream = recipient.mailbox, recipient.stream_from(sender, row.topic)
            if stream.is_done(owed.seq):
                self._journal.unlisted(owed.recipient, row.number)
            elif box.is_in_rest(row.number):
                box.fetched(len(row.tail))
                found.append(self._revive(owed, sender, recipient))
        return found

    def _revive(self, owed: Owed, sender: Agent, recipient: Agent) -> Delivery:
        context, row = self._context, owed.message
        stream = recipient.stream_from(sender, row.topic)
        to = row.target if row.target[:1] in {"*", "#"} else None
        left_ms = min(max(0, row.expires_at - self._moment()), row.expires_at - row.ts)
        message = Message(
            row, sender, [recipient], shared=to is not None or not row.target, to=to, requires_ack=_requires_ack(row.tail),
            accepted=context.steady_ms - max(0, context.wall_ms - row.ts), expires=context.steady_ms + left_ms, open=1,
            listed=True,
        )  # fmt: skip
        place = next(place for place, (name, _) in enumerate(row.recipients) if fold_name(name) == recipient.key)
        attempts = 1 + owed.resent if owed.seq <= stream.sent_before else 0  # it may have been on the wire
        is_copy = row.recipients[place][0] in read_shadows(row.tail)
        return Delivery(message, recipient, stream, owed.seq, delivery_id(row, place), attempts=attempts, is_copy=is_copy)


def _requires_ack(tail: bytes) -> bool:
    if b'"requires_ack"' not in tail:
        return False
    meta = read_tail(tail).get("payload_meta") or {}
    return meta.get("requires_ack") is True
