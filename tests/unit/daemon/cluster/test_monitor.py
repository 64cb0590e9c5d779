"""The monitor's pages: every number has the host as a label, and readiness says why not."""

from __future__ import annotations

import asyncio
import dataclasses

from prometheus_client.parser import text_string_to_metric_families

from agent_relay.cluster.figures import Figures
from agent_relay.daemon.cluster.monitor import ClusterMonitor, HostFacts, open_monitor
from agent_relay.transports.http.port import open_port

FACTS = HostFacts(
    is_seated=True, term=3, position=41, behind=2, is_connected=True, links=2, connections=5, copy_bytes=4096,
    troubles={"nats": "", "log": "refused"}, refusal="",
)  # fmt: skip


def samples(monitor: ClusterMonitor) -> dict[tuple[str, str], float]:
    page = monitor.page("/metrics")
    assert page is not None
    families = text_string_to_metric_families(page.content.decode())
    found = {}
    for sample in (sample for family in families for sample in family.samples if sample.name.startswith("agent_relay_")):
        labels = dict(sample.labels)
        assert labels.pop("host") == "a"
        found[sample.name.removeprefix("agent_relay_cluster_"), ",".join(labels.values())] = sample.value
    return found


def test_the_numbers_are_those_of_the_host() -> None:
    figures = Figures(seats_taken=1, packets_resent=4, link_sent_bytes=10, link_received_bytes=20, seats_lost={"superseded": 2})
    figures.confirmed(0.003)
    found = samples(ClusterMonitor("a", figures, lambda: FACTS))
    wanted = {
        ("seat", ""): 1, ("ready", ""): 1, ("term", ""): 3, ("position", ""): 41, ("behind_records", ""): 2, ("links", ""): 2,
        ("connections", ""): 5, ("copy_bytes", ""): 4096, ("trouble", "nats"): 0, ("trouble", "log"): 1,
        ("seats_taken_total", ""): 1, ("seats_lost_total", "superseded"): 2, ("seats_lost_total", "left"): 0,
        ("packets_resent_total", ""): 4, ("link_bytes_total", "sent"): 10, ("link_bytes_total", "received"): 20,
        ("confirm_seconds_bucket", "0.002"): 0, ("confirm_seconds_bucket", "0.005"): 1, ("confirm_seconds_bucket", "+Inf"): 1,
        ("confirm_seconds_count", ""): 1, ("confirm_seconds_sum", ""): 0.003,
    }  # fmt: skip
    assert {key: found.get(key) for key in wanted} == wanted


def test_an_edge_that_cannot_serve_says_why() -> None:
    monitor = ClusterMonitor("a", Figures(), lambda: dataclasses.replace(FACTS, refusal="No majority."))
    ready, health = monitor.page("/ready"), monitor.page("/health")
    assert ready is not None
    assert health is not None
    assert (ready.status, ready.content, health.status) == (503, b"No majority.\n", 200)
    assert monitor.page("/other") is None
    assert samples(monitor)["ready", ""] == 0


def test_without_an_address_or_with_a_taken_port_there_is_none() -> None:
    async def live() -> None:
        monitor = ClusterMonitor("a", Figures(), lambda: FACTS)
        assert await open_monitor(None, monitor) is None
        with open_port("127.0.0.1", 0) as taken:
            assert await open_monitor(taken.getsockname(), monitor) is None

    asyncio.run(live())
