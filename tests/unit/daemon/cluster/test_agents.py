"""What a host tells the seat of its agents."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from agent_relay.cluster.asks import Asks
from agent_relay.cluster.jetstream import Names
from agent_relay.daemon.cluster.agents import RUNS, RunsTelling
from agent_relay.daemon.cluster.host_agents import HostAgents
from agent_relay.daemon.config import Config
from agent_relay.ports.agents import SessionRow
from tests.unit.cluster.test_asks import Air, Notes
from tests.unit.daemon.cluster.test_host_agents import ROW, config, make

__all__ = ["config"]  # the fixture


class Scene:
    """Host b, and the seat, at a."""

    def __init__(self, agents: HostAgents) -> None:
        self.air = Air()
        self.now = 0
        self.heard: list[list[str]] = []
        seat, self.asks = (Asks(self.air, Names("demo"), host, Notes(), 0) for host in "ab")
        seat.start()
        seat.answer(RUNS, lambda _host, body, told: (self._hear(body), told(b""))[0])
        self.telling = RunsTelling(agents, self.asks, "b", 0)

    def _hear(self, body: bytes) -> None:
        self.heard.append([row.id for row in msgspec.msgpack.decode(body, type=list[SessionRow])])

    def pass_time(self, span_ms: int) -> None:
        for _ in range(span_ms // 50):
            self.now += 50
            self.asks.clock_says(self.now)
            self.telling.clock_says(self.now, "a", None)
            while self.air.later:
                self.air.later.pop(0)()


def test_what_is_told_again_is_what_is_true_by_then(config: Config) -> None:
    agents = make(config)
    scene = Scene(agents)
    scene.air.loses_answers = 1
    scene.pass_time(50)
    assert scene.heard == [[]]
    agents.start(replace(ROW), {})  # a repetition of the first telling would say that this one is gone
    scene.pass_time(1_000)
    assert scene.heard[1:] == [["ses_1"]] * len(scene.heard[1:]) != []
    assert not agents.has_news
