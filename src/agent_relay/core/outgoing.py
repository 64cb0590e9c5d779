"""Deliveries on their way out: those of a turn that go to the same client are put together, and given to its connection at once.

Whoever puts one in has seen that there is room for it on the wire. What is in here is out again before anything else happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.core.context import Context
from agent_relay.core.journal import Journal
from agent_relay.protocol.encode import encode_deliver, read_tail
from agent_relay.protocol.mentions import is_mentioned
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.retry import REDELIVERY

if TYPE_CHECKING:
    from agent_relay.core.messages import Delivery
    from agent_relay.core.peer import Peer

_AT_LEISURE = ',"at_leisure":true'
_COPY = ',"copy":true'  # in `delivery`, for a shadow
_AT_ONCE_BYTES = 64 * 1024  # given to a connection at once, which then knows better how much waits for its client


class Outgoing:
    def __init__(self, context: Context, journal: Journal) -> None:
        self._context = context
        self._journal = journal
        self._ack_timeout_ms = context.limits.ack_timeout_ms
        self._peers: list[Peer] = []  # who is being given something

    def put(self, peer: Peer, delivery: Delivery) -> None:
        outgoing = peer.outgoing
        if not outgoing:
            self._peers.append(peer)
        outgoing.append(delivery)
        peer.outgoing_bytes = size = peer.outgoing_bytes + len(delivery.message.row.tail)
        if size > _AT_ONCE_BYTES:
            self._give(peer)

    def send(self) -> None:
        """Everything that was put in."""
        if self._peers:
            peers, self._peers = self._peers, []
            for peer in peers:
                self._give(peer)

    def _give(self, peer: Peer) -> None:
        deliveries, peer.outgoing = peer.outgoing, []
        peer.outgoing_bytes = 0
        if not deliveries:
            return
        if peer.deliver is None:
            self._deliver(peer, deliveries)
        else:
            self._hand(peer, deliveries)
        if not peer.acks:
            peer.unwritten += deliveries
            peer.connection.notify_drained = True

    def _deliver(self, peer: Peer, deliveries: list[Delivery]) -> None:
        """As DELIVER. Whoever acknowledges has so long for it before it is sent again."""
        context, recipient, version, acks, frames = self._context, deliveries[0].recipient, peer.version, peer.acks, []
        now, wall_text, name, session_id = context.steady_ms, context.wall_text, recipient.name, recipient.session_id
        box, due = recipient.mailbox, now + self._ack_timeout_ms
        inflight, at_leisure = box.inflight, recipient.traits.at_leisure
        for delivery in deliveries:
            stream, message, seq, gap_after = delivery.stream, delivery.message, delivery.seq, None
            delivery.attempts = attempt = delivery.attempts + 1
            if seq > stream.base_seq:
                if seq != stream.base_seq + 1:
                    gap_after = stream.base_seq
                stream.base_seq = seq
            if attempt > 1 or not stream.sent_at or seq <= stream.wire_seq:
                self._note(delivery, attempt)
            else:
                stream.wire_seq = seq
            row = message.row
            to, marks = message.to or name, ""
            if at_leisure and fold_name(row.target) in at_leisure and not _mentions(row.tail, name):
                marks = _AT_LEISURE
            if delivery.is_copy:
                to, marks = row.target or name, _COPY
            frames.append(
                encode_deliver(
                    version, delivery.id, wall_text, to, session_id, row.id, seq, attempt, now - message.accepted, gap_after,
                    row.tail, marks,
                )
            )  # fmt: skip
            if acks:
                delivery.tries = tries = delivery.tries + 1
                delivery.sent = now
                delivery.deadline = due if tries == 1 else due + REDELIVERY.delay_ms(tries - 1, context.entropy.fraction())
                inflight[delivery.id] = delivery
                if message.expires < box.next_expiry:
                    box.next_expiry = message.expires
        if acks and due < box.next_retry:
            box.next_retry = due
        peer.connection.send_all(frames)

    def _hand(self, peer: Peer, deliveries: list[Delivery]) -> None:
        """To a client that is given messages in words of its own."""
        handed = []
        for delivery in deliveries:
            stream, message, seq = delivery.stream, delivery.message, delivery.seq
            delivery.attempts = attempt = delivery.attempts + 1
            if attempt > 1 or not stream.sent_at or seq <= stream.wire_seq:
                self._note(delivery, attempt)
            else:
                stream.wire_seq = seq
            handed.append((message.row, message.accepted))
        if peer.deliver is not None:
            peer.deliver(handed)

    def _note(self, delivery: Delivery, attempt: int) -> None:
        """It is not simply the next of its stream. One that goes out again was noted before."""
        stream, delivery.counted = delivery.stream, False
        stream.wire_seq = max(stream.wire_seq, delivery.seq)
        if attempt == 1 and not stream.sent_at:
            self._journal.sent(stream)


def _mentions(tail: bytes, name: str) -> bool:
    body = read_tail(tail)["payload"].get("body")
    return isinstance(body, str) and is_mentioned(name, body)
