"""Numbers for Prometheus. What the relay knows anyway is asked for when somebody looks; only HTTP itself is counted as it goes.

How long deliveries take is read off the events, from the first look on: whoever does not look does not pay for it.
"""

from __future__ import annotations

from collections import Counter as Tally

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from agent_relay.events.bus import EventBus, Subscription
from agent_relay.events.filter import make_filter
from agent_relay.ports.service import AgentFacts, ServerFacts
from agent_relay.version import __version__

_STATES = ("starting", "idle", "working", "waiting", "offline")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class _Delivered(msgspec.Struct, rename="camel", gc=False):
    latency_ms: int | float = 0


_read_delivered = msgspec.json.Decoder(_Delivered).decode


class Metrics:
    def __init__(self, bus: EventBus) -> None:
        self._bus = bus
        self._deliveries: Subscription | None = None
        registry = self._registry = CollectorRegistry()

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            return Gauge(f"agent_relay_{name}", text, labels, registry=registry)

        self._info = gauge("info", "Always 1; the label says which version runs.", "version")
        self._uptime = gauge("uptime_seconds", "Time since the daemon started.")
        self._agents = gauge("agents", "Agents by state.", "state")
        self._queue = gauge("queue_depth", "Messages waiting for an agent.", "agent")
        self._requests = gauge("open_requests", "Permissions and questions waiting for a person.", "kind")
        self._accepted = gauge("messages_accepted", "Messages accepted since the daemon started.")
        self._refused = gauge("messages_refused", "Messages refused since the daemon started.")
        self._dead = gauge("dead_letters", "Messages that could not be delivered.")
        self._stored = gauge("stored_messages", "Messages in the store.")
        self._store_bytes = gauge("store_bytes", "Size of the store.")
        self._wal_bytes = gauge("store_wal_bytes", "Size of its write-ahead log.")
        self._events = gauge("last_event_seq", "The newest event's number.")
        self._streams = gauge("sse_streams", "Open event streams.")
        self._latency = Histogram(
            "agent_relay_delivery_seconds", "Time from accepting a message to its acknowledgement, since the first scrape.",
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._http = Histogram(
            "agent_relay_http_request_seconds",
            "Time to answer an HTTP request.",
            ("method",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._answers = Counter("agent_relay_http_responses", "HTTP responses.", ("status",), registry=registry)
        self._errors = Counter("agent_relay_http_errors", "HTTP error responses.", ("code",), registry=registry)
        self._bytes = Counter("agent_relay_http_bytes", "Bytes of HTTP bodies.", ("direction",), registry=registry)

    # --- as it goes -----------------------------------------------------------------------------------------------------

    def answered(self, method: str, status: int, seconds: float, received: int, sent: int) -> None:
        self._http.labels(method).observe(seconds)
        self._answers.labels(str(status)).inc()
        self._bytes.labels("received").inc(received)
        self._bytes.labels("sent").inc(sent)

    def failed(self, code: str) -> None:
        self._errors.labels(code).inc()

    # --- when somebody looks --------------------------------------------------------------------------------------------

    def show(self, server: ServerFacts, agents: list[AgentFacts], streams: int) -> bytes:
        self._watch_deliveries()
        self._info.labels(__version__).set(1)
        self._uptime.set(server.uptime_ms / 1000)
        self._accepted.set(server.accepted)
        self._refused.set(server.refused)
        self._dead.set(server.dead_letters)
        storage = server.storage
        self._stored.set(storage.messages)
        self._store_bytes.set(storage.size_bytes)
        self._wal_bytes.set(storage.wal_bytes)
        self._events.set(self._bus.last_seq)
        self._streams.set(streams)
        states = Tally(agent.state for agent in agents)
        for state in _STATES:
            self._agents.labels(state).set(states[state])
        self._queue.clear()
        for agent in agents:
            self._queue.labels(agent.name).set(agent.queue_depth)
        kinds = Tally(found.request.kind for agent in agents for found in agent.requests)
        for kind in ("permission", "question"):
            self._requests.labels(kind).set(kinds[kind])
        return generate_latest(self._registry)

    def _watch_deliveries(self) -> None:
        if self._deliveries is None or self._deliveries.is_over:
            self._deliveries = self._bus.subscribe(make_filter(["message.delivered"]), on_news=self._note_deliveries)
        self._note_deliveries()

    def _note_deliveries(self) -> None:
        while self._deliveries is not None and (records := self._deliveries.take(1_000)):
            for record in records:
                if record.type != "message.delivered":  # a gap is told to everybody
                    continue
                self._latency.observe(_read_delivered(record.line).latency_ms / 1000)
