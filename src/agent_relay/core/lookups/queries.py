"""Questions about the relay: who is there, what was said, what became of one message, what could not be delivered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins
from msgspec.structs import asdict

from agent_relay.core.backpressure import Backpressure
from agent_relay.core.context import Context
from agent_relay.core.lookups.holds import find_hold
from agent_relay.core.lookups.message_ids import find_message, unreadable
from agent_relay.core.lookups.pages import (
    AROUND_BYTES,
    read_place,
    take_agents,
    take_conversations,
    take_newest,
    take_what_fits,
)
from agent_relay.core.lookups.progress import add_progress, note_refusals
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
    Conversation,
    DeadLetterQuery,
    DeadLetterRow,
    MessageQuery,
    MessageRow,
    MessageStore,
    Page,
    StoreError,
    TrailRow,
)
from agent_relay.protocol.encode import encode_json, read_shadows, read_tail
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.holds import describe_hold, read_waits
from agent_relay.protocol.message_states import MessageState
from agent_relay.protocol.names import CHANNEL_MARK, fold_name, is_name, show
from agent_relay.protocol.places import project_name
from agent_relay.protocol.reports import describe_seen, read_seen
from agent_relay.protocol.requests import encode_open
from agent_relay.version import __version__

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent
    from agent_relay.core.journal import Journal
    from agent_relay.core.peer import Peer
    from agent_relay.protocol import envelope, payloads

_GLIMPSE = 200  # characters of a conversation's last message
# Of steps in one millisecond.
_ORDER = {"received": 1, "waits": 2, "handed": 2, "acknowledged": 3, "injected": 3, "rejected": 3, "expired": 3, "read": 4}


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

    # --- messages -----------------------------------------------------------------------------------------------------

    def history(self, peer: Peer, frame: envelope.History) -> None:
        asked = frame.payload
        try:
            match asked.view:
                case "messages":
                    self._find(peer, frame.id, asked)
                case "message":
                    self._explain(peer, frame.id, asked.id)
                case "conversations":
                    self._conversations(peer, frame.id, asked.limit)
                case "dead_letters":
                    self._dead_letters(peer, frame.id, asked.limit)
                case other:
                    raise RelayError(ErrorCode.INVALID_FORMAT, f"Unknown view {show(other)}.", field="payload.view")
        except RelayError as error:
            peer.say_error(error, frame.id)

    def _find(self, peer: Peer, request_id: str, asked: payloads.HistoryPayload) -> None:
        place = read_place(asked.cursor)
        to = asked.to
        by_name = to is not None and is_name(to)
        query = MessageQuery(
            with_agent=asked.with_, sender=asked.from_, recipient=to if by_name else None, target=None if by_name else to,
            topic=asked.topic, thread=asked.thread, search=asked.search, since=asked.since, until=asked.until,
            between=_read_pair(asked.between), before=None if asked.oldest_first else place,
            after=(place or 0) if asked.oldest_first else None, limit=asked.limit,
        )  # fmt: skip

        def found(page: Page | StoreError) -> None:
            if isinstance(page, StoreError):
                peer.say_error(unreadable(page), request_id)
                return
            page.messages = [row for row in page.messages if not asked.pending or self._is_pending(row, page, to)]
            self._sending.committer.when_written(lambda: self._store.steps(page.messages, lambda steps: tell(page, steps)))

        def tell(page: Page, steps: list[list[TrailRow]] | StoreError) -> None:
            if isinstance(steps, StoreError):
                peer.say_error(unreadable(steps), request_id)
                return
            shown = [self._show(row, page.dead) for row in page.messages]
            for message, noted in zip(shown, steps, strict=True):
                note_refusals(message["recipients"], noted)
                if asked.receipts:
                    add_progress(message["recipients"], noted)
            messages, all_fit = take_what_fits(shown, self._context.limits.max_frame_bytes)
            last = page.next_before if all_fit else page.messages[len(messages) - 1].number
            cursor = None if last is None else str(last)
            peer.say("HISTORY_RESULT", {"messages": messages, "next_cursor": cursor, "reply_to": request_id})

        self._store.find(query, found)

    def _conversations(self, peer: Peer, request_id: str, limit: int) -> None:
        def found(rows: list[tuple[Conversation, MessageRow]] | StoreError) -> None:
            if isinstance(rows, StoreError):
                peer.say_error(unreadable(rows), request_id)
                return
            shown = [_show_conversation(each, row) for each, row in rows]
            taken = take_conversations(shown, self._context.limits.max_frame_bytes)
            peer.say("HISTORY_RESULT", {"conversations": taken, "reply_to": request_id})

        self._store.conversations(limit, found)

    def _is_pending(self, row: MessageRow, page: Page, to: str | None) -> bool:
        return any(
            status["status"] in {MessageState.QUEUED, MessageState.SENT}
            for status in self._statuses(row, page.dead)
            if to is None or to[:1] == CHANNEL_MARK or fold_name(status["name"]) == fold_name(to)
        )

    def _explain(self, peer: Peer, request_id: str, message_id: str | None) -> None:
        def found(page: Page | RelayError) -> None:
            if isinstance(page, RelayError):
                peer.say_error(page, request_id)
                return
            (row,) = page.messages
            self._sending.committer.when_written(lambda: self._store.trail(row, lambda trail: explain(row, page, trail)))

        def explain(row: MessageRow, page: Page, trail: list[TrailRow] | StoreError) -> None:
            if isinstance(trail, StoreError):
                peer.say_error(unreadable(trail), request_id)
                return
            steps = [_show_step(step, at) for at, step in _in_order(trail)]
            message = self._show(row, page.dead)
            note_refusals(message["recipients"], trail)
            shown, _ = take_what_fits([message], self._context.limits.max_frame_bytes - len(encode_json(steps)))
            peer.say("HISTORY_RESULT", {"messages": shown, "trail": steps, "reply_to": request_id})

        find_message(self._store, message_id or "", found)

    def _show(self, row: MessageRow, dead: frozenset[tuple[int, str]]) -> dict[str, Any]:
        found = read_tail(row.tail)
        shown: dict[str, Any] = {
            "message_id": row.id,
            "client_id": row.client_id,
            "from": row.sender,
            "to": row.target,
            "topic": row.topic or None,
            "ts": row.ts,
            "expires_at": row.expires_at,
            "kind": row.kind,
            "thread": row.thread,
            "priority": row.priority,
            "payload": found["payload"],
            "payload_meta": found.get("payload_meta"),
            "recipients": self._statuses(row, dead),
            "skipped": list(row.skipped),
        }
        return shown

    def _statuses(self, row: MessageRow, dead: frozenset[tuple[int, str]]) -> list[dict[str, Any]]:
        """Of everybody who gets it; whoever only gets a copy is marked."""
        shadows = read_shadows(row.tail)
        return [
            {"name": name, "seq": seq, "status": self._status(row, name, seq, dead)} | ({"copy": True} if name in shadows else {})
            for name, seq in row.recipients
        ]

    def _status(self, row: MessageRow, name: str, seq: int, dead: frozenset[tuple[int, str]]) -> str:
        agent = self._registry.find(name)
        stream = None if agent is None else agent.streams.get((row.topic, fold_name(row.sender)))
        if agent is None or stream is None:
            return MessageState.UNKNOWN.value
        if self._journal.is_dead(row.number, agent.key, stored=(row.number, agent.key) in dead):
            return MessageState.DEAD.value
        if stream.is_done(seq):
            return MessageState.DELIVERED.value
        return (MessageState.SENT if seq <= stream.wire_seq else MessageState.QUEUED).value

    # --- dead letters ---------------------------------------------------------------------------------------------------

    def _dead_letters(self, peer: Peer, request_id: str, limit: int) -> None:
        def found(rows: list[tuple[DeadLetterRow, MessageRow]] | StoreError) -> None:
            if isinstance(rows, StoreError):
                peer.say_error(unreadable(rows), request_id)
                return
            places = frozenset((dead.number, fold_name(dead.recipient)) for dead, _ in rows)
            messages = [
                self._show(row, places) | {"dead": {"to": dead.recipient, "at": dead.at, "code": dead.code}}
                for dead, row in rows
                if self._journal.is_dead(dead.number, fold_name(dead.recipient), stored=True)
            ]
            shown, _ = take_what_fits(messages, self._context.limits.max_frame_bytes)
            peer.say("HISTORY_RESULT", {"messages": shown, "next_cursor": None, "reply_to": request_id})

        self._sending.committer.when_written(lambda: self._store.dead_letters(DeadLetterQuery(limit=limit), found))


def _is_here(agent: Agent) -> bool:
    return agent.peer is not None and agent.peer.active


def _sketch(agent: Agent) -> dict[str, Any]:
    """The little that another user needs to know in order to write to it."""
    connected = _is_here(agent)
    return {
        "name": agent.name, "connected": connected, "state": "idle" if connected else "offline", "cli": agent.cli,
        "channels": sorted(agent.channels),
    }  # fmt: skip


def _read_pair(names: list[str]) -> tuple[str, str] | None:
    if not names:
        return None
    if len(names) != 2:
        raise RelayError(ErrorCode.INVALID_FORMAT, "`payload.between` must name two agents.", field="payload.between")
    return names[0], names[1]


def _show_conversation(found: Conversation, last: MessageRow) -> dict[str, Any]:
    body = read_tail(last.tail)["payload"].get("body")
    return {
        "type": found.kind, "key": found.key, "count": found.count,
        "last": {
            "message_id": last.id, "from": last.sender, "to": last.target, "kind": last.kind, "ts": last.ts,
            "body": body[:_GLIMPSE] if isinstance(body, str) else "",
        },
    }  # fmt: skip


def _show_events(stats: EventStats) -> dict[str, Any]:
    return {
        "kind": stats.kind, "oldest_seq": stats.oldest_seq, "oldest_at": stats.oldest_ms, "last_seq": stats.last_seq,
        "size_bytes": stats.size_bytes, "limit_bytes": stats.limit_bytes, "waiting": stats.waiting, "lost": stats.lost,
        "error": stats.last_error, "damaged": list(stats.damaged),
    }  # fmt: skip


def _in_order(trail: list[TrailRow]) -> list[tuple[int, TrailRow]]:
    """The steps as they happened, each with its moment.

    Plain acknowledgements are written as runs that carry the moment the run began, so one may seem older than what was
    reported of the message before it; and steps of the same millisecond are told apart by what they say.
    """
    received = {step.recipient: step.at for step in trail if step.event == "received"}
    moments = [
        (max(step.at, received.get(step.recipient, 0)) if step.event == "acknowledged" else step.at, step) for step in trail
    ]
    return sorted(moments, key=lambda moment: (moment[0], _ORDER.get(moment[1].event, 0)))


def _show_step(step: TrailRow, at: int) -> dict[str, Any]:
    shown = {"at": at, "event": step.event, "to": step.recipient, "detail": step.detail}
    if step.event in {"handed", "injected", "read"}:
        seen = read_seen(step.detail)
        shown |= {"detail": describe_seen(seen)} | seen
    elif step.event == "waits" and (hold := read_waits(step.detail)) is not None:
        shown |= {"detail": describe_hold(hold, step.recipient).text, "hold": hold.reason}
    return shown
