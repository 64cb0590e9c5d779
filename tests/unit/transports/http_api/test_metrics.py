"""Metrics are counted from events, among which a gap may be."""

from __future__ import annotations

from agent_relay.events.drafts import Handover, Lost
from agent_relay.ports.service import ServerFacts, StorageFacts
from agent_relay.transports.http.metrics import Metrics
from tests.support.event_driver import START_MS, HarnessEvents

SERVER = ServerFacts(
    version="", project="", project_name="", started_at=0, uptime_ms=1, connected=0, accepted=0, refused=0, dead_letters=0,
    storage=StorageFacts(kind="memory", messages=0, size_bytes=0, wal_bytes=0, problem="", lost=""),
)  # fmt: skip


def test_a_gap_among_the_deliveries_is_passed_over() -> None:
    events = HarnessEvents()
    metrics = Metrics(events.bus)
    metrics.show(SERVER, [], 0)
    events.recorder.record([Lost(START_MS), Handover(0, START_MS, "", "Bob", "msg_1", "Bob", 1, 250)])
    while events.step():
        pass
    shown = metrics.show(SERVER, [], 0).decode()
    assert "agent_relay_delivery_seconds_count 1.0" in shown.splitlines()
