"""This host's copy of the log: records into the store, each with its position in the same transaction, so exactly once.

One at a time: what a claim adopts depends on what is there, and after one that failed none may be stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from agent_relay.cluster.records import BadRecord, Claim, Erasure, decode_record
from agent_relay.ports.log import Log
from agent_relay.ports.store import Batch, MessageStore, StoreError

_TRIED_EVERY_MS = 1_000
_ERASED_AT_ONCE = 500  # messages in one transaction

Applied = Callable[[int, Claim | None], None]


class Copy:
    """`applied` is told of each record that is stored; `erased`, of an agent that is not in the store any more. `trouble` says
    why no record is stored."""

    def __init__(
        self, store: MessageStore, position: int, applied: Applied, log: Log, erased: Callable[[str], None] = lambda _agent: None
    ) -> None:  # fmt: skip
        self._store = store
        self._heard_to = position
        self._applied = applied
        self._erased = erased
        self._log = log
        self._waiting: deque[tuple[Batch, Claim | Erasure | None]] = deque()  # the first is being stored
        self._is_under_way = False
        self._again_at = 0
        self._now = 0
        self._is_closed = False
        self._is_stuck = False  # at a record that it cannot read
        self.trouble = ""
        self.documents: dict[str, bytes] = {}  # those that came with the log

    def heard(self, sequence: int, record: bytes) -> None:
        if sequence <= self._heard_to or self._is_stuck:
            return
        self._heard_to = sequence
        try:
            found = decode_record(record)
        except BadRecord as error:
            self._is_stuck = True
            self.trouble = str(error)
            self._log.note("cluster_record_unreadable", sequence=sequence, error=str(error))
            return
        if isinstance(found, Claim):
            self._waiting.append((Batch(position=sequence, term=found.term), found))
        elif isinstance(found, Erasure):
            self._waiting.append((Batch(position=sequence), found))
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
        if self._waiting and not self._is_under_way and not self._again_at and not self._is_closed:
            self._is_under_way = True
            batch, found = self._waiting[0]
            if isinstance(found, Erasure):
                self._erase(found.agent, batch)
            else:
                self._store.write(batch, self._told)

    def _erase(self, agent: str, batch: Batch) -> None:
        """In slices, and only then its position: whoever is killed in between begins again."""

        def told(outcome: int | StoreError) -> None:
            if self._is_closed:
                return
            if isinstance(outcome, StoreError):
                self._told(outcome)
            elif outcome >= _ERASED_AT_ONCE:
                self._store.erase(agent, _ERASED_AT_ONCE, told)
            else:
                self._erased(agent)
                self._store.write(batch, self._told)

        self._store.erase(agent, _ERASED_AT_ONCE, told)

    def _told(self, error: StoreError | None) -> None:
        self._is_under_way = False
        if self._is_closed:
            return
        if error is not None:
            self._fail(error)
            return
        if not self._is_stuck:
            self.trouble = ""
        batch, found = self._waiting.popleft()
        assert batch.position is not None
        self.documents |= batch.documents
        self._applied(batch.position, found if isinstance(found, Claim) else None)
        self._go_on()

    def _fail(self, error: StoreError) -> None:
        """Tried again until it works: the log has it, so the copy needs it."""
        if not self.trouble:
            self._log.note("cluster_copy_failed", error=str(error))
        self.trouble = f"This host cannot copy the cluster's log: {error}"
        self._again_at = self._now + _TRIED_EVERY_MS
