"""After a restart: from what is in the store to a relay that goes on as if it had never stopped.

Only what there is little of is read now. Messages that wait, and the ids a sender has used, are read when their agent comes.
"""

from __future__ import annotations

from agent_relay.core.agents import restore_agent
from agent_relay.core.context import Context
from agent_relay.core.delivery import Ledger
from agent_relay.core.journal import Journal
from agent_relay.core.registry import Registry
from agent_relay.core.streams import restore_stream
from agent_relay.core.tokens import Tokens
from agent_relay.ports.store import Snapshot
from agent_relay.protocol.names import fold_name

_UNWRITTEN = 10_000  # more messages than go out to one agent between two notes of it


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
    cut_off = {fold_name(row.name) for row in snapshot.agents if row.connected}
    for stream_row in snapshot.streams:
        if (agent_ := registry.find(stream_row.recipient)) is not None:
            stream = restore_stream(stream_row, _UNWRITTEN if agent_.key in cut_off else 0)
            agent_.streams[(stream_row.topic, fold_name(stream_row.sender))] = stream
            if stream.wire_seq != stream_row.wire_seq:
                journal.changed(stream)
    for waiting in snapshot.waiting:
        if (agent_ := registry.find(waiting.recipient)) is not None:
            ledger.restore(agent_, waiting.count, waiting.size)
    journal.resume_from(snapshot)
