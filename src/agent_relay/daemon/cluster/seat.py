"""The daemon of the project while this host has the seat: an ordinary one over `cluster.store`. It goes whole with the seat."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import cast

from agent_relay.cluster.asks import Asks
from agent_relay.cluster.events import ClusterEvents
from agent_relay.cluster.store import ClusterStore
from agent_relay.core.host_rules import decode_rules
from agent_relay.core.relay import Relay
from agent_relay.daemon.cluster.agents import ClusterAgents
from agent_relay.daemon.cluster.events import end_events
from agent_relay.daemon.cluster.host_agents import HostAgents
from agent_relay.daemon.cluster.screens import ClusterScreens
from agent_relay.daemon.cluster.seat_http import SeatHttp
from agent_relay.daemon.config import Config
from agent_relay.daemon.http_place import HttpPlace
from agent_relay.daemon.logs import logger
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.daemon.server import Daemon, Parts
from agent_relay.daemon.shelves import StoredDocuments
from agent_relay.ports.cluster import EdgeHttp, Keys, Opening
from agent_relay.ports.documents import Documents
from agent_relay.ports.events import EventStore
from agent_relay.ports.store import MessageStore, Snapshot
from agent_relay.protocol.hosts import ClusterFacts
from agent_relay.storage.live_screens import LiveScreenFiles
from agent_relay.storage.screens import ScreenFiles
from agent_relay.transports.tunnels import CLUSTER_UID, TunnelConnection

_RECIPIENTS_BYTES = 64 * 1024  # of a record: the names of a message's recipients, some thousands of them
_SMALLEST_FRAME_BYTES = 4_096


class SeatDaemon(Daemon):
    """The daemon of the project, while this host has the seat. `most_bytes`: of a record of the log."""

    _http_kind = SeatHttp

    def __init__(
        self, config: Config, host: str, store: ClusterStore, events: ClusterEvents, see_cluster: Callable[[], ClusterFacts],
        agents: HostAgents, asks: Asks, place: HttpPlace, release_socket: Callable[[], None], most_bytes: int,
    ) -> None:  # fmt: skip
        super().__init__(_fit_frames(config, most_bytes))
        self._release_socket = release_socket
        self._host_agents = agents
        self._asks = asks
        self.agents: ClusterAgents | None = None
        self._host_name = host
        self._store = store
        self._events = events
        self._see_cluster = see_cluster
        self._place = place
        self._owner_uid = CLUSTER_UID
        self._is_dropped = False
        self.is_serving = asyncio.Event()

    def stop(self) -> None:
        self._stop.set()

    def drop(self) -> None:
        """Ends at once: nothing more is said to anybody, for it might not be true."""
        self._is_dropped = True
        self._stop.set()

    @property
    def connections(self) -> int:
        """Of clients at this host."""
        connections = () if self._parts is None else self._parts.server.connections
        return sum(not isinstance(connection, TunnelConnection) for connection in connections)

    def accept(self, opening: Opening) -> asyncio.Protocol:
        assert self._parts is not None
        if opening.kind == "http":
            return self._http.accept(opening)
        return TunnelConnection(self._parts.pump, self._config.limits.max_frame_bytes, opening, self._parts.server)

    def introduced(self, host: str, http: EdgeHttp, keep: Callable[[Keys], None]) -> None:
        self._http.introduced(host, http, keep)

    @property
    def _http(self) -> SeatHttp:
        assert self._parts is not None
        return cast("SeatHttp", self._parts.http)

    def _make_http_place(self, project: ProjectFile) -> HttpPlace:
        del project
        return self._place

    @property
    def excluded(self) -> frozenset[str] | None:
        return None if self._parts is None else self._parts.relay.excluded.hosts

    def _make_screens(self, relay: Relay) -> ClusterScreens:
        def host_of(name: str) -> str:
            agent = relay.registry.find(name)
            return "" if agent is None else agent.traits.host

        folder = self._config.state_dir
        return ClusterScreens(self._host_name, ScreenFiles(folder), LiveScreenFiles(folder), host_of, self._asks, self._loop)

    def _begin_agents(self, relay: Relay, snapshot: Snapshot) -> None:
        agents = self.agents = ClusterAgents(self._host_name, self._host_agents, self._asks, relay, self._post)
        see_cluster = self._see_cluster
        assert see_cluster is not None
        relay.spawning.begin(agents, agents.load(snapshot.documents), lambda: see_cluster().hosts)

    def learn_rules(self, host: str, rules: bytes | None) -> None:
        if self._parts is not None:
            self._parts.relay.rights.learn(host, None if rules is None else decode_rules(rules))

    def count_agents(self) -> dict[str, int]:
        """Those that are connected, by host."""
        if self._parts is None:
            return {}
        agents = self._parts.relay.registry.agents.values()
        return dict(Counter(agent.traits.host for agent in agents if agent.connected and not agent.hidden))

    def _prepare(self) -> None:
        """The place is held by the process."""

    async def _listen(self, parts: Parts) -> None:
        """The edge has listened so far, and told everybody to wait."""
        self._release_socket()
        await super()._listen(parts)

    def _announce(self) -> None:
        self.is_serving.set()

    def _watch_signals(self) -> None:
        """The process does."""

    def _make_store(self) -> MessageStore:
        return self._store

    def _make_event_store(self) -> EventStore:
        return self._events

    def _make_documents(self, relay: Relay, snapshot: Snapshot) -> Documents:
        documents = StoredDocuments(snapshot.documents, relay.keep_document)
        self._events.keep_in(documents)
        return documents

    def post(self, callback: Callable[[], None]) -> None:
        """A store's answer, from whatever thread."""
        if self._parts is None:  # there is no core yet, and the copy of the events goes on all the same
            self._loop.call_soon_threadsafe(callback)
        else:
            self._post(callback)

    async def _drain(self, parts: Parts) -> None:
        if not self._is_dropped:
            await super()._drain(parts)
            parts.recording.recorder.flush()
            await end_events(self._events)
            return
        parts.server.stop_listening()
        for connection in list(parts.server.connections):
            connection.give_up()

    def _leave(self) -> None:
        if self._parts is not None:
            self._parts.server.stop_listening()


def _fit_frames(config: Config, most_bytes: int) -> Config:
    """A message is stored as one record, so no frame may be larger than one: clients are told the limit in their WELCOME."""
    most = max(_SMALLEST_FRAME_BYTES, most_bytes - _RECIPIENTS_BYTES)
    if config.limits.max_frame_bytes <= most:
        return config
    logger.warning("frames_limited", extra={"relay_fields": {"max_frame_bytes": most, "setting": config.limits.max_frame_bytes}})
    return replace(config, limits=replace(config.limits, max_frame_bytes=most))
