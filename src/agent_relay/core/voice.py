"""The relay's own voice: the sender of what the daemon itself has to say to agents."""

from __future__ import annotations

from agent_relay.core.agents import Agent
from agent_relay.core.context import Context
from agent_relay.core.registry import Registry
from agent_relay.core.sending import Sending
from agent_relay.ports.connection import NOBODY_UID

VOICE = "relay"  # reserved: nobody else can have the name, and nobody can write to it


def find_voice(context: Context, registry: Registry, sending: Sending) -> Agent:
    voice = registry.find(VOICE)
    if voice is None:
        voice = Agent(VOICE, NOBODY_UID, context.wall_ms, context.limits.dedup_ids)
        voice.hidden = True
        registry.add(voice)
    voice.last_seen_at = context.wall_ms
    row = voice.row()
    sending.committer.change(lambda batch: batch.agents.append(row), lambda _error: None)
    return voice
