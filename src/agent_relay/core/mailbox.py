"""One recipient's messages: what waits, what is on the wire, and how full it is.

Waiting messages stand in lanes, one a priority, first in first out. A message never gets a faster lane than the last
waiting one of its own stream, nor, if many were addressed, than the last waiting one of that kind; so a priority lets it
overtake other streams only, and all recipients see any two broadcasts in the same order.

Of a long queue only the beginning is here. The rest waits in the store (see `core.rest`), in the order it was accepted, and
nothing is put behind the beginning before the rest has been read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery

NEVER = 2**63
_KEPT = 2_000  # messages of a queue that are here …
_KEPT_BYTES = 16 * 1024 * 1024  # … and how much they may hold
_FIRST_GUESS_MS = 50.0  # how long a message takes before anything was measured


class Mailbox:
    __slots__ = (
        "_shared_lane",
        "_shared_waiting",
        "held_bytes",
        "holds",
        "inflight",
        "lanes",
        "left",
        "left_bytes",
        "mean_ack_ms",
        "next_expiry",
        "next_retry",
        "owing",
        "reading",
        "reserved",
        "rest",
        "rest_bytes",
        "rest_from",
        "told_busy",
        "waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self.lanes: dict[int, deque[Delivery]] = {}
        self.waiting = 0  # all that wait, here or in the store
        self.rest = 0  # those of them that are in the store alone
        self.rest_bytes = 0
        self.rest_from = 0  # while there is a rest: the messages from this number on are there, all others here
        self.left = self.left_bytes = 0  # all that ever came to the rest
        self.reading = False
        self.reserved = 0  # accepted, being stored
        self.held_bytes = 0  # of all that wait or are being stored
        self.inflight: dict[str, Delivery] = {}  # on the wire and not acknowledged, by delivery id
        self.next_retry = NEVER  # no delivery on the wire is due before this moment
        self.next_expiry = NEVER  # no message here ends before this moment
        self.holds = 0  # what has to be durable before anything more goes out
        self.told_busy: dict[str, Agent] = {}  # senders who know that the queue is long, by key
        self.owing = False  # the ledger's clock looks after it
        self.mean_ack_ms = _FIRST_GUESS_MS  # how long an acknowledgement takes, as a moving average
        self._shared_waiting = 0
        self._shared_lane = 0

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.inflight

    @property
    def here(self) -> int:
        """The number that wait here."""
        return self.waiting - self.rest

    @property
    def has_room(self) -> bool:
        """Whether one more can wait here."""
        return not self.rest and self.waiting < _KEPT and self.held_bytes < _KEPT_BYTES

    @property
    def page(self) -> int:
        """The number of the rest to read now; 0: enough are here, or there is no rest."""
        if not self.rest or self.reading or self.here * 2 > _KEPT:
            return 0
        return max(1, min(_KEPT // 2, _KEPT_BYTES // 2 // (self.rest_bytes // self.rest + 1)))

    def leave(self, number: int, size: int, count: int = 1) -> None:
        """So many messages from that number on wait in the store alone."""
        if not self.rest:
            self.rest_from = number
        self.rest += count
        self.rest_bytes += size
        self.left += count
        self.left_bytes += size
        self.waiting += count
        self.held_bytes += size

    def fetched(self, size: int, count: int = 1) -> None:
        """So many do not any more: they were read, or have ended."""
        self.rest -= count
        self.rest_bytes -= size
        self.waiting -= count
        self.held_bytes -= size

    def is_in_rest(self, number: int) -> bool:
        return self.rest > 0 and number >= self.rest_from

    def reserve(self, tail: bytes) -> None:
        """Holds a place for a message that is being stored."""
        self.reserved += 1
        self.held_bytes += len(tail)

    def release(self, tail: bytes) -> None:
        """The place is taken, or not needed any more."""
        self.reserved -= 1
        self.held_bytes -= len(tail)

    def push(self, delivery: Delivery) -> None:
        message, stream = delivery.message, delivery.stream
        lane = message.row.priority
        if stream.waiting and stream.tail_lane > lane:
            lane = stream.tail_lane
        if message.shared:
            if self._shared_waiting and self._shared_lane > lane:
                lane = self._shared_lane
            self._shared_waiting += 1
            self._shared_lane = lane
        stream.waiting += 1
        stream.tail_lane = lane
        self.waiting += 1
        self.held_bytes += len(message.row.tail)
        if message.expires < self.next_expiry:
            self.next_expiry = message.expires
        try:
            self.lanes[lane].append(delivery)
        except KeyError:
            self.lanes[lane] = deque((delivery,))

    def first(self) -> Delivery:
        """The next one to send; there must be one waiting."""
        return self.lanes[min(self.lanes)][0]

    def pop(self) -> Delivery:
        """Takes out the first."""
        lanes = self.lanes
        lane = next(iter(lanes)) if len(lanes) == 1 else min(lanes)
        queue = lanes[lane]
        delivery = queue.popleft()
        if not queue:
            del lanes[lane]
        self._left(delivery)
        return delivery

    def take(self, wanted: Callable[[Delivery], bool]) -> list[Delivery]:
        """Takes out those of the waiting ones that are wanted."""
        taken = [delivery for delivery in self.all_waiting() if wanted(delivery)]
        if taken:
            gone = {delivery.id for delivery in taken}
            left = {lane: deque(each for each in queue if each.id not in gone) for lane, queue in self.lanes.items()}
            self.lanes = {lane: queue for lane, queue in left.items() if queue}
            for delivery in taken:
                self._left(delivery)
        return taken

    def _left(self, delivery: Delivery) -> None:
        delivery.stream.waiting -= 1
        self.waiting -= 1
        self.held_bytes -= len(delivery.message.row.tail)
        if delivery.message.shared:
            self._shared_waiting -= 1

    def all_waiting(self) -> list[Delivery]:
        """That are here."""
        return [delivery for lane in sorted(self.lanes) for delivery in self.lanes[lane]]

    def take_all(self) -> list[Delivery]:
        """Empties the box, but for the rest; what was on the wire and what waited, in the order the messages were accepted."""
        found = [*self.inflight.values(), *self.all_waiting()]
        for delivery in self.all_waiting():
            self._left(delivery)
        self.lanes.clear()
        self.inflight.clear()
        self.next_retry = NEVER
        found.sort(key=lambda delivery: delivery.message.row.number)
        return found
