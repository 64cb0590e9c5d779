"""Events that wait for their stream, at the seat: so many at most, numbered and encoded when their record sets off."""

from __future__ import annotations

from msgspec import Struct

from agent_relay.events.drafts import Draft, Exchange, Lost, encode_drafts, weigh
from agent_relay.ports.log import Log
from agent_relay.protocol.ulid import number_of

MAX_WAITING = 10_000  # events; what comes beyond is lost, and told as a gap
MAX_WAITING_BYTES = 32 * 1024 * 1024
_AT_ONCE = 1_000  # events in one record


class TakenEvents(Struct, frozen=True):
    count: int
    ts: int  # of the last one
    message: int  # that these are the newest events of; 0: of none
    data: bytes


class EventQueue:
    def __init__(self, notes: Log) -> None:
        self._notes = notes
        self._drafts: list[Draft] = []
        self._bytes = 0
        self._taken: list[Draft] = []  # on their way
        self._covered = 0
        self._taken_message = 0
        self._untold = 0  # lost, and no gap stands for them yet
        self.lost = 0

    @property
    def waiting(self) -> int:
        return len(self._drafts) + len(self._taken)

    @property
    def is_empty(self) -> bool:
        return not self._drafts

    def add(self, drafts: list[Draft]) -> None:
        size = weigh(drafts)
        if self.waiting and (self.waiting + len(drafts) > MAX_WAITING or self._bytes + size > MAX_WAITING_BYTES):
            self.lost += len(drafts)
            self._untold += len(drafts)
            return
        self._tell_lost(drafts[0].at_ms)
        self._drafts += drafts
        self._bytes += size

    def _tell_lost(self, at_ms: int) -> None:
        if self._untold:
            self._drafts.append(Lost(at_ms, self._untold))
            self._untold = 0

    def add_first(self, draft: Draft) -> None:
        self._drafts.insert(0, draft)

    def cover(self, message: int) -> None:
        """Once everything that waits is written, messages up to this one have their events, or a gap stands for them."""
        self._covered = max(self._covered, message)

    def take(self, first_seq: int, ts: int, most: int, usual_bytes: int, largest_bytes: int) -> TakenEvents:
        """The next ones, at most `most`, as lines of at most `usual_bytes`; a single one may be larger. `ts` is the moment of the
        one before. They stay ours until `settle`, or come again after `put_back`."""
        self._tell_lost(ts)
        count = min(len(self._drafts), _AT_ONCE, most)
        data, last_ts = b"", ts
        while count:
            data, last_ts = self._encode(count, first_seq, ts)
            if data and len(data) <= (usual_bytes if count > 1 else largest_bytes):
                break
            if count == 1:  # it cannot be encoded, or is too large
                self._drafts[0] = Lost(self._drafts[0].at_ms, 1)
                self.lost += 1
            else:
                count //= 2
        self._taken, self._drafts = self._drafts[:count], self._drafts[count:]
        self._bytes = max(0, self._bytes - weigh(self._taken)) if self._drafts else 0
        message = _find_message(self._taken)
        if not self._drafts:
            message, self._covered = max(message, self._covered), 0
        self._taken_message = message
        return TakenEvents(count, last_ts, message, data)

    def _encode(self, count: int, first_seq: int, ts: int) -> tuple[bytes, int]:
        try:
            return encode_drafts(self._drafts[:count], first_seq, ts)
        except Exception as error:  # noqa: BLE001 - only what cannot be encoded is lost
            self._notes.note("event_not_encoded", error=f"{type(error).__name__}: {error}")
            return b"", ts

    def settle(self) -> None:
        self._taken = []

    def put_back(self) -> None:
        self._drafts[:0], self._taken = self._taken, []
        self.cover(self._taken_message)

    def clear(self) -> None:
        self._drafts, self._taken, self._bytes, self._untold, self._covered = [], [], 0, 0, 0


def _find_message(drafts: list[Draft]) -> int:
    """Messages get their events in the order of their numbers, so the last one counts."""
    for draft in reversed(drafts):
        if type(draft) is Exchange:
            return number_of(draft.message_id.removeprefix("msg_"))
    return 0
