"""One recipient's messages: what waits, what is on the wire, and how full it is.

Waiting messages stand in lanes, one a priority, first in first out. A message never gets a faster lane than the last
waiting one of its own stream, nor, if many were addressed, than the last waiting one of that kind; so a priority lets it
overtake other streams only, and all recipients see any two broadcasts in the same order.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery

NEVER = 2**63
_FIRST_GUESS_MS = 50.0  # how long a message takes before anything was measured


class Mailbox:
    __slots__ = (
        "_shared_lane",
        "_shared_waiting",
        "burying",
        "held_bytes",
        "inflight",
        "lanes",
        "mean_ack_ms",
        "next_expiry",
        "next_retry",
        "owing",
        "reserved",
        "told_busy",
        "waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self.lanes: dict[int, deque[Delivery]] = {}
        self.waiting = 0
        self.reserved = 0  # accepted, being stored
        self.held_bytes = 0  # of both
        self.inflight: dict[str, Delivery] = {}  # on the wire and not acknowledged, by delivery id
        self.next_retry = NEVER  # no delivery on the wire is due before this moment
        self.next_expiry = NEVER  # no message here ends before this moment
        self.burying = 0  # given up, and not yet written down: nothing goes out meanwhile
        self.told_busy: dict[str, Agent] = {}  # senders who know that the queue is long, by key
        self.owing = False  # the ledger's clock looks after it
        self.mean_ack_ms = _FIRST_GUESS_MS  # how long an acknowledgement takes, as a moving average
        self._shared_waiting = 0
        self._shared_lane = 0

    @property
    def idle(self) -> bool:
        return not self.waiting and not self.inflight

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

    def remove_waiting(self, delivery: Delivery) -> None:
        for lane, queue in self.lanes.items():
            if delivery in queue:
                queue.remove(delivery)
                if not queue:
                    del self.lanes[lane]
                self._left(delivery)
                return

    def _left(self, delivery: Delivery) -> None:
        delivery.stream.waiting -= 1
        self.waiting -= 1
        self.held_bytes -= len(delivery.message.row.tail)
        if delivery.message.shared:
            self._shared_waiting -= 1

    def all_waiting(self) -> list[Delivery]:
        return [delivery for lane in sorted(self.lanes) for delivery in self.lanes[lane]]

    def take_all(self) -> list[Delivery]:
        """Empties the box; what was on the wire and what waited, in the order the messages were accepted."""
        found = [*self.inflight.values(), *self.all_waiting()]
        for delivery in self.all_waiting():
            self._left(delivery)
        self.lanes.clear()
        self.inflight.clear()
        self.next_retry = NEVER
        found.sort(key=lambda delivery: delivery.message.row.number)
        return found
