"""The ways a delivery ends: acknowledged, refused, expired, erased. Its stream moves on, the journal is told, and once that is
durable whoever sent it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_relay.core.agents import tell
from agent_relay.core.announcements import publish_delivered
from agent_relay.core.context import Context
from agent_relay.core.journal import Journal
from agent_relay.core.loops import Loops
from agent_relay.protocol.errors import ErrorCode, RelayError, error_payload
from agent_relay.protocol.reports import encode_seen

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery


class Endings:
    """`wake` has the ledger look at an agent's queue again."""

    def __init__(self, context: Context, journal: Journal, loops: Loops, wake: Callable[[Agent], None]) -> None:
        self._context = context
        self._journal = journal
        self._loops = loops
        self._wake = wake

    def expired(self, delivery: Delivery) -> None:
        sentence = f"{delivery.recipient.name} did not acknowledge the message before it expired."
        error = RelayError(ErrorCode.DELIVERY_TIMEOUT, sentence)
        self.bury(delivery, "expired", f"after {delivery.attempts} attempts", error)

    def bury(self, delivery: Delivery, event: str, detail: str, error: RelayError) -> None:
        """A dead letter. A copy is none: sent again, it would be a message to its shadow."""
        if delivery.is_copy:
            self.give_up(delivery, event, detail, error)
            return
        self._journal.dead(delivery, error.code.value)
        name, id_, attempts = delivery.recipient.name, delivery.message.row.id, delivery.attempts
        self._journal.then(lambda: self._context.log.note("dead_letter", message_id=id_, to=name, attempts=attempts))
        self.give_up(delivery, event, detail, error)

    def give_up(self, delivery: Delivery, event: str, detail: str, error: RelayError) -> None:
        """It is given up. Once that is durable, so that it stays over, its sender learns it; and until then nothing that comes
        after it goes to the recipient, whose word for what it has read up to there would be taken for this one, too."""
        recipient = delivery.recipient
        self._journal.ended(delivery, event, detail)
        self.settle(delivery)
        recipient.mailbox.holds += 1

        def is_over() -> None:
            recipient.mailbox.holds -= 1
            self._wake(recipient)
            self.tell_refused(delivery, error)

        self._journal.then(is_over)

    def count_as_acknowledged(self, deliveries: list[Delivery]) -> None:
        counted = [delivery for delivery in deliveries if not delivery.replay]
        for delivery in counted:
            if delivery.recipient.loop is not None:
                self._loops.heard(delivery.recipient.loop, delivery)
            if delivery.message.requires_ack:
                self.tell_delivered(delivery, {})
        self.acknowledged(counted)

    def acknowledged(self, deliveries: list[Delivery]) -> None:
        closed = []
        for delivery in deliveries:
            stream, seq, message = delivery.stream, delivery.seq, delivery.message
            if seq > stream.heard_seq:
                stream.heard_seq = seq
            if seq != stream.done_seq + 1 or stream.done_above:  # not simply the next
                if seq != stream.done_seq + 1:
                    self._journal.ended(delivery, "acknowledged")
                stream.settle(seq)
            else:
                stream.done_seq = seq
            if not stream.done_at:
                self._journal.acknowledged(stream)
            message.open = still_open = message.open - 1
            if message.listed:
                self._journal.unlisted(delivery.recipient.name, message.row.number)
            elif not still_open:
                closed.append(message.row.number)
        self._journal.closed(closed)
        publish_delivered(self._context, deliveries)

    def injected(self, delivery: Delivery, door: str, evidence: str | None) -> None:
        """Acknowledged with what was seen of it: that is a step of the trail by itself, in place of the plain one."""
        delivery.stream.heard_seq = max(delivery.stream.heard_seq, delivery.seq)
        self._journal.ended(delivery, "injected", encode_seen(door, evidence))
        self.settle(delivery)
        publish_delivered(self._context, [delivery], door, evidence)

    def settle(self, delivery: Delivery) -> None:
        delivery.stream.settle(delivery.seq)
        message = delivery.message
        message.open -= 1
        if message.listed:
            self._journal.unlisted(delivery.recipient.name, message.row.number)
        elif not message.open:
            self._journal.closed([message.row.number])

    def tell_delivered(self, delivery: Delivery, more: dict[str, Any]) -> None:
        """Once it is durable: after a crash the message would go out again, and might end otherwise."""
        if delivery.is_copy:
            return
        row, sender = delivery.message.row, delivery.message.sender
        payload = {
            "ack_id": row.client_id,
            "stage": "delivered",
            "message_id": row.id,
            "by": delivery.recipient.name,
            "seq": delivery.seq,
        }
        self._journal.then(lambda: tell(self._context, sender, "ACK", payload | more))

    def tell_refused(self, delivery: Delivery, error: RelayError) -> None:
        if delivery.is_copy:
            return
        row, sender = delivery.message.row, delivery.message.sender
        payload = error_payload(error, sender.traits.version) | {
            "nack_id": row.client_id,
            "message_id": row.id,
            "to": delivery.recipient.name,
        }
        tell(self._context, sender, "NACK", payload)
