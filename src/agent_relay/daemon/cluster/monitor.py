"""The monitor of a cluster's host: `/metrics` for Prometheus, `/health` and `/ready` for whoever starts and balances daemons.

Every host has its own, seat or edge, and every number has its name as a label. What the relay as a whole does (messages,
queues, agents) is at `/metrics` of the HTTP API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from agent_relay.cluster.figures import CONFIRM_BOUNDS_S, Figures
from agent_relay.daemon.logs import logger
from agent_relay.ports.cluster import UnseatReason
from agent_relay.transports.http.port import PortUnusable, open_port
from agent_relay.transports.monitor import MonitorServer, Page
from agent_relay.version import __version__

_METRICS = "text/plain; version=0.0.4"


@dataclass(frozen=True, slots=True)
class HostFacts:
    """A host at this moment."""

    is_seated: bool
    term: int
    position: int  # of the copy
    behind: int  # records that the seat has, as far as it told, and the copy has not
    is_connected: bool  # to NATS
    links: int  # to edges at the seat; to the seat at an edge
    connections: int  # of clients: its own at an edge, all of them at the seat
    copy_bytes: int
    troubles: dict[str, str]  # by part; "" where all is well
    refusal: str  # why clients cannot be served; "": they are


class ClusterMonitor:
    def __init__(self, host: str, figures: Figures, look: Callable[[], HostFacts]) -> None:
        self._look = look
        self._registry = CollectorRegistry()
        self._registry.register(_Host(host, figures, look))
        ProcessCollector(registry=self._registry)

    def page(self, path: str) -> Page | None:
        match path:
            case "/metrics":
                return Page(200, generate_latest(self._registry), _METRICS)
            case "/health":
                return Page(200, b"ok\n")
            case "/ready":
                refusal = self._look().refusal
                return Page(503, f"{refusal}\n".encode()) if refusal else Page(200, b"ok\n")
            case _:
                return None


async def open_monitor(address: tuple[str, int] | None, monitor: ClusterMonitor) -> MonitorServer | None:
    """None: nobody asked for it, or the port cannot be had; the relay goes on without it, and the log says so."""
    if address is None:
        return None
    try:
        server = MonitorServer(open_port(*address), monitor.page)
        await server.start()
    except (PortUnusable, OSError) as error:
        logger.warning("monitor_unavailable", extra={"relay_fields": {"reason": str(error)}})
        return None
    logger.info("monitor", extra={"relay_fields": {"host": address[0], "port": server.port}})
    return server


class _Host(Collector):
    def __init__(self, host: str, figures: Figures, look: Callable[[], HostFacts]) -> None:
        self._host = host
        self._figures = figures
        self._look = look

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering does not look."""
        return []

    def collect(self) -> Iterator[Metric]:
        yield from self._now(self._look())
        yield from self._so_far(self._figures)

    def _now(self, facts: HostFacts) -> Iterator[Metric]:
        yield self._gauge("info", "Always 1; the label says which version runs.", {__version__: 1}, "version")
        for name, text, value in (
            ("seat", "1 if this host has the seat.", facts.is_seated),
            ("ready", "1 if clients of this host are served.", not facts.refusal),
            ("term", "How often the seat was claimed, as far as this host knows.", facts.term),
            ("position", "The last record of the log in this host's copy.", facts.position),
            ("behind_records", "Records that the seat has and this host's copy has not.", facts.behind),
            ("nats_connected", "1 if there is a connection to NATS.", facts.is_connected),
            ("links", "Links to edges, or to the seat.", facts.links),
            ("connections", "Clients connected through this host; at the seat, all clients.", facts.connections),
            ("copy_bytes", "Size of this host's copy of the messages, with its write-ahead log.", facts.copy_bytes),
        ):
            yield self._gauge(name, text, {"": value})
        flags = {part: bool(text) for part, text in facts.troubles.items()}
        yield self._gauge("trouble", "1 if this part has a problem, which `agent-relay status` explains.", flags, "part")

    def _so_far(self, figures: Figures) -> Iterator[Metric]:
        lost = {reason.value: figures.seats_lost.get(reason.value, 0) for reason in UnseatReason}
        yield self._counter("seats_taken", "Times this host took the seat.", {"": figures.seats_taken})
        yield self._counter("seats_lost", "Times this host lost the seat.", lost, "reason")
        yield self._counter("seat_moves", "Times this host saw another one take the seat.", {"": figures.seat_moves})
        yield self._counter("nats_connections", "Connections to NATS that were made.", {"": figures.nats_connections})
        yield self._counter("log_readings", "Times this host began to read the log.", {"": figures.log_readings})
        yield self._counter("records_resent", "Records sent to the log again.", {"": figures.records_resent})
        yield self._counter("packets_resent", "Packets of links sent again.", {"": figures.packets_resent})
        link_bytes = {"sent": figures.link_sent_bytes, "received": figures.link_received_bytes}
        yield self._counter("link_bytes", "Bytes of links to other hosts.", link_bytes, "direction")
        confirmed = HistogramMetricFamily(
            "agent_relay_cluster_confirm_seconds", "Time until the log confirmed a record; only the seat writes.", labels=["host"]
        )
        bounds = [*map(str, CONFIRM_BOUNDS_S), "+Inf"]
        confirmed.add_metric(
            [self._host], list(zip(bounds, accumulate(figures.confirms), strict=True)), sum_value=figures.confirm_s
        )
        yield confirmed

    def _gauge(self, name: str, text: str, values: Mapping[str, float], *labels: str) -> Metric:
        return self._fill(GaugeMetricFamily(f"agent_relay_cluster_{name}", text, labels=["host", *labels]), values)

    def _counter(self, name: str, text: str, values: Mapping[str, float], *labels: str) -> Metric:
        return self._fill(CounterMetricFamily(f"agent_relay_cluster_{name}", text, labels=["host", *labels]), values)

    def _fill(self, family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[str, float]) -> Metric:
        """One sample for each value of the label, or one for "" where there is no label but the host."""
        for label, value in values.items():
            family.add_metric([self._host, label] if label else [self._host], float(value))
        return family
