"""The delivery ledger: what is owed to whom, until it is acknowledged, refused or dead.

A delivery waits in its recipient's mailbox, goes on the wire inside the window, is sent again until it is answered or
tried often enough on this connection, and waits anew when the connection ends. It leaves the ledger exactly once, in one of
the ways of `core.endings`; with its agent, by `core.owed_mail`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from agent_relay.core.backpressure import Backpressure
from agent_relay.core.context import Context
from agent_relay.core.correlation import Correlations, seen_in
from agent_relay.core.endings import Endings
from agent_relay.core.journal import Journal
from agent_relay.core.loops import Loops
from agent_relay.core.mailbox import NEVER
from agent_relay.core.outgoing import Outgoing
from agent_relay.core.owed_mail import OwedMail
from agent_relay.core.rest import Rest
from agent_relay.protocol.errors import ErrorCode, RelayError

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery
    from agent_relay.core.peer import Peer
    from agent_relay.core.streams import Stream
    from agent_relay.protocol import payloads

_EXPIRED_AT_ONCE = 1_000  # messages that end in one tick; others wait for them some 20 ms
_REST_EXPIRES_EVERY_MS = 1_000
_HERE = 50_000  # messages that wait in memory, in all queues together …
_HERE_BYTES = 64 * 1024 * 1024  # … and what they may hold
_BUSY_RETRY_MS = 1_000  # for a recipient that says AGENT_BUSY and not for how long


class Ledger:
    def __init__(
        self, context: Context, journal: Journal, correlations: Correlations, backpressure: Backpressure, loops: Loops, rest: Rest
    ) -> None:
        self._context = context
        self._journal = journal
        self._correlations = correlations
        self._backpressure = backpressure
        self._loops = loops
        self._outgoing = Outgoing(context, journal)
        self._ack_timeout_ms = context.limits.ack_timeout_ms
        self._rest = rest
        self._endings = Endings(context, journal, loops, self.wake)
        self._is_crowded = False  # all queues together are long: what comes now waits in the store
        self._rest_expires = context.steady_ms  # when the store is asked next what has expired there
        self._to_pump: dict[str, Agent] = {}  # recipients that may have something to send at the end of this turn
        self._owing: dict[str, Agent] = {}  # recipients with anything waiting or on the wire, for the clock
        self.owed = OwedMail(journal, rest, self._endings, self._owing)

    # --- in ---------------------------------------------------------------------------------------------------------

    def take_over(self, deliveries: list[Delivery]) -> None:
        """Messages are durable: the places reserved for them are their own, and from now on they are owed."""
        self.admit(deliveries, reserved=1)

    def admit(self, deliveries: list[Delivery], reserved: int = 0) -> None:
        """Sends them where nothing waits before them and there is room on the wire; queues the others. `reserved` is 1 where a
        place was reserved for each."""
        now, put = self._context.steady_ms, self._outgoing.put
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
                and not box.holds
                and recipient.loop is None
                and len(box.inflight) + len(peer.outgoing) < peer.window
                and not peer.connection.is_full
                and message.expires > now
            ):
                put(peer, delivery)
            elif reserved and not (box.has_room and (recipient.loop is not None or not self._is_crowded)):
                self._rest.leave(delivery)
                self._to_pump[recipient.key] = recipient
            else:
                self._queue(delivery)
        self._outgoing.send()

    def _queue(self, delivery: Delivery) -> None:
        recipient = delivery.recipient
        recipient.mailbox.push(delivery)
        self._to_pump[recipient.key] = recipient
        if recipient.loop is not None:
            self._loops.arrived(recipient.loop, delivery)

    def restore(self, recipient: Agent, count: int, size: int) -> None:
        """So many messages wait for it in the store, of before this start."""
        recipient.mailbox.leave(0, size, count)
        recipient.mailbox.owing = True
        self._owing[recipient.key] = recipient

    def prepare(self, recipient: Agent, done: Callable[[], None]) -> None:
        """Before it is told that it is here: so that what waited for it comes first, whatever it says then."""

        def took(page: list[Delivery] | None) -> None:
            self._take_page(recipient, page or [])
            if page is None:  # the next tick asks again
                done()
            else:
                self.prepare(recipient, done)

        if recipient.mailbox.page:
            self._rest.read(recipient, took)
        elif uncounted := [delivery for delivery in recipient.mailbox.all_waiting() if not is_counted(delivery)]:
            self._count(uncounted, done)
        else:
            done()

    def _take_page(self, recipient: Agent, deliveries: list[Delivery]) -> None:
        """The next of what waited in the store, or what has to be looked at again."""
        self._to_pump[recipient.key] = recipient
        acknowledged, now = [], self._context.steady_ms
        for delivery in deliveries:
            if delivery.seq > delivery.stream.claimed_seq:
                self._queue(delivery)
            elif delivery.message.expires > now:
                acknowledged.append(delivery)
            else:
                self._endings.expired(delivery)
        self._endings.count_as_acknowledged(acknowledged)

    def _took_page(self, recipient: Agent, page: list[Delivery] | None) -> None:
        if page is not None:  # else the next tick asks again
            self._take_page(recipient, page)

    def wake(self, recipient: Agent) -> None:
        self._to_pump[recipient.key] = recipient

    def disconnected(self, recipient: Agent, peer: Peer) -> None:
        """Puts what was on the wire back into the queue, in its old order."""
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
                while box.lanes and not box.holds and len(inflight) + len(peer.outgoing) < peer.window and not connection.is_full:
                    if standing is not None and not self._loops.lets_go(standing, box.first()):
                        break
                    if not is_counted(box.first()):
                        self._count_waiting(recipient)
                        break
                    delivery = box.pop()
                    if delivery.message.expires > now:
                        self._outgoing.put(peer, delivery)
                    else:
                        self._endings.expired(delivery)
                self._outgoing.send()
                self._rest.read(recipient, partial(self._took_page, recipient))
                if box.waiting and connection.is_full:
                    connection.notify_drained = True
            if box.told_busy:
                self._backpressure.relax(recipient)

    def _count_waiting(self, recipient: Agent) -> None:
        """Lets what was sent before go out when its next attempt is durable: so attempts go on counting over a crash."""
        box = recipient.mailbox
        box.holds += 1

        def counted() -> None:
            box.holds -= 1
            self._to_pump[recipient.key] = recipient

        self._count([delivery for delivery in box.all_waiting() if not is_counted(delivery)], counted)

    def _count(self, deliveries: list[Delivery], then: Callable[[], None]) -> None:
        for delivery in deliveries:
            self._journal.noted(delivery, "resent", f"attempt {delivery.attempts + 1}")

        def durable() -> None:
            for delivery in deliveries:
                delivery.counted = True
            then()

        self._journal.then(durable)

    def writable(self, peer: Peer) -> None:
        """All bytes given to this connection have left: deliveries that nobody will acknowledge are done, unless their client
        shows otherwise that it has read them."""
        if peer.agent is None:
            return
        if peer.deliver is None:
            unwritten, peer.unwritten = peer.unwritten, []
            self._endings.count_as_acknowledged(unwritten)
        self._to_pump[peer.agent.key] = peer.agent

    def read(self, peer: Peer, count: int) -> None:
        """A client that is handed messages in words of its own has read so many more of them."""
        read, peer.unwritten = peer.unwritten[:count], peer.unwritten[count:]
        self._endings.count_as_acknowledged(read)

    # --- answers ----------------------------------------------------------------------------------------------------

    def acknowledge(self, recipient: Agent, acks: list[payloads.AckPayload]) -> None:
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
                self._endings.injected(delivery, ack.door, ack.evidence)
            if ack.correlationId is not None and self._correlations.answer_by_ack(recipient, delivery.message.sender, ack):
                continue
            if delivery.message.requires_ack:
                self._endings.tell_delivered(delivery, _answer_in(ack))
        self._endings.acknowledged(settled)
        if box.waiting or box.told_busy:
            self._to_pump[recipient.key] = recipient

    def answered(self, recipient: Agent, message_id: str) -> None:
        """The recipient answered with a message of its own, so it has this one, whether it says so or not."""
        found = [delivery for delivery in self.owed.list_to(recipient) if delivery.message.row.id == message_id]
        self.owed.take_out(found)
        self._endings.acknowledged(found)
        self._to_pump[recipient.key] = recipient

    def refuse(self, recipient: Agent, nack: payloads.NackPayload) -> None:
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
        self._endings.settle(delivery)
        said = nack.message or f"{recipient.name} refused the message."
        error = RelayError(ErrorCode.REJECTED, said)
        if nack.details:
            error.details = nack.details
        self._journal.then(lambda: self._endings.tell_refused(delivery, error))

    def settle_up_to(self, recipient: Agent, stream: Stream, seq: int) -> None:
        """A RESUME says how far the recipient has come: that much is acknowledged, but for what has expired. Of that nobody can
        tell any more whether it was read or passed over because its time was up."""
        stream.claimed_seq = max(stream.claimed_seq, seq)
        taken = recipient.mailbox.take(lambda delivery: delivery.stream is stream and delivery.seq <= seq)
        self._take_page(recipient, [delivery for delivery in taken if not delivery.replay])

    # --- time -------------------------------------------------------------------------------------------------------

    def clock_says(self, now: int) -> None:
        done, can_expire, has_rest, here, size = [], _EXPIRED_AT_ONCE, False, 0, 0
        for key, recipient in self._owing.items():
            box = recipient.mailbox
            if box.next_expiry <= now and can_expire > 0:
                can_expire -= self._expire(recipient, now)
            if box.next_retry <= now:
                self._retry(recipient, now)
            here += box.here
            size += box.held_bytes - box.rest_bytes
            if box.rest:
                has_rest = True
                self._to_pump[key] = recipient
            if box.idle and not (recipient.peer is not None and recipient.peer.unwritten):
                box.next_retry = box.next_expiry = NEVER
                done.append(key)
        for key in done:
            self._owing.pop(key).mailbox.owing = False
        self._is_crowded = here > _HERE or size > _HERE_BYTES
        if has_rest and now >= self._rest_expires:
            self._rest_expires = now + _REST_EXPIRES_EVERY_MS
            self._rest.expire(self._bury_all_expired)

    def _bury_all_expired(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            self._endings.expired(delivery)

    def _retry(self, recipient: Agent, now: int) -> None:
        box, peer = recipient.mailbox, recipient.peer
        if peer is None or not peer.active:
            box.next_retry = NEVER
            return
        full, uncounted = peer.connection.is_full, []
        for delivery in list(box.inflight.values()):
            if delivery.deadline <= now:
                if full:  # it has not even read what it was sent; more of the same would not help
                    delivery.deadline = now + self._ack_timeout_ms
                elif delivery.tries >= self._context.limits.max_attempts:
                    delivery.deadline = NEVER
                    self._journal.noted(delivery, "unanswered", f"{delivery.tries} attempts on this connection")
                elif is_counted(delivery):
                    self._outgoing.put(peer, delivery)
                else:
                    delivery.deadline = NEVER
                    uncounted.append(delivery)
        self._outgoing.send()
        if uncounted:
            self._count(uncounted, partial(self._retry_counted, recipient, uncounted))
        box.next_retry = min((delivery.deadline for delivery in box.inflight.values()), default=NEVER)

    def _retry_counted(self, recipient: Agent, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            delivery.deadline = self._context.steady_ms
        self._retry(recipient, self._context.steady_ms)

    def _expire(self, recipient: Agent, now: int) -> int:
        """Returns how many."""
        box = recipient.mailbox
        ended = box.take(lambda delivery: delivery.message.expires <= now)
        on_wire = [delivery for delivery in box.inflight.values() if delivery.message.expires <= now]
        for delivery in on_wire:
            del box.inflight[delivery.id]
        for delivery in ended + on_wire:
            if not delivery.replay:
                self._endings.expired(delivery)
        left = [*box.all_waiting(), *box.inflight.values()]
        box.next_expiry = min((delivery.message.expires for delivery in left), default=NEVER)
        self._to_pump[recipient.key] = recipient
        return len(ended) + len(on_wire)


def is_counted(delivery: Delivery) -> bool:
    return not delivery.attempts or delivery.counted or delivery.replay


def _answer_in(ack: payloads.AckPayload) -> dict[str, Any]:
    """The content of a recipient's ACK beyond "I have it"."""
    answer: dict[str, Any] = {}
    if ack.correlationId is not None:
        answer["correlationId"] = ack.correlationId
    if len(ack.response):
        answer["response"] = ack.response
    if len(ack.responseData):
        answer["responseData"] = ack.responseData
    return answer | seen_in(ack)
