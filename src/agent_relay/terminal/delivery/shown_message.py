"""A message of the daemon as the agent is to see it."""

from __future__ import annotations

import uuid

from agent_relay.sdk.messages import Message
from agent_relay.terminal.delivery.message_text import Room, Shown, quote, render
from agent_relay.terminal.doors.door import DoorMessage

_NAMESPACE = uuid.UUID("6f1d3a52-6a0e-4b5f-9a3c-8c2f0c6f7a11")


def shown(message: Message) -> Shown:
    to = message.to if isinstance(message.to, str) else ""
    return Shown(
        id=message.id,
        sender=message.from_,
        body=message.body,
        kind=message.kind,
        thread=message.thread,
        channel=to if to.startswith("#") else "to all" if to == "*" else None,
        priority=message.meta.priority,
        awaits_answer=message.correlation_id is not None,
        correlation=message.correlation_id,
    )


def door_message(message: Message, prefix: str, doubted_door: str = "") -> DoorMessage:
    """`doubted_door`: the one that may have given it to the agent before."""
    return DoorMessage(
        id=message.id,
        uuid=str(uuid.uuid5(_NAMESPACE, message.id)),
        sender=message.from_,
        body=quote(message.body, prefix),
        text=render(shown(message), Room(), prefix, doubted_door),
    )
