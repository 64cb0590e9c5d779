"""Words by which a message is known again in a CLI's own record, where that keeps no id of ours."""

from __future__ import annotations

from agent_relay.protocol.short_ids import short_id
from agent_relay.terminal.doors.door import DoorMessage


def mark_of(message: DoorMessage) -> str:
    """What stands in every text by which a message is handed in, and in no other."""
    return f"[{short_id(message.id)}]"


def is_in(message: DoorMessage, text: str) -> bool:
    """Notices of the relay itself have no mark, but a text of their own."""
    return mark_of(message) in text or message.text in text
