"""Hosts and NATS servers as machines of a network that can be cut. Of the project this uses the launcher of daemons alone."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent_relay.testing.daemon import DaemonProcess
from tests.support.nats_servers import NatsServer, NatsServers
from tests.support.networks import Network, make_network

STREAM = "RELAY_DEMO_LOG"


class Machines:
    """Hosts `a`, `b`, … and servers `n1`, `n2`, …, each in a place of its own."""

    def __init__(self, hosts: int = 3, servers: int = 3, flags: Sequence[str] = (), command: Sequence[str] = ()) -> None:
        names = list("abcdef"[:hosts])
        self.network: Network = make_network(names, [f"n{number + 1}" for number in range(servers)])
        self._folder = Path(tempfile.mkdtemp(prefix="relay-hosts-"))
        self.nats = NatsServers(self._folder, servers, self.network)
        self.servers: dict[str, NatsServer] = {server.name: server for server in self.nats.servers}
        self.hosts = {name: self._make(name, flags, command) for name in names}
        self.stopped: set[str] = set()

    def _make(self, name: str, flags: Sequence[str], command: Sequence[str]) -> DaemonProcess:
        where = [self.network.port_to(name, server.name, server.port) for server in self.nats.servers]
        (self._folder / name).mkdir()
        daemon = DaemonProcess(
            f"--cluster={','.join(f'nats://{address}:{port}' for address, port in where)}", f"--cluster-host={name}",
            "--cluster-project=demo", f"--cluster-replicas={len(where)}", *flags, directory=self._folder / name,
        )  # fmt: skip
        daemon.command = [*self.network.prefix(name), *(command or daemon.command)]
        return daemon

    def start(self) -> None:
        self.nats.start()
        for daemon in self.hosts.values():
            daemon.start()

    def notes(self, host: str) -> list[dict[str, object]]:
        """What its daemon has logged."""
        path = self.hosts[host].state_dir / "daemon.log"
        lines = path.read_text("utf-8", errors="replace").splitlines() if path.exists() else []
        found = []
        for line in lines:
            with contextlib.suppress(ValueError):  # a daemon that was killed did not finish it
                found.append(json.loads(line))
        return found

    @property
    def seat(self) -> str:
        """The host that took the seat last; the first one while nobody has."""
        claims = [
            (int(str(note["term"])), host)
            for host in self.hosts
            for note in self.notes(host)
            if note["event"] == "cluster_seated"
        ]
        return max(claims)[1] if claims else next(iter(self.hosts))

    @property
    def leader(self) -> str:
        """The server that leads the stream."""
        return self.nats.leader_of(STREAM).name

    def cut(self, place: str) -> None:
        if place in self.servers and not self.network.cuts_servers:
            self.stop(place)
        else:
            self.network.cut(place)

    def heal(self, place: str) -> None:
        if place in self.stopped:
            self.go_on(place)
        else:
            self.network.heal(place)

    def stop(self, place: str) -> None:
        """SIGSTOP."""
        self.stopped.add(place)
        self._signal(place, signal.SIGSTOP)

    def go_on(self, place: str) -> None:
        self.stopped.discard(place)
        self._signal(place, signal.SIGCONT)

    def _signal(self, place: str, number: int) -> None:
        if place in self.servers:
            self.servers[place].signal(number)
        else:
            os.kill(self.hosts[place].pid, number)

    def remove(self) -> None:
        for daemon in self.hosts.values():
            daemon.remove()
        self.nats.stop()
        self.network.close()
        shutil.rmtree(self._folder, ignore_errors=True)


@contextlib.contextmanager
def run_machines(hosts: int = 3, servers: int = 3, flags: Sequence[str] = (), command: Sequence[str] = ()) -> Iterator[Machines]:
    machines = Machines(hosts, servers, flags, command)
    try:
        machines.start()
        yield machines
    finally:
        machines.remove()
