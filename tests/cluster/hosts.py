"""Several hosts of one relay: real daemons and real NATS servers, on this machine."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence

from agent_relay.sdk.sync import SyncRelayClient
from agent_relay.testing.daemon import DaemonProcess
from tests.support.nats_servers import NatsServers, run_servers

STREAM = "RELAY_DEMO_LOG"


class Hosts:
    def __init__(self, servers: NatsServers, count: int, flags: Sequence[str] = ()) -> None:
        self.servers = servers
        self._flags = flags  # further ones
        self.daemons = {name: self._make(name) for name in "abcdef"[:count]}

    def _make(self, name: str) -> DaemonProcess:
        replicas = len(self.servers.servers)
        return DaemonProcess(
            f"--cluster={','.join(self.servers.urls)}", f"--cluster-host={name}", "--cluster-project=demo",
            f"--cluster-replicas={replicas}", "--durability=full", *self._flags,
        )  # fmt: skip

    def add(self, name: str) -> DaemonProcess:
        """One more host, not started yet."""
        self.daemons[name] = self._make(name)
        return self.daemons[name]

    def __getitem__(self, name: str) -> DaemonProcess:
        return self.daemons[name]

    def start(self) -> None:
        for daemon in self.daemons.values():
            daemon.start()
        for daemon in self.daemons.values():
            client = daemon.connect_sync(observer=True)
            client.connect(wait=True)  # until it is let in: somebody has the seat, and is known to have it
            client.close()

    def notes(self, name: str) -> list[dict[str, object]]:
        path = self.daemons[name].state_dir / "daemon.log"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    @property
    def seat(self) -> str:
        """The host that took the seat last."""
        return max(self.seats())[1]

    def seats(self) -> list[tuple[int, str]]:
        """Each term and its host."""
        notes = [(name, note) for name in self.daemons for note in self.notes(name)]
        return [(int(str(note["term"])), name) for name, note in notes if note["event"] == "cluster_seated"]

    def remove(self) -> None:
        for daemon in self.daemons.values():
            daemon.remove()


@contextlib.contextmanager
def run_hosts(count: int, servers: int, flags: Sequence[str] = (), max_payload: str = "8MB") -> Iterator[Hosts]:
    with run_servers(servers, max_payload=max_payload) as nats:
        hosts = Hosts(nats, count, flags)
        try:
            hosts.start()
            yield hosts
        finally:
            hosts.remove()


@contextlib.contextmanager
def joined(daemon: DaemonProcess, name: str) -> Iterator[SyncRelayClient]:
    """A client that has come in, however long nobody had the seat."""
    client = daemon.connect_sync(name)
    client.connect(wait=True)
    try:
        yield client
    finally:
        client.close()
