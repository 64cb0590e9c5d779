"""Several hosts on this machine: NATS servers that keep one another's records, and the daemons of one relay over them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from bench.dialect import FailedRunError
from bench.relay_wire import open_agent
from bench.servers import SOCKET, Server, own_directory, run_daemon, running

Found = TypeVar("Found")
PROJECT, STREAM = "bench", "RELAY_BENCH_LOG"
_READY_S = 90.0
_LOOK_EVERY_S = 0.02
_FIGURE = re.compile(r"^agent_relay_cluster_(\w+)\{([^}]*)\} (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Node:
    """One NATS server."""

    name: str
    server: Server
    port: int
    monitor: int

    def look(self, page: str) -> dict[str, Any]:
        return dict(json.loads(fetch(self.monitor, page)))


@dataclass(frozen=True, slots=True)
class Host:
    """One daemon of the relay."""

    name: str
    server: Server
    path: str
    monitor: int

    def figures(self) -> dict[str, float]:
        """By name, with the value of a further label behind a space."""
        page = fetch(self.monitor, "metrics").decode()
        found = {}
        for name, labels, value in _FIGURE.findall(page):
            rest = [word for key, word in re.findall(r'(\w+)="([^"]*)"', labels) if key != "host"]
            found[" ".join([name, *rest])] = float(value)
        return found


@dataclass(frozen=True, slots=True)
class Cluster:
    """`hosts` begins with the one that has the seat."""

    nodes: Sequence[Node]
    hosts: Sequence[Host]

    @property
    def stream_leader(self) -> Node:
        return wait_for(self._find_leader, "a leader of the log")

    def _find_leader(self) -> Node | None:
        name = self._read_stream(self.nodes[0])["cluster"]["leader"]
        return next((node for node in self.nodes if node.name == name), None)

    def _read_stream(self, node: Node) -> dict[str, Any]:
        for account in node.look("jsz?streams=1").get("account_details", []):
            for detail in account.get("stream_detail", []):
                if detail["name"] == STREAM:
                    return dict(detail)
        raise ValueError("there is no log yet")

    def log_bytes(self) -> int:
        return int(self._read_stream(self.stream_leader)["state"]["bytes"])


def fetch(port: int, page: str) -> bytes:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10) as answer:
        return bytes(answer.read())


def wait_for(look: Callable[[], Found | None], what: str) -> Found:
    ends_at = time.monotonic() + _READY_S
    while True:
        with contextlib.suppress(OSError, ValueError, KeyError, FailedRunError):
            if found := look():
                return found
        if time.monotonic() > ends_at:
            raise FailedRunError(f"{what}: not there after {_READY_S:g} s")
        time.sleep(_LOOK_EVERY_S)


@contextmanager
def run_engine(binary: str, sync_always: bool, count: int = 3) -> Iterator[list[Node]]:
    ports = _free_ports(3 * count)
    routes = ", ".join(f"nats-route://127.0.0.1:{ports[3 * place + 2]}" for place in range(count))
    with ExitStack() as stack:
        nodes = []
        for place in range(count):
            port, monitor, route = ports[3 * place : 3 * place + 3]
            directory = stack.enter_context(own_directory())
            name, config = f"n{place + 1}", directory / "nats.conf"
            config.write_text(
                f"server_name: {name}\nlisten: 127.0.0.1:{port}\nhttp: 127.0.0.1:{monitor}\nmax_payload: 8MB\n"
                f"jetstream {{ store_dir: {json.dumps(str(directory / 'store'))}\n {'sync_interval: always' * sync_always} }}\n"
                f"cluster {{ name: bench, listen: 127.0.0.1:{route}, routes: [{routes}] }}\n"
            )
            command = [binary, "--config", str(config)]
            server = stack.enter_context(running(command, directory, dict(os.environ), may_end=True))
            nodes.append(Node(name, server, port, monitor))
        wait_for(lambda: _is_complete(nodes), "a cluster of NATS servers")
        yield nodes


def _is_complete(nodes: Sequence[Node]) -> bool:
    for node in nodes:
        meta = node.look("jsz").get("meta_cluster", {})
        if meta.get("leader") == node.name:
            return sum(bool(peer.get("current")) for peer in meta.get("replicas", [])) == len(nodes) - 1
    return False


@contextmanager
def run_cluster(command: Sequence[str], binary: str, sync_always: bool, count: int, *flags: str) -> Iterator[Cluster]:
    """Ready when every host lets an agent in."""
    with run_engine(binary, sync_always) as nodes, ExitStack() as stack:
        monitors = _free_ports(count)
        hosts = [_enter_host(stack, command, nodes, f"h{place + 1}", monitors[place], flags) for place in range(count)]
        stack.callback(_kill_all, hosts)
        for host in hosts:
            wait_for(lambda path=host.path: open_agent(path, "first"), f"host {host.name}").close()  # type: ignore[misc]
        seat = wait_for(lambda: next((host for host in hosts if host.figures().get("seat")), None), "a host with the seat")
        yield Cluster(nodes, [seat, *(host for host in hosts if host is not seat)])


def _enter_host(
    stack: ExitStack, command: Sequence[str], nodes: Sequence[Node], name: str, monitor: int, flags: Sequence[str]
) -> Host:
    directory = stack.enter_context(own_directory())
    servers = ",".join(f"nats://127.0.0.1:{node.port}" for node in nodes)
    own = (
        "--cluster",
        servers,
        "--cluster-project",
        PROJECT,
        "--cluster-host",
        name,
        "--cluster-monitor",
        f"127.0.0.1:{monitor}",
    )
    server = stack.enter_context(run_daemon(command, directory, "--no-http", *own, *flags, may_end=True))
    return Host(name, server, str(directory / SOCKET), monitor)


def _kill_all(hosts: Sequence[Host]) -> None:
    """At once: a seat that says goodbye only moves to the next one that is to be stopped."""
    for host in hosts:
        with contextlib.suppress(ProcessLookupError):
            os.kill(host.server.pid, signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def size_of_copy(host: Host) -> int:
    folder = Path(host.path).parent / "state"
    return sum(path.stat().st_size for path in folder.glob("messages.sqlite*"))
