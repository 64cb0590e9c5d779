"""A message on its way, and its delivery to each recipient.

Both are msgspec structs because one of each is made per message: they are built in C, and `gc=False` keeps them out of
the collector's sight. They are never part of a cycle that outlives them: settling one takes it out of every container.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_relay.core.mailbox import NEVER
from agent_relay.ports.store import MessageRow, StoreError
from agent_relay.protocol.payloads import DEFAULT_PRIORITY
from agent_relay.protocol.ulid import COUNTER_LIMIT, encode_counter

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.chains import Hop
    from agent_relay.core.peer import Peer
    from agent_relay.core.streams import Stream
    from agent_relay.protocol.payloads import SyncRequest


class MessageExtras(Struct):
    """Fields that few messages have, until they are durable."""

    sync: SyncRequest | None = None
    reply_to: str | None = None
    answer: Callable[[MessageRow | StoreError], None] | None = None  # for whoever is not answered with stored or NACK
    duplicates: list[Peer] = []  # the same SEND came again


class Message(Struct, gc=False):
    """`row` is what the store keeps; the rest is what only a running relay needs."""

    row: MessageRow
    sender: Agent
    recipients: list[Agent]
    shared: bool  # addressed to many at once: broadcasts keep their order among each other
    to: str | None  # what DELIVER says in `to`; None: the recipient's own name
    requires_ack: bool
    accepted: int  # steady clock
    expires: int  # steady clock
    open: int  # recipients that have not settled it
    # Until it is durable:
    peer: Peer | None = None  # who sent it
    body: str = ""  # for whoever is told of it; the row's tail holds it too
    extras: MessageExtras | None = None
    listed: bool = False  # it is in the backlog, for each recipient that has not settled it
    copies: int = 0  # the last so many of the recipients are shadows: what they do with it is nobody's receipt
    hop: Hop | None = None  # how far from new input its sender, a guarded agent, was; None: it is new input itself


class Delivery(Struct, gc=False):
    """One message to one recipient."""

    message: Message
    recipient: Agent
    stream: Stream
    seq: int
    id: str
    attempts: int = 0  # over all connections
    counted: bool = False  # it is durable that the next attempt is made
    tries: int = 0  # on this connection
    deadline: int = NEVER  # when to send it again, while it is on the wire
    sent: int = 0
    is_copy: bool = False  # for a shadow
    replay: bool = False  # settled long ago, shown again because a RESUME asked for it; nobody is told


def make_message(
    sender: Agent, recipients: list[Agent], client_id: str, target: str, tail: bytes, now: int, expires: int, peer: Peer | None,
    body: str, topic: str = "", kind: str = "message", thread: str | None = None, priority: int = DEFAULT_PRIORITY,
    skipped: tuple[str, ...] = (), shared: bool = False, to: str | None = None, requires_ack: bool = False,
    extras: MessageExtras | None = None,
) -> Message:  # fmt: skip
    """A message that was accepted just now; its row's number, id and times are filled in when its batch sets off."""
    # Both by position, here and nowhere else: one of each is made per message, and names cost. For the same reason no parameter
    # is for keywords alone: the defaults of those are looked up by name at every call.
    row = MessageRow(0, "", sender.name, client_id, target, topic, kind, thread, 0, 0, priority, 0, skipped, (), tail)
    return Message(row, sender, recipients, shared, to, requires_ack, now, expires, len(recipients), peer, body, extras)


def delivery_id(row: MessageRow, place: int) -> str:
    """The ids right behind a message's own are its deliveries', so they are the same after a restart."""
    return f"d_{row.id[4:26]}{encode_counter(row.number % COUNTER_LIMIT + place + 1)}"
