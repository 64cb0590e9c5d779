"""The process of a cluster's host: it holds the place and hears signals, and a `ClusterHost` lives in it."""

from __future__ import annotations

from contextlib import AsyncExitStack

from agent_relay.daemon.api_token import settle_api_token
from agent_relay.daemon.cluster.host import ClusterHost
from agent_relay.daemon.cluster.http import ClusterHttp
from agent_relay.daemon.cluster.identity import host_name
from agent_relay.daemon.config import Config
from agent_relay.daemon.directories import remove_file
from agent_relay.daemon.project_file import ProjectFile
from agent_relay.daemon.server import Daemon
from agent_relay.protocol import places
from agent_relay.transports.http.guard import hash_token


class ClusterDaemon(Daemon):
    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._host: ClusterHost | None = None  # once its place is held
        self._is_announced = False

    async def run(self) -> None:
        config = self._config
        name = config.cluster.host or host_name()
        async with AsyncExitStack() as opened:
            opened.callback(self._leave)
            self._prepare()
            proof = hash_token(settle_api_token(config))
            self._watch_signals()
            self._announce()
            ProjectFile(config, self._clock.wall_ms()).write()  # also where this host never has the seat
            http = ClusterHttp(config, name, proof, self._clock)
            opened.callback(http.close)
            await http.open()
            host = self._host = ClusterHost(config, name, proof, http, self._clock, self._stop)
            await host.live(opened)

    def _signalled(self, number: int) -> None:
        super()._signalled(number)
        if self._host is not None:
            self._host.stop()

    def _announce(self) -> None:
        super()._announce()
        self._is_announced = True

    def _leave(self) -> None:
        if self._is_announced:  # else they are those of the daemon that has the place
            remove_file(self._config.file(places.PID_FILE))
            remove_file(self._config.file(places.CLUSTER_FILE))
        super()._leave()
