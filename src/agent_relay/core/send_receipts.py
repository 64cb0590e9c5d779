"""Receipts for accepted messages: their senders are told when they are durable and on their way, or that they are not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_relay.core.announcements import publish_exchanged
from agent_relay.core.backpressure import Backpressure
from agent_relay.core.context import Context
from agent_relay.core.correlation import Correlations
from agent_relay.core.delivery import Ledger
from agent_relay.core.journal import Journal
from agent_relay.core.messages import Message, MessageExtras
from agent_relay.ports.store import MessageRow, StoreError, TrailRow
from agent_relay.protocol.encode import encode_stored
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.reports import read_seen

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.messages import Delivery
    from agent_relay.core.peer import Peer

_STORE_RETRY_MS = 1_000


class SendReceipts:
    def __init__(
        self, context: Context, journal: Journal, ledger: Ledger, correlations: Correlations, backpressure: Backpressure
    ) -> None:
        self._context = context
        self._journal = journal
        self._ledger = ledger
        self._correlations = correlations
        self._backpressure = backpressure
        self.accepted = 0
        self.refused = 0

    def stored(self, messages: list[Message], deliveries: list[Delivery]) -> None:
        """Everybody who sent one is answered, and then they go out."""
        wall_text, special = self._context.wall_text, []
        answered: Peer | None = None
        answers: list[bytes] = []  # to that one
        sender: Agent | None = None  # of the last message; they come in rows
        pending: dict[str, Message] = {}
        used: dict[str, int] = {}
        for message in messages:
            row, peer, extras = message.row, message.peer, message.extras
            client_id = row.client_id
            if peer is None or peer.dedups:
                if message.sender is not sender:
                    if sender is not None:
                        sender.seen.let_go()
                    sender = message.sender
                    pending, used = sender.pending, sender.seen.younger
                del pending[client_id]
                used[client_id] = row.number
            if extras is not None:
                special.append((message, extras))
            if peer is not None and peer.acks and not peer.closed and (extras is None or extras.answer is None):
                if peer is not answered:
                    if answered is not None:
                        answered.connection.send_all(answers)
                    answered, answers = peer, []
                count = len(row.recipients) - message.copies
                answers.append(encode_stored(peer.version, wall_text, client_id, row.id, count, row.queued, row.skipped))
        if sender is not None:
            sender.seen.let_go()
        if answered is not None:
            answered.connection.send_all(answers)
        for message, extras in special:
            self._answer_more(message, extras)
        self.accepted += len(messages)
        self._journal.opened(messages)
        self._ledger.take_over(deliveries)
        for message, extras in special:
            self._correlate(message, extras)
        publish_exchanged(self._context, messages)

    def _answer_more(self, message: Message, extras: MessageExtras) -> None:
        if extras.answer is not None:
            extras.answer(message.row)
        for peer in extras.duplicates:
            self.say_stored_again(peer, message.row)

    def _correlate(self, message: Message, extras: MessageExtras) -> None:
        sender, row = message.sender, message.row
        if extras.sync is not None and extras.sync.blocking:
            self._correlations.ask(sender, row, extras.sync)
        if extras.reply_to is not None and self._correlations.answer_by_message(sender, extras.reply_to, row):
            self._ledger.answered(sender, extras.reply_to)

    def failed(self, messages: list[Message], error: StoreError) -> None:
        refusal = not_stored(error)
        for message in messages:
            row = message.row
            for agent in message.recipients:
                agent.mailbox.release(row.tail)
            message.sender.pending.pop(row.client_id, None)
            extras = message.extras or MessageExtras()
            if extras.answer is not None:
                extras.answer(error)
            for peer in (message.peer if extras.answer is None else None, *extras.duplicates):
                if peer is not None and not peer.closed:
                    peer.say_nack(refusal, row.client_id)
        for recipient in {agent.key: agent for message in messages for agent in message.recipients}.values():
            self._backpressure.relax(recipient)
        self.refused += len(messages)

    def say_stored_again(self, peer: Peer, row: MessageRow) -> None:
        if peer.acks:
            peer.say_stored_again(row)


def not_stored(why: object) -> RelayError:
    return RelayError(
        ErrorCode.SERVICE_UNAVAILABLE,
        f"The message could not be stored ({why}); nothing was sent. Try again.",
        retry_after_ms=_STORE_RETRY_MS,
    )


def say_outcomes(peer: Peer, row: MessageRow, trail: list[TrailRow]) -> None:
    """For each recipient that has settled the message, the frame its sender was sent then."""
    about = {"message_id": row.id}
    for name, seq in row.addressed:
        events = {step.event for step in trail if step.recipient == name}
        if "rejected" in events:
            peer.say_nack(RelayError(ErrorCode.REJECTED, f"{name} refused the message."), row.client_id, to=name, **about)
        elif "expired" in events:
            peer.say_nack(RelayError(ErrorCode.DELIVERY_TIMEOUT), row.client_id, to=name, **about)
        elif "acknowledged" in events or "injected" in events:
            seen = next((step.detail for step in trail if step.recipient == name and step.event == "injected"), "")
            peer.say("ACK", {"ack_id": row.client_id, "stage": "delivered", "by": name, "seq": seq} | about | read_seen(seen))
