"""What is asked of the relay: a floor that must be met and a goal to reach, each held against the rows of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.scenarios import FORWARDER, NATS, NATS_SYNC, PTY, REDIS_SYNC, RELAY, TMUX, Row


class Results:
    """The rows of a run by scenario and subject; a number that was not made is None."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = {(row.scenario, row.subject): row for row in rows}
        self._growth = [row for row in rows if row.scenario == "growth"]

    def find(self, scenario: str, metric: str, subject: str = RELAY) -> float | None:
        row = self._rows.get((scenario, subject))
        return row.metrics.get(metric) if row else None

    def compare(self, scenario: str, metric: str, peer: str) -> float | None:
        return _divide(self.find(scenario, metric), self.find(scenario, metric, peer))

    def growth(self) -> float | None:
        """Cost per message among many agents over the cost among few."""
        if len(self._growth) != 2:
            return None
        few, many = (row.metrics.get("cpu_us_per_message") for row in self._growth)
        return _divide(many, few)

    def taken_p50_s(self, subject: str) -> float | None:
        return _divide(self.find("terminal", "taken_p50_ms", subject), 1_000)

    def turn_p50_ms(self) -> float | None:
        """The later of the two things a turn waits for."""
        found = [self.find("turns", "answered_p50_ms"), self.find("turns", "delivered_p50_ms")]
        return max((value for value in found if value is not None), default=None)


def _divide(value: float | None, base: float | None) -> float | None:
    return value / base if value is not None and base else None


@dataclass(frozen=True, slots=True)
class Target:
    text: str
    unit: str
    floor: float
    goal: float
    read: Callable[[Results], float | None]
    more_is_better: bool = False

    def judge(self, value: float) -> str:
        def meets(limit: float) -> bool:
            return value >= limit if self.more_is_better else value <= limit

        return "goal met" if meets(self.goal) else "floor met" if meets(self.floor) else "FLOOR MISSED"


TARGETS: tuple[Target, ...] = (
    Target("pipelined 1 → 1: daemon CPU per message", "µs", 25, 12, lambda r: r.find("pipelined", "cpu_us_per_message")),
    Target("pipelined 1 → 1: throughput against JetStream, default sync", "×", 0.5, 1,
           lambda r: r.compare("pipelined", "messages_per_s", NATS), True),
    Target("pipelined 1 → 1: throughput against JetStream, sync always", "×", 8, 20,
           lambda r: r.compare("pipelined", "messages_per_s", NATS_SYNC), True),
    Target("pipelined 1 → 1: throughput against Redis Streams, always", "×", 1, 2,
           lambda r: r.compare("pipelined", "messages_per_s", REDIS_SYNC), True),
    Target("50 pairs: messages a second", "", 25_000, 60_000, lambda r: r.find("pairs", "messages_per_s"), True),
    Target("fan-out to 50: deliveries a second", "", 100_000, 250_000, lambda r: r.find("fan-out", "deliveries_per_s"), True),
    Target("one at a time: p50 until answered and delivered", "ms", 1, 0.5, lambda r: r.turn_p50_ms()),
    Target("one at a time: p99 of delivery against JetStream's, sync always", "×", 4, 2,
           lambda r: r.compare("turns", "delivered_p99_ms", NATS_SYNC)),
    Target("5,000 a second: CPU per message against the bare forwarder's", "×", 3, 1.5,
           lambda r: r.compare("steady", "cpu_us_per_message", FORWARDER)),
    Target("5,000 a second: p99 of delivery against the bare forwarder's", "×", 6, 3,
           lambda r: r.compare("steady", "delivered_p99_ms", FORWARDER)),
    Target("memory: daemon idle", "MB", 60, 40, lambda r: r.find("memory", "idle_mb")),
    Target("memory: per idle socket connection", "KB", 6, 2, lambda r: r.find("memory", "connection_kb")),
    Target("memory: per idle WebSocket, with its registration", "KB", 35, 16, lambda r: r.find("arc-idle", "websocket_kb")),
    Target("start: exec → first WELCOME", "s", 0.5, 0.25, lambda r: r.find("start", "start_s")),
    Target("cost per message: 1,000 agents connected against 10", "×", 1.5, 1.1, lambda r: r.growth()),
    Target("ARC 1 → 1: daemon CPU per message", "µs", 25, 8, lambda r: r.find("arc", "cpu_us_per_message")),
    Target("ARC broadcast to 100: daemon CPU per delivery", "µs", 15, 8,
           lambda r: r.find("arc-broadcast", "cpu_us_per_delivery")),
    Target("screen to prompt in tmux: p50 until taken, 0.3 s of it a rule", "s", 1, 0.6, lambda r: r.taken_p50_s(TMUX)),
    Target("screen to prompt in a PTY: p50 until taken, 0.3 s of it a rule", "s", 1, 0.6, lambda r: r.taken_p50_s(PTY)),
)  # fmt: skip
