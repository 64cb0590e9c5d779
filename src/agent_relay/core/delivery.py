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
from agent_relay.core.dispatch import Dispatch
from agent_relay.core.journal import Journal
from agent_relay.core.loops import Loops
from agent_relay.core.mailbox import NEVER
from agent_relay.core.notices import tell
from agent_relay.core.publishing import publish_delivered
from agent_relay.protocol.errors import ErrorCode, RelayError, error_payload
from agent_relay.protocol.reports import encode_seen

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery, Message
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import payloads

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
        self._dispatch = Dispatch(context, journal)
        self._ack_timeout_ms = context.limits.ack_timeout_ms
        self._to_pump: dict[str, Agent] = {}  # recipients that may have something to send at the end of this turn
        self._owing: dict[str, Agent] = {}  # recipients with anything waiting or on the wire, for the clock

    # --- in ---------------------------------------------------------------------------------------------------------

    def take_over(self, deliveries: list[Delivery]) -> None:
        """Messages are durable: the places reserved for them are their own, and from now on they are owed."""
        self.admit(deliveries, reserved=1)

    def admit(self, deliveries: list[Delivery], reserved: int = 0) -> None:
        """Sends them where nothing waits before them and there is room on the wire; queues the others. `reserved` is 1 where a
        place was reserved for each."""
        now, put = self._context.steady_ms, self._dispatch.put
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
                and not box.burying
                and recipient.loop is None
                and len(box.inflight) + len(peer.outgoing) < peer.window
                and peer.connection.unsent_bytes <= FULL_BUFFER_BYTES
                and message.expires > now
            ):
                put(peer, delivery)
            else:
                box.push(delivery)
                self._to_pump[recipient.key] = recipient
                if recipient.loop is not None:
                    self._loops.arrived(recipient.loop, delivery)
        self._dispatch.send()

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

    # --- given up -----------------------------------------------------------------------------------------------------

    def owed_to(self, recipient: Agent) -> list[Delivery]:
        box = recipient.mailbox
        handed = [] if recipient.peer is None else recipient.peer.unwritten
        return [delivery for delivery in [*handed, *box.inflight.values(), *box.all_waiting()] if not delivery.replay]

    def owed_by(self, sender: Agent) -> list[Delivery]:
        """What it sent and nobody has acknowledged."""
        boxes = [recipient for recipient in self._owing.values() if recipient is not sender]
        return [each for recipient in boxes for each in self.owed_to(recipient) if each.message.sender is sender]

    def abandon(self, deliveries: list[Delivery]) -> int:
        """On the owner's order they are not delivered any more; whoever sent them and still is somebody is told. How many."""
        for delivery in deliveries:
            recipient = delivery.recipient
            if recipient.peer is not None and any(each is delivery for each in recipient.peer.unwritten):
                delivery.replay = True  # it stays in its place: how many were read is counted
            elif recipient.mailbox.inflight.pop(delivery.id, None) is None:
                recipient.mailbox.remove_waiting(delivery)
            error = RelayError(ErrorCode.REJECTED, f"The owner of this relay has erased what was to go to {recipient.name}.")
            self._end_unread(delivery, "erased", "", error)
        return len(deliveries)

    # --- out --------------------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """At the end of a turn: fills the windows of everyone something changed for."""
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
                while (
                    box.waiting
                    and not box.burying
                    and len(inflight) + len(peer.outgoing) < peer.window
                    and connection.unsent_bytes <= FULL_BUFFER_BYTES
                ):
                    if standing is not None and not self._loops.lets_go(standing, box.first()):
                        break
                    delivery = box.pop()
                    if delivery.message.expires > now:
                        self._dispatch.put(peer, delivery)
                    else:
                        self._bury_expired(delivery)
                self._dispatch.send()
                if box.waiting and connection.unsent_bytes > FULL_BUFFER_BYTES:
                    connection.notify_drained = True
            if box.told_busy:
                self._backpressure.relax(recipient)

    def writable(self, peer: Peer) -> None:
        """All bytes given to this connection have left: deliveries that nobody will acknowledge are done, unless their client
        shows otherwise that it has read them."""
        if peer.agent is None:
            return
        if peer.deliver is None:
            unwritten, peer.unwritten = peer.unwritten, []
            self._count_as_acknowledged(unwritten)
        self._to_pump[peer.agent.key] = peer.agent

    def read(self, peer: Peer, count: int) -> None:
        """A client that is handed messages in words of its own has read so many more of them."""
        read, peer.unwritten = peer.unwritten[:count], peer.unwritten[count:]
        self._count_as_acknowledged(read)

    # --- answers ----------------------------------------------------------------------------------------------------

    def acknowledge(self, recipient: Agent, acks: list[payloads.Ack]) -> None:
        box, standing, settled = recipient.mailbox, recipient.loop, []
        inflight = box.inflight
        for ack in acks:
            delivery = inflight.pop(ack.ack_id, None)
            if delivery is None:  # acknowledged before, or the answer to a question whose delivery is settled
                self._correlations.answer_by_ack(recipient, None, ack)
                continue
            if delivery.replay:
                continue
            if standing is not None:
                self._loops.heard(standing, delivery)
            if box.waiting:  # how fast it is matters while somebody waits
                box.mean_ack_ms += (self._context.steady_ms - delivery.sent - box.mean_ack_ms) / 16
            if ack.door is None:
                settled.append(delivery)
            else:
                self._settle_injected(delivery, ack.door, ack.evidence)
            if ack.correlationId is not None and self._correlations.answer_by_ack(recipient, delivery.message.sender, ack):
                continue
            if delivery.message.requires_ack:
                self._tell_delivered(delivery, _answer_in(ack))
        self._settle_acknowledged(settled)
        if box.waiting or box.told_busy:
            self._to_pump[recipient.key] = recipient

    def answered(self, recipient: Agent, message_id: str) -> None:
        """The recipient answered with a message of its own, so it has this one, whether it says so or not."""
        box = recipient.mailbox
        for delivery in [delivery for delivery in self.owed_to(recipient) if delivery.message.row.id == message_id]:
            if box.inflight.pop(delivery.id, None) is None:
                box.remove_waiting(delivery)
            self._settle_acknowledged([delivery])
            self._to_pump[recipient.key] = recipient

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
        """A RESUME says how far the recipient has come: that much is acknowledged, but for what has expired. Of that nobody can
        tell any more whether it was read or passed over because its time was up."""
        now = self._context.steady_ms
        for delivery in recipient.mailbox.all_waiting():
            if delivery.seq <= seq and delivery.stream.topic == topic and delivery.message.sender.key == sender_key:
                recipient.mailbox.remove_waiting(delivery)
                if delivery.message.expires > now or delivery.replay:
                    self._count_as_acknowledged([delivery])
                else:
                    self._bury_expired(delivery)

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
        if peer is None or not peer.active:
            box.next_retry = NEVER
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
                    self._dispatch.put(peer, delivery)
        self._dispatch.send()
        box.next_retry = min((delivery.deadline for delivery in box.inflight.values()), default=NEVER)

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
                self._bury_expired(delivery)
        left = [*box.all_waiting(), *box.inflight.values()]
        box.next_expiry = min((delivery.message.expires for delivery in left), default=NEVER)
        self._to_pump[recipient.key] = recipient

    def _bury_expired(self, delivery: Delivery) -> None:
        sentence = f"{delivery.recipient.name} did not acknowledge the message before its time was over."
        error = RelayError(ErrorCode.DELIVERY_TIMEOUT, sentence)
        self._bury(delivery, "expired", f"after {delivery.attempts} attempts", error)

    def bury_all(self, recipient: Agent) -> None:
        """There is no such agent any more: whoever has its name next must not get its mail."""
        for delivery in recipient.mailbox.take_all():
            if not delivery.replay:
                error = RelayError(ErrorCode.AGENT_NOT_FOUND, f"{recipient.name} was removed before it got the message.")
                self._bury(delivery, "removed", "the owner freed its name", error)

    def _bury(self, delivery: Delivery, event: str, detail: str, error: RelayError) -> None:
        """A dead letter."""
        self._journal.dead(delivery, error.code.value)
        name, id_, attempts = delivery.recipient.name, delivery.message.row.id, delivery.attempts
        self._journal.then(lambda: self._context.log.note("dead_letter", message_id=id_, to=name, attempts=attempts))
        self._end_unread(delivery, event, detail, error)

    def _end_unread(self, delivery: Delivery, event: str, detail: str, error: RelayError) -> None:
        """It is given up. Once that is durable, so that it stays over, its sender learns it; and until then nothing that comes
        after it goes to the recipient, whose word for what it has read up to there would be taken for this one, too."""
        recipient = delivery.recipient
        self._journal.ended(delivery, event, detail)
        self._settle(delivery)
        recipient.mailbox.burying += 1

        def is_over() -> None:
            recipient.mailbox.burying -= 1
            self._to_pump[recipient.key] = recipient
            self._tell_refused(delivery, error)

        self._journal.then(is_over)

    def _count_as_acknowledged(self, deliveries: list[Delivery]) -> None:
        counted = [delivery for delivery in deliveries if not delivery.replay]
        for delivery in counted:
            if delivery.recipient.loop is not None:
                self._loops.heard(delivery.recipient.loop, delivery)
            if delivery.message.requires_ack:
                self._tell_delivered(delivery, {})
        self._settle_acknowledged(counted)

    # --- the one way out ----------------------------------------------------------------------------------------------

    def _settle_acknowledged(self, deliveries: list[Delivery]) -> None:
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
            if not still_open:
                closed.append(message.row.number)
        self._journal.closed(closed)
        publish_delivered(self._context, deliveries)

    def _settle_injected(self, delivery: Delivery, door: str, evidence: str | None) -> None:
        """Acknowledged with what was seen of it: that is a step of the trail by itself, in place of the plain one."""
        delivery.stream.heard_seq = max(delivery.stream.heard_seq, delivery.seq)
        self._journal.ended(delivery, "injected", encode_seen(door, evidence))
        self._settle(delivery)
        publish_delivered(self._context, [delivery], door, evidence)

    def _settle(self, delivery: Delivery) -> None:
        delivery.stream.settle(delivery.seq)
        self._close(delivery.message)

    def _close(self, message: Message) -> None:
        message.open -= 1
        if not message.open:
            self._journal.closed([message.row.number])

    def _tell_delivered(self, delivery: Delivery, more: dict[str, Any]) -> None:
        """Once it is durable: after a crash the message would go out again, and might end otherwise."""
        row, sender = delivery.message.row, delivery.message.sender
        payload = {
            "ack_id": row.client_id,
            "stage": "delivered",
            "message_id": row.id,
            "by": delivery.recipient.name,
            "seq": delivery.seq,
        }
        self._journal.then(lambda: tell(self._context, sender, "ACK", payload | more))

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
