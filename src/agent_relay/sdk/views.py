"""Answers about the relay itself, as values: who is there, what was said, what became of one message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Struct

from agent_relay.protocol.holds import Hold


class AgentInfo(Struct, frozen=True):
    """One agent as the daemon describes it; `raw` has whatever a later daemon adds."""

    name: str
    connected: bool = False
    state: str = "offline"  # starting, idle, working, waiting or offline
    waiting_for: str | None = None  # what a waiting one waits for
    paused: bool = False  # messages are kept from it until it is resumed
    door: str | None = None  # the way messages go into its program
    door_note: str | None = None  # why it is not a better one
    hold: Hold | None = None  # why its messages wait; `describe_hold` of protocol.holds has the sentence
    unused_doors: tuple[dict[str, str], ...] = ()  # the better ones, each with `door`, `reason` and `mend`: what to do
    loop: dict[str, Any] | None = None  # it only answers others: `stage` (slowed or held), `hops`, `agents`
    requests: tuple[dict[str, Any], ...] = ()  # permissions and questions that wait for a person
    cli: str | None = None
    host: str = ""  # of the cluster, where it is or was last; "": there is no cluster
    session_id: str = ""
    queue_depth: int = 0
    queue_capacity: int = 0
    inflight: int = 0
    registered_at: int = 0
    last_seen_at: int = 0
    subscriptions: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    shadows: tuple[str, ...] = ()  # whose messages it gets copies of
    shadowed_by: tuple[str, ...] = ()  # who gets copies of its own
    at_leisure: tuple[str, ...] = ()  # channels of which only mentions wake it
    capabilities: tuple[str, ...] = ()  # what it and the daemon agreed on
    meta: dict[str, Any] = {}
    raw: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"AgentInfo({self.name}, state={self.state}, queue_depth={self.queue_depth})"


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    """A channel with its members, connected or not, and what was said in it so far."""

    name: str
    members: tuple[str, ...] = ()
    messages: int = 0
    last_at: int | None = None  # milliseconds since 1970; None: nothing was said yet
    topic_line: str = ""  # what it is for; "": nobody said


@dataclass(frozen=True, slots=True)
class Spawned:
    """An agent that the daemon started."""

    name: str
    session_id: str


@dataclass(frozen=True, slots=True)
class AgentsView:
    agents: list[AgentInfo]
    server: dict[str, Any]  # version, uptime, counts, storage
    sessions: list[dict[str, Any]] = field(default_factory=list)  # of agents that the daemon started, the oldest first

    def find(self, name: str) -> AgentInfo | None:
        """Names are compared without regard to case."""
        return next((agent for agent in self.agents if agent.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Newest first. `next_cursor` asks for the page after this one; None: there is no more."""

    messages: list[dict[str, Any]]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message, and everything that happened to it, oldest first."""

    message: dict[str, Any]
    trail: list[dict[str, Any]]


def read_agent(raw: dict[str, Any]) -> AgentInfo:
    return msgspec.convert({**raw, "raw": raw}, AgentInfo)
