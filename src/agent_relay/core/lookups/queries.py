"""Questions about the relay: who is there, and how it is itself. What was said is in `history`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import asdict

from agent_relay.core.backpressure import Backpressure
from agent_relay.core.context import Context
from agent_relay.core.lookups.history import History
from agent_relay.core.lookups.holds import find_hold
from agent_relay.core.lookups.pages import (
    AROUND_BYTES,
    take_agents,
    take_newest,
)
from agent_relay.core.loops import Loops
from agent_relay.core.registry import Registry
from agent_relay.core.requests import Requests
from agent_relay.core.sending import Sending
from agent_relay.core.spawned.orders import Spawning
from agent_relay.core.teams.rules import TeamRules
from agent_relay.core.teams.shadows import Shadows
from agent_relay.core.topic_lines import TopicLines
from agent_relay.ports.events import EventStats
from agent_relay.ports.service import AgentFacts
from agent_relay.ports.store import (
    MessageStore,
)
from agent_relay.protocol.encode import encode_json
from agent_relay.protocol.names import fold_name
from agent_relay.protocol.places import project_name
from agent_relay.protocol.requests import encode_open
from agent_relay.version import __version__

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.journal import Journal
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope


class Queries:
    def __init__(
        self,
        context: Context,
        registry: Registry,
        store: MessageStore,
        journal: Journal,
        sending: Sending,
        backpressure: Backpressure,
        loops: Loops,
        requests: Requests,
        spawning: Spawning,
        rules: TeamRules,
        shadows: Shadows,
        topic_lines: TopicLines,
        event_stats: Callable[[], EventStats] | None = None,
        project: str = "",
    ) -> None:
        self._event_stats = event_stats
        self._project = project  # its root
        self._spawning = spawning
        self._rules = rules
        self._shadows = shadows
        self._topic_lines = topic_lines
        self._context = context
        self._registry = registry
        self._store = store
        self._journal = journal
        self._sending = sending
        self._backpressure = backpressure
        self._loops = loops
        self._requests = requests
        self.history = History(registry, store, journal, sending.committer, context.limits.max_frame_bytes)
        self._started = context.steady_ms
        self._started_at = context.wall_ms

    # --- agents -------------------------------------------------------------------------------------------------------

    def list_agents(self, peer: Peer, frame: envelope.ListAgents) -> None:
        """As many as one frame holds, and the sessions with the first of them."""
        cursor = frame.payload.cursor
        server = self.server() if not peer.guest else {"version": __version__}
        room = self._context.limits.max_frame_bytes - AROUND_BYTES - len(encode_json(server))
        sessions = take_newest(self._spawning.describe(), room // 2) if cursor is None and not peer.guest else []
        show_agent = _sketch if peer.guest else self._show_agent
        wanted = ((place, show_agent(agent)) for place, agent in self._in_order() if cursor is None or place > cursor)
        agents, reached = take_agents(wanted, room - len(encode_json(sessions)))
        said = {"agents": agents, "server": server, "sessions": sessions, "next_cursor": reached, "reply_to": frame.id}
        peer.say("AGENTS", said)

    def agents(self) -> list[AgentFacts]:
        return [self.describe(agent) for _, agent in self._in_order()]

    def _show_agent(self, agent: Agent) -> dict[str, Any]:
        """As AGENTS lists it."""
        facts = self.describe(agent)
        doors, requests = [asdict(door) for door in facts.unused_doors], [encode_open(request) for request in facts.requests]
        return asdict(facts) | {"unused_doors": doors, "requests": requests}

    def _in_order(self) -> Iterator[tuple[str, Agent]]:
        """Each with its place, by which the list is ordered: who is connected first, then by name."""
        known = {("0" if _is_here(agent) else "1") + agent.key: agent for agent in self._registry.agents.values()}
        return ((place, known[place]) for place in sorted(known) if not known[place].hidden)

    def server(self) -> dict[str, Any]:
        stats = self._store.stats()
        return {
            "version": __version__,
            "owner": self._context.limits.owner,
            "project": self._project,
            "project_name": project_name(self._project),
            "started_at": self._started_at,
            "uptime_ms": self._context.steady_ms - self._started,
            "connected": len(self._registry.connected),
            "accepted": self._sending.receipts.accepted,
            "refused": self._sending.receipts.refused,
            "dead_letters": self._journal.dead_letters,
            "storage": {
                "kind": stats.kind,
                "messages": stats.messages,
                "size_bytes": stats.size_bytes,
                "wal_bytes": stats.wal_bytes,
                "location": stats.location,
                "problem": stats.problem,
                "lost": stats.lost,
            },
            "team": self._rules.describe(),
            "topic_lines": self._topic_lines.describe(),
            "events": None if self._event_stats is None else _show_events(self._event_stats()),
        }

    def describe(self, agent: Agent) -> AgentFacts:
        box = agent.mailbox
        connected = _is_here(agent)
        said = agent.report if connected else None
        assumed = "offline" if not connected else "working" if box.inflight else "idle"  # of one that reports nothing
        requests, depth = self._requests.of(agent), self._backpressure.depth(agent)
        shadows, shadowed_by = self._shadows.describe(agent)
        hold = find_hold(agent, self._loops, requests, depth + len(box.inflight))
        return AgentFacts(
            name=agent.name,
            connected=connected,
            state=said.state if said else assumed,
            waiting_for=said.waiting_for if said else None,
            paused=said.paused if said else False,
            door=said.door if said else None,
            door_note=said.door_note if said else None,
            hold=None if hold is None else to_builtins(hold),
            unused_doors=list(said.unused_doors) if said else [],
            loop=self._loops.describe(agent),
            requests=requests,
            cli=agent.cli,
            host=agent.traits.host,
            session_id=agent.session_id,
            queue_depth=depth,
            queue_capacity=self._context.limits.queue_capacity,
            inflight=len(box.inflight),
            registered_at=agent.registered_at,
            last_seen_at=self._context.wall_ms if connected else agent.last_seen_at,
            subscriptions=sorted(agent.subscriptions),
            channels=sorted(agent.channels),
            shadows=shadows,
            shadowed_by=shadowed_by,
            at_leisure=sorted(name for name in agent.channels if fold_name(name) in agent.traits.at_leisure),
            takes_control=agent.peer is not None and connected and agent.peer.takes_control,
            capabilities=agent.traits.capabilities,
            meta=agent.traits.meta,
        )


def _is_here(agent: Agent) -> bool:
    return agent.peer is not None and agent.peer.active


def _sketch(agent: Agent) -> dict[str, Any]:
    """The little that another user needs to know in order to write to it."""
    connected = _is_here(agent)
    return {
        "name": agent.name, "connected": connected, "state": "idle" if connected else "offline", "cli": agent.cli,
        "channels": sorted(agent.channels),
    }  # fmt: skip


def _show_events(stats: EventStats) -> dict[str, Any]:
    return {
        "kind": stats.kind, "oldest_seq": stats.oldest_seq, "oldest_at": stats.oldest_ms, "last_seq": stats.last_seq,
        "size_bytes": stats.size_bytes, "limit_bytes": stats.limit_bytes, "waiting": stats.waiting, "lost": stats.lost,
        "error": stats.last_error, "damaged": list(stats.damaged),
    }  # fmt: skip
