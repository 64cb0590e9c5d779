"""A host while another has the seat: its socket and its HTTP, whose connections go through tunnels to that host."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from agent_relay.cluster.figures import Figures
from agent_relay.cluster.jetstream import Names
from agent_relay.cluster.tunnels import EdgeTunnels, link_name
from agent_relay.core.host_rules import HostRules, encode_rules
from agent_relay.daemon.cluster.http import ClusterHttp
from agent_relay.daemon.config import Config
from agent_relay.daemon.logs import logger
from agent_relay.ports.callers import Caller
from agent_relay.ports.clock import Clock
from agent_relay.ports.cluster import Opening, Wire, WireMessage
from agent_relay.protocol import places
from agent_relay.transports.callers import Callers
from agent_relay.transports.tunnels import ForwardServer


class Edge:
    """`reason` says why a client cannot be served now; `is_seat`, whether that host still has the seat in that term, and we a
    reason to talk to it."""

    def __init__(
        self, config: Config, host: str, owner_proof: str, http: ClusterHttp, wire: Wire, names: Names, rules: HostRules,
        figures: Figures, clock: Clock, reason: Callable[[], str], is_seat: Callable[[str, int], bool],
    ) -> None:  # fmt: skip
        self._host = host
        self._owner_proof = owner_proof
        self._http = http
        self._wire = wire
        self._names = names
        self._rules = encode_rules(rules)
        self._figures = figures
        self._clock = clock
        self._reason = reason
        self._is_seat = is_seat
        self._loop = asyncio.get_running_loop()
        self._socket = config.socket
        self._callers = Callers(config.file(places.SEATS_FILE), config.socket)
        self._server = ForwardServer(config.socket, self._callers, self._introduce, lambda: self.tunnels, reason)
        self.tunnels: EdgeTunnels | None = None  # to the seat

    def begin(self) -> None:
        self._wire.subscribe(self._names.to_edge(self._host), self._heard)

    async def listen(self) -> None:
        """At the socket; nothing where it listens already."""
        await self._server.start()

    def release_socket(self) -> None:
        self._server.stop()

    async def serve(self, until: Callable[[], bool], changed: asyncio.Event) -> None:
        """Returns once `until` says so, which is asked whenever `changed` is set."""
        await self._http.serve_edge(self._callers, lambda: self.tunnels, self._reason)
        logger.info("edge", extra={"relay_fields": {"host": self._host, "socket": self._socket}})
        try:
            while not until():
                changed.clear()
                await changed.wait()
        finally:
            if self.tunnels is not None:
                self.tunnels.break_off()
            self._http.stop_edge()

    def _introduce(self, caller: Caller) -> Opening:
        return Opening(self._host, is_owner=True, agent=caller.agent, owner_proof=self._owner_proof)

    def link_to(self, host: str, term: int) -> None:
        subject = self._names.to_seat(host, term)
        name = link_name(self._host, secrets.token_hex(6))

        def broken() -> None:
            self.tunnels = None
            if self._is_seat(host, term):
                self.link_to(host, term)

        self.tunnels = EdgeTunnels(
            name, lambda packet: self._wire.publish(subject, packet), self._loop.call_soon, broken, self._clock.steady_ms(),
            self._rules, self._figures, http=self._http.describe(), keep_keys=self._http.keep_keys,
        )  # fmt: skip

    def unlink(self) -> None:
        before, self.tunnels = self.tunnels, None
        if before is not None:
            before.break_off()

    def _heard(self, message: WireMessage) -> None:
        if self.tunnels is not None:
            self.tunnels.heard(message.payload)
