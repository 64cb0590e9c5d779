"""The delivery ledger: what is owed to whom, until it is acknowledged, refused or dead.

A delivery waits in its recipient's mailbox, goes on the wire inside the window, is sent again until it is answered or
tried often enough on this connection, and waits anew when the connection ends. It leaves the ledger exactly once,
through `_settle`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent_relay.core.backpressure import FULL_BUFFER_BYTES, Backpressure
from agent_relay.core.context import Context
from agent_relay.core.correlation import Correlations, seen_in
from agent_relay.core.journal import Journal
from agent_relay.core.loops import Loops
from agent_relay.core.mailbox import NEVER
from agent_relay.core.notices import tell
from agent_relay.core.publishing import publish_delivered
from agent_relay.protocol.encode import encode_deliver
from agent_relay.protocol.errors import ErrorCode, RelayError, error_payload
from agent_relay.protocol.reports import encode_seen
from agent_relay.protocol.retry import REDELIVERY

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery, Message
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import payloads

_HANDED_BYTES = 64 * 1024  # given to a connection at once, which then knows better how much waits for its client
_BUSY_RETRY_MS = 1_000  # for a recipient that says AGENT_BUSY and not for how long


class Ledger:
    def __init__(
        self, context: Context, journal: Journal, correlations: Correlations, backpressure: Backpressure, loops: Loops
    ) -> None:
        self._context = context
        self._journal = journal
        self._correlations = correlations
        self._backpressure = backpressure
        self._loops = loops
        self._ack_timeout_ms = context.limits.ack_timeout_ms
        self._to_pump: dict[str, Agent] = {}  # recipients that may have something to send at the end of this turn
        self._unpublished: list[Delivery] = []  # acknowledged in this turn, and no event says so yet
        self._handing: list[Peer] = []  # who is being given messages in words of its own
        self._owing: dict[str, Agent] = {}  # recipients with anything waiting or on the wire, for the clock

    # --- in ---------------------------------------------------------------------------------------------------------

    def take_over(self, deliveries: list[Delivery]) -> None:
        """Messages are durable: the places reserved for them are their own, and from now on they are owed."""
        self.admit(deliveries, reserved=1)

    def admit(self, deliveries: list[Delivery], reserved: int = 0) -> None:
        """Sends them where nothing waits before them and there is room on the wire; queues the others. `reserved` is 1 where a
        place was reserved for each."""
        now = self._context.steady_ms
        for delivery in deliveries:
            recipient, message = delivery.recipient, delivery.message
            box, peer = recipient.mailbox, recipient.peer
            if reserved:
                box.reserved -= 1
                box.held_bytes -= len(message.row.tail)
            if not box.owing:
                box.owing = True
                self._owing[recipient.key] = recipient
            if (
                peer is not None
                and peer.active
                and not box.waiting
                and recipient.loop is None
                and len(box.inflight) < peer.window
                and peer.connection.unsent_bytes <= FULL_BUFFER_BYTES
                and message.expires > now
            ):
                if peer.deliver is None:
                    self._send(peer, delivery)
                else:
                    self._hand(peer, delivery)
            else:
                box.push(delivery)
                self._to_pump[recipient.key] = recipient
                if recipient.loop is not None:
                    self._loops.arrived(recipient.loop, delivery)
        if self._handing:
            self._hand_over()

    def wake(self, recipient: Agent) -> None:
        self._to_pump[recipient.key] = recipient

    def disconnected(self, recipient: Agent, peer: Peer) -> None:
        """What was on the wire waits again, in its old order."""
        box = recipient.mailbox
        owed = [delivery for delivery in box.take_all() if not delivery.replay]
        owed += [delivery for delivery in peer.unwritten if not delivery.replay]
        owed.sort(key=lambda delivery: delivery.message.row.number)
        peer.unwritten = []
        for stream in recipient.streams.values():
            stream.connection_lost()
        for delivery in owed:
            delivery.tries = 0
            delivery.deadline = NEVER
            box.push(delivery)

    def drop(self, recipient: Agent) -> None:
        """It has gone, and nothing is kept for it."""
        for delivery in recipient.mailbox.take_all():
            if not delivery.replay:
                self._journal.ended(delivery, "dropped", "nothing is kept for it while it is away")
                self._settle(delivery)

    # --- out --------------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """At the end of a turn: fills the windows of everyone something changed for."""
        if self._unpublished:
            publish_delivered(self._context, self._unpublished)
            self._unpublished = []
        if not self._to_pump:
            return
        recipients, self._to_pump = self._to_pump, {}
        now = self._context.steady_ms
        for recipient in recipients.values():
            peer, box, standing = recipient.peer, recipient.mailbox, recipient.loop
            if standing is not None:
                self._loops.look_again(recipient)
            if peer is not None and peer.active:
                inflight, connection = box.inflight, peer.connection
                while box.waiting and len(inflight) < peer.window and connection.unsent_bytes <= FULL_BUFFER_BYTES:
                    if standing is not None and not self._loops.lets_go(standing, box.first()):
                        break
                    delivery = box.pop()
                    if delivery.message.expires <= now:
                        self._bury(delivery)
                    elif peer.deliver is None:
                        self._send(peer, delivery)
                    else:
                        self._hand(peer, delivery)
                if box.waiting and connection.unsent_bytes > FULL_BUFFER_BYTES:
                    connection.notify_drained = True
            if box.told_busy:
                self._backpressure.relax(recipient)
        if self._handing:
            self._hand_over()

    def writable(self, peer: Peer) -> None:
        """All bytes given to this connection have left: deliveries that nobody will acknowledge are done."""
        if peer.agent is None:
            return
        unwritten, peer.unwritten = peer.unwritten, []
        self._count_as_acknowledged(unwritten)
        self._to_pump[peer.agent.key] = peer.agent

    def _send(self, peer: Peer, delivery: Delivery) -> None:
        stream, message, seq, gap_after = delivery.stream, delivery.message, delivery.seq, None
        delivery.attempts = attempt = delivery.attempts + 1
        if seq > stream.base_seq:
            if seq != stream.base_seq + 1:
                gap_after = stream.base_seq
            stream.base_seq = seq
            if seq > stream.wire_seq:
                stream.wire_seq = seq
        if attempt > 1:
            self._journal.noted(delivery, "resent", f"attempt {attempt}")
        elif not stream.sent_at:
            self._journal.sent(stream)
        context, recipient, row = self._context, delivery.recipient, message.row
        now = context.steady_ms
        peer.connection.send(
            encode_deliver(
                peer.version, delivery.id, context.wall_text, message.to or recipient.name, recipient.session_id, row.id,
                seq, attempt, now - message.accepted, gap_after, row.tail,
            )
        )  # fmt: skip
        if not peer.acks:
            peer.unwritten.append(delivery)
            peer.connection.notify_drained = True
            return
        delivery.tries += 1
        box = recipient.mailbox
        deadline = now + self._ack_timeout_ms
        if delivery.tries > 1:
            deadline += REDELIVERY.delay_ms(delivery.tries - 1, context.entropy.fraction())
        delivery.sent = now
        delivery.deadline = deadline
        box.inflight[delivery.id] = delivery
        if deadline < box.next_retry:
            box.next_retry = deadline
        if message.expires < box.next_expiry:
            box.next_expiry = message.expires

    def _hand(self, peer: Peer, delivery: Delivery) -> None:
        """To a client that is given messages in words of its own: those of a turn together, unless they are many bytes."""
        stream, seq = delivery.stream, delivery.seq
        delivery.attempts = attempt = delivery.attempts + 1
        if seq > stream.wire_seq:
            stream.wire_seq = seq
        if attempt > 1:
            self._journal.noted(delivery, "resent", f"attempt {attempt}")
        elif not stream.sent_at:
            self._journal.sent(stream)
        if not peer.handed:
            self._handing.append(peer)
        peer.handed.append(delivery)
        peer.handed_bytes += len(delivery.message.row.tail)
        if peer.handed_bytes > _HANDED_BYTES:
            peer.hand_over()

    def _hand_over(self) -> None:
        handing, self._handing = self._handing, []
        for peer in handing:
            peer.hand_over()

    # --- answers ----------------------------------------------------------------------------------------------------

    def acknowledge(self, recipient: Agent, ack: payloads.Ack) -> None:
        box = recipient.mailbox
        delivery = box.inflight.pop(ack.ack_id, None)
        if delivery is None:  # acknowledged before, or the answer to a question whose delivery is settled
            self._correlations.answer_by_ack(recipient, None, ack)
            return
        if box.waiting or box.told_busy:
            self._to_pump[recipient.key] = recipient
        if delivery.replay:
            return
        message = delivery.message
        if recipient.loop is not None:
            self._loops.heard(recipient.loop, delivery)
        if box.waiting:  # how fast it is matters while somebody waits
            box.mean_ack_ms += (self._context.steady_ms - delivery.sent - box.mean_ack_ms) / 16
        if ack.door is None:
            self._settle_acknowledged(delivery)
            self._unpublished.append(delivery)
        else:
            self._settle_injected(delivery, ack.door, ack.evidence)
            publish_delivered(self._context, [delivery], ack.door, ack.evidence)
        if ack.correlationId is not None and self._correlations.answer_by_ack(recipient, message.sender, ack):
            return
        if message.requires_ack and not delivery.told:
            self._tell_delivered(delivery, _answer_in(ack))

    def mark_told(self, recipient: Agent, message_id: str) -> None:
        """The recipient answered with a message of its own: its acknowledgement is no second receipt."""
        for delivery in recipient.mailbox.inflight.values():
            if delivery.message.row.id == message_id:
                delivery.told = True

    def refuse(self, recipient: Agent, nack: payloads.Nack) -> None:
        box = recipient.mailbox
        delivery = box.inflight.get(nack.nack_id)
        if delivery is None:
            return
        code = ErrorCode(nack.code) if nack.code in ErrorCode.__members__ else ErrorCode.REJECTED
        if code.retryable:
            wait_ms = _BUSY_RETRY_MS if nack.retry_after_ms is None else nack.retry_after_ms
            delivery.tries = max(0, delivery.tries - 1)  # being busy is no failed attempt
            delivery.deadline = self._context.steady_ms + wait_ms
            box.next_retry = min(box.next_retry, delivery.deadline)
            self._journal.noted(delivery, "busy", f"again in {wait_ms} ms")
            return
        del box.inflight[nack.nack_id]
        self._to_pump[recipient.key] = recipient
        if delivery.replay:
            return
        delivery.stream.heard_seq = max(delivery.stream.heard_seq, delivery.seq)
        self._journal.ended(delivery, "rejected", code.value)
        self._settle(delivery)
        said = nack.message or f"{recipient.name} refused the message."
        error = RelayError(ErrorCode.REJECTED, said)
        if nack.details:
            error.details = nack.details
        self._journal.then(lambda: self._tell_refused(delivery, error))

    def settle_up_to(self, recipient: Agent, topic: str, sender_key: str, seq: int) -> None:
        """A RESUME says how far the recipient has come: that much is acknowledged."""
        for delivery in recipient.mailbox.all_waiting():
            if delivery.seq <= seq and delivery.stream.topic == topic and delivery.message.sender.key == sender_key:
                recipient.mailbox.remove_waiting(delivery)
                self._count_as_acknowledged([delivery])

    # --- time -------------------------------------------------------------------------------------------------------

    def clock_says(self, now: int) -> None:
        done = []
        for key, recipient in self._owing.items():
            box = recipient.mailbox
            if box.next_expiry <= now:
                self._expire(recipient, now)
            if box.next_retry <= now:
                self._retry(recipient, now)
            if box.idle and not (recipient.peer is not None and recipient.peer.unwritten):
                box.next_retry = box.next_expiry = NEVER
                done.append(key)
        for key in done:
            self._owing.pop(key).mailbox.owing = False

    def _retry(self, recipient: Agent, now: int) -> None:
        box, peer = recipient.mailbox, recipient.peer
        box.next_retry = NEVER
        if peer is None or not peer.active:
            return
        full = peer.connection.unsent_bytes > FULL_BUFFER_BYTES
        for delivery in list(box.inflight.values()):
            if delivery.deadline <= now:
                if full:  # it has not even read what it was sent; more of the same would not help
                    delivery.deadline = now + self._ack_timeout_ms
                elif delivery.tries >= self._context.limits.max_attempts:
                    delivery.deadline = NEVER
                    self._journal.noted(delivery, "unanswered", f"{delivery.tries} attempts on this connection")
                else:
                    self._send(peer, delivery)
            box.next_retry = min(box.next_retry, delivery.deadline)

    def _expire(self, recipient: Agent, now: int) -> None:
        box = recipient.mailbox
        ended = [delivery for delivery in box.all_waiting() if delivery.message.expires <= now]
        for delivery in ended:
            box.remove_waiting(delivery)
        on_wire = [delivery for delivery in box.inflight.values() if delivery.message.expires <= now]
        for delivery in on_wire:
            del box.inflight[delivery.id]
        for delivery in ended + on_wire:
            if not delivery.replay:
                self._bury(delivery)
        left = [*box.all_waiting(), *box.inflight.values()]
        box.next_expiry = min((delivery.message.expires for delivery in left), default=NEVER)
        self._to_pump[recipient.key] = recipient

    def _bury(self, delivery: Delivery) -> None:
        """Its time is over: a dead letter; and once that is durable, so that it stays dead, the sender learns it."""
        self._journal.ended(delivery, "expired", f"after {delivery.attempts} attempts")
        self._journal.dead(delivery, ErrorCode.DELIVERY_TIMEOUT.value)
        self._settle(delivery)
        name = delivery.recipient.name
        error = RelayError(ErrorCode.DELIVERY_TIMEOUT, f"{name} did not acknowledge the message before its time was over.")

        def say_so() -> None:
            self._context.log.note("dead_letter", message_id=delivery.message.row.id, to=name, attempts=delivery.attempts)
            self._tell_refused(delivery, error)

        self._journal.then(say_so)

    def _count_as_acknowledged(self, deliveries: list[Delivery]) -> None:
        counted = [delivery for delivery in deliveries if not delivery.replay]
        for delivery in counted:
            if delivery.recipient.loop is not None:
                self._loops.heard(delivery.recipient.loop, delivery)
            self._settle_acknowledged(delivery)
            if delivery.message.requires_ack:
                self._tell_delivered(delivery, {})
        publish_delivered(self._context, counted)

    # --- the one way out ----------------------------------------------------------------------------------------------

    def _settle_acknowledged(self, delivery: Delivery) -> None:
        stream, seq = delivery.stream, delivery.seq
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
        message = delivery.message
        message.open = still_open = message.open - 1
        if not still_open:
            self._journal.closed(message)

    def _settle_injected(self, delivery: Delivery, door: str, evidence: str | None) -> None:
        """Acknowledged with what was seen of it: that is a step of the trail by itself, in place of the plain one."""
        delivery.stream.heard_seq = max(delivery.stream.heard_seq, delivery.seq)
        self._journal.ended(delivery, "injected", encode_seen(door, evidence))
        self._settle(delivery)

    def _settle(self, delivery: Delivery) -> None:
        delivery.stream.settle(delivery.seq)
        self._close(delivery.message)

    def _close(self, message: Message) -> None:
        message.open -= 1
        if not message.open:
            self._journal.closed(message)

    def _tell_delivered(self, delivery: Delivery, more: dict[str, Any]) -> None:
        row = delivery.message.row
        payload = {
            "ack_id": row.client_id,
            "stage": "delivered",
            "message_id": row.id,
            "by": delivery.recipient.name,
            "seq": delivery.seq,
        }
        tell(self._context, delivery.message.sender, "ACK", payload | more)

    def _tell_refused(self, delivery: Delivery, error: RelayError) -> None:
        row, sender = delivery.message.row, delivery.message.sender
        payload = error_payload(error, sender.traits.version) | {
            "nack_id": row.client_id,
            "message_id": row.id,
            "to": delivery.recipient.name,
        }
        tell(self._context, sender, "NACK", payload)


def _answer_in(ack: payloads.Ack) -> dict[str, Any]:
    """What a recipient's ACK says beyond "I have it"."""
    answer: dict[str, Any] = {}
    if ack.correlationId is not None:
        answer["correlationId"] = ack.correlationId
    if len(ack.response):
        answer["response"] = ack.response
    if len(ack.responseData):
        answer["responseData"] = ack.responseData
    return answer | seen_in(ack)
