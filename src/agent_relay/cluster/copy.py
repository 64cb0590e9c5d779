"""This host's copy of the log: records into the store, each with its position in the same transaction, so exactly once.

A claim goes in by itself, when everything before it is stored: what it adopts depends on what is there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from agent_relay.cluster.records import BadRecord, Claim, decode_record
from agent_relay.ports.log import Log
from agent_relay.ports.store import Batch, MessageStore, StoreError

_TRIED_EVERY_MS = 1_000
_AT_ONCE = 64  # records that the store has at a time; the rest waits here

Applied = Callable[[int, Claim | None], None]


class Copy:
    """`applied` is told of each record that is stored. `trouble` says why none is any more."""

    def __init__(self, store: MessageStore, position: int, applied: Applied, log: Log) -> None:
        self._store = store
        self._heard_to = position
        self._applied = applied
        self._log = log
        self._waiting: deque[tuple[Batch, Claim | None]] = deque()
        self._under_way = 0
        self._alone = False  # a claim is under way, or a batch that has failed once
        self._again_at = 0
        self._now = 0
        self._is_closed = False
        self.trouble = ""

    def heard(self, sequence: int, record: bytes) -> None:
        if sequence <= self._heard_to or self.trouble.startswith("A record"):
            return
        self._heard_to = sequence
        try:
            found = decode_record(record)
        except BadRecord as error:
            self.trouble = str(error)
            self._log.note("cluster_record_unreadable", sequence=sequence, error=str(error))
            return
        if isinstance(found, Claim):
            self._waiting.append((Batch(position=sequence, term=found.term), found))
        else:
            found.position = sequence
            self._waiting.append((found, None))
        self._go_on()

    def clock_says(self, now: int) -> None:
        self._now = now
        if self._again_at and now >= self._again_at:
            self._again_at = 0
            self._go_on()

    def close(self) -> None:
        """Nothing is stored or told from here on."""
        self._is_closed = True
        self._waiting.clear()

    def _go_on(self) -> None:
        while self._waiting and not self._alone and not self._again_at and not self._is_closed and self._under_way < _AT_ONCE:
            batch, claim = self._waiting[0]
            if claim is not None and self._under_way:
                return
            self._waiting.popleft()
            self._alone = claim is not None
            self._under_way += 1
            self._store.write(batch, self._telling(batch, claim))

    def _telling(self, batch: Batch, claim: Claim | None) -> Callable[[StoreError | None], None]:
        def told(error: StoreError | None) -> None:
            self._under_way -= 1
            if self._is_closed:
                return
            if error is not None:
                self._failed(batch, claim, error)
                return
            if not self._under_way:
                self._alone = False
                self.trouble = ""
            assert batch.position is not None
            self._applied(batch.position, claim)
            self._go_on()

        return told

    def _failed(self, batch: Batch, claim: Claim | None, error: StoreError) -> None:
        """Tried again until it works: the log has it, so the copy needs it. Later ones wait, so that the order stays."""
        if not self.trouble:
            self._log.note("cluster_copy_failed", error=str(error))
        self.trouble = f"This host cannot copy the cluster's log: {error}"
        self._waiting.appendleft((batch, claim))
        self._waiting = deque(sorted(self._waiting, key=lambda one: one[0].position or 0))
        self._alone = False
        self._again_at = self._now + _TRIED_EVERY_MS
