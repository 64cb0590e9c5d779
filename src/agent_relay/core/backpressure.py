"""Fullness of recipients: their senders are told at 80 % and 100 %, and again when it is over, at 50 %."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_relay.core.context import Context
from agent_relay.protocol.errors import ErrorCode, RelayError

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.mailbox import Mailbox
    from agent_relay.core.peer import Peer

_LEAST_ADVICE_MS = 50
_MOST_ADVICE_MS = 30_000


class Backpressure:
    def __init__(self, context: Context) -> None:
        self._context = context
        self.capacity = context.limits.queue_capacity
        self.warn_at = max(1, -(-self.capacity * 8 // 10))  # rounded up: 80 % is reached, not nearly reached
        self._clear_at = self.capacity * 5 // 10
        self.queue_bytes = context.limits.queue_bytes

    def is_tight(self, box: Mailbox, size: int) -> bool:
        """One more of that size is worth a warning, or too much. Cheap, for it is asked for every message."""
        return box.waiting + box.reserved + 1 >= self.warn_at or box.held_bytes + size >= self.queue_bytes

    def depth(self, recipient: Agent, extra: int = 0) -> int:
        """Messages that have to wait: what could go on the wire at once does not count."""
        box, peer = recipient.mailbox, recipient.peer
        depth = box.waiting + box.reserved + extra
        held = recipient.loop is not None and recipient.loop.barrier is not None
        if peer is not None and peer.active and not held and not peer.connection.is_full:
            if not peer.acks:
                return 0
            depth -= peer.window - len(box.inflight)
        return max(depth, 0)

    def depth_with_one_more(self, recipient: Agent, tail: bytes) -> int:
        """More than `capacity`: there is no room for it."""
        held_bytes = recipient.mailbox.held_bytes
        if held_bytes and held_bytes + len(tail) > self.queue_bytes:
            return self.capacity + 1
        return self.depth(recipient, 1)

    def full_error(self, recipient: Agent) -> RelayError:
        depth = self.depth(recipient)
        return RelayError(
            ErrorCode.QUEUE_FULL,
            f"The queue of {recipient.name} is full: {depth} of {self._context.limits.queue_capacity} messages are waiting.",
            retry_after_ms=self._advice_ms(recipient, depth),
            to=recipient.name,
            queue_depth=depth,
            queue_capacity=self._context.limits.queue_capacity,
        )

    def warn(self, peer: Peer, sender: Agent, recipient: Agent, depth: int, *, accepted: bool) -> None:
        """Tells the sender of a SEND, once per crossing, that it stands in a long queue."""
        told = recipient.mailbox.told_busy
        if peer.backpressure and sender.key not in told:
            told[sender.key] = sender
            peer.say("BUSY", self._payload(recipient, depth) | {"accepting": accepted})

    def relax(self, recipient: Agent) -> None:
        """Tells those who were warned when the queue has come down to half."""
        told = recipient.mailbox.told_busy
        depth = self.depth(recipient)
        if depth > self._clear_at:
            return
        for sender in told.values():
            if sender.peer is not None and sender.peer.active and sender.peer.backpressure:
                sender.peer.say("BUSY", self._payload(recipient, depth) | {"accepting": True, "cleared": True})
        told.clear()

    def _payload(self, recipient: Agent, depth: int) -> dict[str, Any]:
        return {
            "to": recipient.name,
            "queue_depth": depth,
            "queue_capacity": self._context.limits.queue_capacity,
            "retry_after_ms": self._advice_ms(recipient, depth),
            "estimated_delay_ms": self._delay_ms(recipient, depth),
        }

    def _delay_ms(self, recipient: Agent, depth: int) -> int:
        width = recipient.peer.window if recipient.peer is not None and recipient.peer.window else 1
        return round(depth * recipient.mailbox.mean_ack_ms / width)

    def _advice_ms(self, recipient: Agent, depth: int) -> int:
        """Half of what is waiting should be gone by then."""
        return min(max(self._delay_ms(recipient, depth) // 2, _LEAST_ADVICE_MS), _MOST_ADVICE_MS)
