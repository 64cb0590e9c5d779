"""States of a message with one of its recipients: one word for each state, everywhere (docs/glossary.md)."""

from __future__ import annotations

from enum import StrEnum


class MessageState(StrEnum):
    """In order. `received` and `handed` are known of wrapped agents alone, and only where receipts are asked for."""

    QUEUED = "queued"  # it waits at the daemon
    SENT = "sent"  # on its way to the recipient
    RECEIVED = "received"  # the recipient's wrapper has it
    HANDED = "handed"  # the program has it, through a door
    DELIVERED = "delivered"  # acknowledged: the recipient has it
    READ = "read"  # the agent was seen to read it
    REJECTED = "rejected"  # the recipient refused it
    DEAD = "dead"  # a dead letter
    UNKNOWN = "unknown"  # the recipient is not known any more
