"""After a restart: from what is in the store to a relay that goes on as if it had never stopped."""

from __future__ import annotations

from agent_relay.core.agents import restore_agent
from agent_relay.core.context import Context
from agent_relay.core.delivery import Ledger
from agent_relay.core.journal import Journal
from agent_relay.core.messages import Delivery, Message, delivery_id
from agent_relay.core.registry import Registry
from agent_relay.core.streams import restore_stream
from agent_relay.core.tokens import Tokens
from agent_relay.ports.store import MessageRow, Snapshot
from agent_relay.protocol.encode import read_tail
from agent_relay.protocol.names import fold_name


def recover(snapshot: Snapshot, context: Context, registry: Registry, tokens: Tokens, journal: Journal, ledger: Ledger) -> None:
    for row in snapshot.agents:
        agent = restore_agent(row, context.limits.dedup_ids)
        if row.connected:  # its connection ended with the daemon, and nobody could write down when
            agent.last_seen_at = context.wall_ms
        registry.add(agent)
        tokens.adopt(agent)
    for subscription in snapshot.subscriptions:
        if (agent_ := registry.find(subscription.agent)) is not None:
            registry.subscribe(agent_, subscription.pattern)
    for member in snapshot.members:
        if not member.agent:
            registry.open_channel(member.channel).has_history = True
        elif (agent_ := registry.find(member.agent)) is not None:
            registry.join(agent_, member.channel)
    for stream_row in snapshot.streams:
        if (agent_ := registry.find(stream_row.recipient)) is not None:
            agent_.streams[(stream_row.topic, fold_name(stream_row.sender))] = restore_stream(stream_row)
    for seen in snapshot.seen_ids:
        agent_ = registry.find(seen.sender)
        if agent_ is not None and seen.number >= agent_.traits.first_number:
            agent_.seen.remember(seen.client_id, seen.number)
    journal.resume_from(snapshot)
    backlog = frozenset(snapshot.backlog)  # there may be as many of either as messages came in a busy moment
    for message_row in snapshot.open_messages:
        _reopen(message_row, context, registry, journal, ledger, in_backlog=message_row.number in backlog)


def _reopen(row: MessageRow, context: Context, registry: Registry, journal: Journal, ledger: Ledger, *, in_backlog: bool) -> None:
    """Queues the message for everyone who has not settled it; its numbers are taken, whoever settled it."""
    sender = registry.find(row.sender)
    owed = []
    for place, (name, seq) in enumerate(row.recipients):
        recipient = registry.find(name)
        if recipient is None or sender is None:
            continue
        stream = recipient.stream_from(sender, row.topic, context.first_seq)
        stream.last_seq = max(stream.last_seq, seq)
        if not stream.is_done(seq):
            owed.append((place, recipient, stream, seq))
    if sender is None or not owed:
        if in_backlog:
            journal.finished(row.number)
        return
    age_ms = max(0, context.wall_ms - row.ts)
    left_ms = min(max(0, row.expires_at - context.wall_ms), row.expires_at - row.ts)
    to = row.target if row.target[:1] in {"*", "#"} else None
    message = Message(
        row, sender, [recipient for _, recipient, _, _ in owed], shared=to is not None or not row.target, to=to,
        requires_ack=_requires_ack(row),
        accepted=context.steady_ms - age_ms, expires=context.steady_ms + left_ms, open=len(owed),
    )  # fmt: skip
    if not in_backlog:
        journal.opened([message])
    deliveries = []
    for place, recipient, stream, seq in owed:
        sent_before = 1 if seq <= stream.wire_seq else 0  # it was on the wire: this will not be the first time
        deliveries.append(Delivery(message, recipient, stream, seq, delivery_id(row, place), attempts=sent_before))
    ledger.admit(deliveries)


def _requires_ack(row: MessageRow) -> bool:
    meta = read_tail(row.tail).get("payload_meta") or {}
    return meta.get("requires_ack") is True
