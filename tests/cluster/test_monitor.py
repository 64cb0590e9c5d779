"""What an operator sees of each host, at its own port: the seat, an edge, and a host that cannot serve."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

from agent_relay.testing.daemon import DaemonProcess
from tests.cluster.hosts import joined
from tests.support.nats_servers import NatsServers, free_ports, run_servers

PATIENCE_S = 90.0


class Watched:
    """A host with a monitor."""

    def __init__(self, servers: NatsServers, name: str, port: int) -> None:
        self.name, self._port = name, port
        self.daemon = DaemonProcess(
            f"--cluster={','.join(servers.urls)}", f"--cluster-host={name}", "--cluster-replicas=1",
            f"--cluster-monitor=127.0.0.1:{port}", "--http=false",
        )  # fmt: skip

    def page(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def number(self, name: str, **labels: str) -> float:
        wanted = {"host": self.name, **labels}
        for family in text_string_to_metric_families(self.page("/metrics")[1]):
            for sample in family.samples:
                if sample.name == f"agent_relay_cluster_{name}" and sample.labels == wanted:
                    return sample.value
        return -1.0


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_each_host_tells_its_own_numbers() -> None:
    ports = free_ports(2)
    with run_servers(1) as servers:
        hosts = [Watched(servers, name, port) for name, port in zip("ab", ports, strict=True)]
        try:
            for host in hosts:
                host.daemon.start()
            wait_for(lambda: all(host.page("/ready")[0] == 200 for host in hosts), "both hosts become ready")
            wait_for(lambda: sum(host.number("seat") for host in hosts) == 1, "one of them has the seat")
            seat, edge = sorted(hosts, key=lambda host: -host.number("seat"))
            with joined(seat.daemon, "Alice") as alice, joined(edge.daemon, "Bob"):
                alice.send("Bob", "Hello.")
                wait_for(lambda: seat.number("confirm_seconds_count") >= 1, "the seat has timed a record")
                wait_for(lambda: edge.number("position") == seat.number("position") > 1, "the edge's copy has it")
                wait_for(lambda: edge.number("behind_records") == 0, "the edge knows that")
                assert (seat.number("links"), edge.number("links")) == (1, 1)
                assert (seat.number("connections"), edge.number("connections")) == (2, 1)
                assert seat.number("link_bytes_total", direction="received") > 0
                assert edge.number("link_bytes_total", direction="sent") > 0
                assert edge.number("confirm_seconds_count") == 0
                assert seat.number("seats_taken_total") == 1
                assert edge.number("nats_connections_total") == 1
            servers.servers[0].kill()
            wait_for(lambda: edge.page("/ready")[0] == 503, "the edge says that it cannot serve")
            assert "cannot reach its cluster" in edge.page("/ready")[1]
            assert edge.page("/health")[0] == 200
            wait_for(lambda: edge.number("trouble", part="nats") == 1, "the trouble is marked")
            assert edge.number("nats_connected") == 0
        finally:
            for host in hosts:
                host.daemon.remove()
