"""Repeated messages: a client repeats a SEND that it has no answer to, and is answered as the first one was.

So the ids that an agent has used are known, also from before this start. While the store cannot be read, a repetition waits: to
refuse it would be a lie about the first one, which is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from agent_relay.core.commit import Committer
from agent_relay.core.context import Context
from agent_relay.core.correlation import Correlations
from agent_relay.core.messages import MessageExtras
from agent_relay.core.send_receipts import SendReceipts, not_stored, say_outcomes
from agent_relay.ports.store import MessageRow, MessageStore, Page, StoreError, TrailRow

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import payloads

_READ_AGAIN_MS = 500
_ROWS_AT_ONCE = 500  # a page of a store


class _Repetition(NamedTuple):
    peer: Peer
    sender: Agent
    client_id: str
    meta: payloads.SendMeta
    number: int  # of the first one


class _Outcomes(NamedTuple):
    """Of a message that is answered: what became of it could not be read."""

    peer: Peer
    row: MessageRow


class Repetitions:
    def __init__(
        self, context: Context, store: MessageStore, receipts: SendReceipts, correlations: Correlations, committer: Committer
    ) -> None:
        self._context = context
        self._store = store
        self._receipts = receipts
        self._correlations = correlations
        self._committer = committer
        self._waiting: list[_Repetition] = []  # the store could not be read
        self._untold: list[_Outcomes] = []
        self._read_at = 0

    def recall(self, sender: Agent, done: Callable[[StoreError | None], None]) -> None:
        """Reads the ids an agent has used before this start, unless they are known."""
        if sender.seen.is_complete:
            done(None)
            return

        def read(ids: dict[str, int] | StoreError) -> None:
            if isinstance(ids, StoreError):
                done(ids)
                return
            sender.seen.complete(ids, sender.traits.first_number)
            done(None)

        limits = self._context.limits
        self._store.seen(sender.name, self._context.wall_ms - limits.dedup_window_ms, limits.dedup_ids, read)

    def find(self, sender: Agent, client_id: str) -> int | None:
        """The number of the message that is stored under this id."""
        return sender.seen.find(client_id, self._context.wall_ms - self._context.limits.dedup_window_ms)

    def answer(self, peer: Peer, sender: Agent, client_id: str, meta: payloads.SendMeta) -> bool:
        """False: it is new."""
        pending = sender.pending.get(client_id)
        if pending is not None:
            pending.extras = pending.extras or MessageExtras()
            pending.extras.duplicates.append(peer)
            return True
        number = self.find(sender, client_id)
        if number is None:
            return False
        self._read([_Repetition(peer, sender, client_id, meta, number)])
        return True

    def clock_says(self, now: int) -> None:
        if now < self._read_at or not (self._waiting or self._untold):
            return
        waiting, self._waiting, untold, self._untold = self._waiting, [], self._untold, []
        for first in range(0, len(waiting), _ROWS_AT_ONCE):
            self._read(waiting[first : first + _ROWS_AT_ONCE])
        for peer, row in untold:
            self._tell_outcomes(peer, row)

    def _read(self, repetitions: list[_Repetition]) -> None:
        def answer(page: Page | StoreError) -> None:
            if isinstance(page, StoreError):
                self._waiting += [repetition for repetition in repetitions if not repetition.peer.closed]
                self._read_at = self._context.steady_ms + _READ_AGAIN_MS
                return
            rows = {row.number: row for row in page.messages}
            for repetition in repetitions:
                if not repetition.peer.closed:
                    self._answer(repetition, rows.get(repetition.number))

        self._store.fetch(list({repetition.number for repetition in repetitions}), answer)

    def _answer(self, repetition: _Repetition, row: MessageRow | None) -> None:
        """The same answer, and whatever else was said about it: the first may have been missed."""
        peer, sender, client_id, meta, _ = repetition
        if row is None:
            peer.say_nack(not_stored("it is being removed"), client_id)
            return
        self._receipts.say_stored_again(peer, row)
        if meta.sync is not None and meta.sync.blocking:
            self._correlations.ask(sender, row, meta.sync)
        if meta.requires_ack:
            self._committer.when_written(lambda: self._tell_outcomes(peer, row))

    def _tell_outcomes(self, peer: Peer, row: MessageRow) -> None:
        def read(trail: list[TrailRow] | StoreError) -> None:
            if peer.closed:
                return
            if isinstance(trail, StoreError):
                self._untold.append(_Outcomes(peer, row))
                self._read_at = self._context.steady_ms + _READ_AGAIN_MS
                return
            say_outcomes(peer, row, trail)

        self._store.trail(row, read)
