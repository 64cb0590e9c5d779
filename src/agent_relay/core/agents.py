"""Agents: everybody who ever registered and is not forgotten yet, connected or not.

Each with the ids it has used, and with what it could not be told while it was away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agent_relay.core.context import Context
from agent_relay.core.mailbox import Mailbox
from agent_relay.core.streams import Stream
from agent_relay.ports.connection import NOBODY_UID, REGISTERED_UID
from agent_relay.ports.store import AgentRow
from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.ulid import time_of_number

if TYPE_CHECKING:
    from agent_relay.core.chains import Standing
    from agent_relay.core.messages import Message
    from agent_relay.core.peer import Peer
    from agent_relay.protocol.reports import StateReport


class DedupWindow:
    """The ids a sender has used, so that the same SEND twice is one message and two identical answers.

    From client id to the number of the message it became; what its receipt said is in the store, under that number.

    Kept in two generations: when the younger one is full it becomes the older one and the oldest ids are let go all at
    once. So at least `capacity` ids are remembered, at the price of two dictionaries and nothing per message.

    After a restart those of an agent are read from the store when it comes.
    """

    __slots__ = ("capacity", "is_complete", "older", "younger")

    def __init__(self, capacity: int, *, is_complete: bool = True) -> None:
        self.capacity = capacity
        self.is_complete = is_complete  # no other id was used
        self.younger: dict[str, int] = {}
        self.older: dict[str, int] = {}

    def find(self, client_id: str, since_wall_ms: int) -> int | None:
        """The message's number, unless it is older than `since_wall_ms`: then the id may be used anew."""
        number = self.younger.get(client_id)
        if number is None:
            number = self.older.get(client_id)
            if number is None:
                return None
        return number if time_of_number(number) >= since_wall_ms else None

    def let_go(self) -> None:
        """The oldest, where there are enough younger ones. After some were added to `younger`."""
        if len(self.younger) >= self.capacity:
            self.older, self.younger = self.younger, {}

    def complete(self, ids: dict[str, int], first_number: int) -> None:
        """These were used before any that is here; those of messages before that number are somebody else's."""
        self.older = {client_id: number for client_id, number in ids.items() if number >= first_number} | self.older
        self.is_complete = True

    def __len__(self) -> int:
        return len(self.younger) + len(self.older)


class Traits(msgspec.Struct):
    """An agent's words about itself in HELLO; RESUME says nothing and relies on it."""

    meta: dict[str, Any] = {}
    capabilities: list[str] = []
    version: int = 1
    max_inflight: int = 256
    first_number: int = 0  # ids of messages with a lower number are those of whoever had the name before
    wrapped: bool = False  # the relay runs it, or did: its name is not for whoever comes first
    host: str = ""  # of the cluster, where it is or was last; "": there is no cluster
    at_leisure: list[str] = []  # channels, by folded name, of which only mentions wake it
    has_defaults: bool = False  # it joined the default channels once; those that it left since, it does not join again


class Agent:
    __slots__ = (
        "channels", "cli", "hidden", "key", "last_seen_at", "loop", "mailbox", "name", "notices", "peer", "pending",
        "previous_token_hash", "registered_at", "report", "seen", "session_id", "streams", "subscriptions", "token_hash",
        "traits", "uid",
    )  # fmt: skip

    def __init__(self, name: str, uid: int, registered_at: int, dedup_ids: int) -> None:
        self.name = name
        self.key = fold_name(name)
        self.uid = uid
        self.cli: str | None = None
        self.hidden = False  # its name is taken, and nobody can write to it: not registered for good yet, or not any more
        self.registered_at = registered_at
        self.last_seen_at = registered_at
        self.session_id = ""
        self.token_hash = ""
        self.previous_token_hash: str | None = None
        self.traits = Traits()
        self.peer: Peer | None = None
        self.report: StateReport | None = None  # what it said last on this connection; most clients say nothing
        self.loop: Standing | None = None  # None: the loop guard does not look at it
        self.mailbox = Mailbox()
        self.streams: dict[tuple[str, str], Stream] = {}  # towards this agent, by (topic, sender's key)
        self.subscriptions: set[str] = set()
        self.channels: set[str] = set()
        self.seen = DedupWindow(dedup_ids)
        self.pending: dict[str, Message] = {}  # client ids of SENDs that are being stored, with their message
        self.notices: list[tuple[str, dict[str, Any]]] = []  # what it could not be told while it was away

    def begin_anew(self, uid: int, now: int, first_number: int) -> None:
        """Somebody else has the name from now on. The numbers of its streams go on: nobody is given one twice."""
        self.uid = uid
        self.registered_at = self.last_seen_at = now
        self.seen = DedupWindow(self.seen.capacity)
        self.traits = Traits(first_number=first_number)

    @property
    def is_registered(self) -> bool:
        """Its name belongs to a registration with a transport, and to no user of this machine."""
        return self.uid == REGISTERED_UID

    @property
    def connected(self) -> bool:
        return self.peer is not None

    def stream_from(self, sender: Agent, topic: str, first_seq: int = 0) -> Stream:
        key = (topic, sender.key)
        stream = self.streams.get(key)
        if stream is None:
            stream = self.streams[key] = Stream(topic, sender.name, self.name, first_seq)
        return stream

    def row(self) -> AgentRow:
        return AgentRow(
            name=self.name,
            cli=self.cli,
            uid=self.uid,
            session_id=self.session_id,
            token_hash=self.token_hash,
            previous_token_hash=self.previous_token_hash,
            registered_at=self.registered_at,
            last_seen_at=self.last_seen_at,
            connected=self.connected,
            meta=encode_json(self.traits),
        )


def restore_agent(row: AgentRow, dedup_ids: int) -> Agent:
    agent = Agent(row.name, row.uid, row.registered_at, dedup_ids)
    agent.seen = DedupWindow(dedup_ids, is_complete=False)
    agent.cli = row.cli
    agent.hidden = row.uid == NOBODY_UID
    agent.last_seen_at = row.last_seen_at
    agent.session_id = row.session_id
    agent.token_hash = row.token_hash
    agent.previous_token_hash = row.previous_token_hash
    agent.traits = msgspec.json.decode(row.meta, type=Traits)
    return agent


def tell(context: Context, agent: Agent, kind: str, payload: dict[str, Any]) -> None:
    """Tells a sender what became of its message, now or when it comes back."""
    peer = agent.peer
    if peer is not None and peer.active:
        peer.say(kind, payload)
    elif len(agent.notices) < context.limits.notice_capacity:
        agent.notices.append((kind, payload))


def tell_what_was_missed(agent: Agent) -> None:
    notices, agent.notices = agent.notices, []
    assert agent.peer is not None
    for kind, payload in notices:
        agent.peer.say(kind, payload)
