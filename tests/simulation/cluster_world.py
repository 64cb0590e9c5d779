"""A cluster by a seed: three whole hosts, agents on all of them, and everything that can go wrong in between.

The rules of chaos judge what the agents saw; a failure is repeated by its number.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.chaos.history import History
from tests.chaos.rules import Breach, check
from tests.simulation.cluster_agent import ClusterAgent
from tests.simulation.cluster_hosts import Disk, Host
from tests.support.cluster_model import Engine

NAMES = ("Ann", "Bob", "Cyd", "Dan")
STEPS = 10
_ACT_MS = 100
_SETTLE_MS = 240_000
_ASK_MS = 5_000


class ClusterWorld:
    def __init__(self, seed: int, *, checks_sequence: bool = True) -> None:
        self.seed = seed
        self.engine = Engine(seed, loss=0.02, doubling=0.02)
        self.engine.checks_sequence = checks_sequence
        self.history = History(now=0.0)
        self.late_answers = self.seats_lost = 0
        self._is_calm = False
        self._lives = 0
        self._disks = {name: Disk(self.engine) for name in "abc"}
        self._clocks = {name: self.engine.random.choice((0, -5_000, 800, 3_000)) for name in "abc"}
        self.hosts = {name: self._bring_up(name) for name in "abc"}
        self.agents = {name: ClusterAgent(self, name, "abc"[place % 3]) for place, name in enumerate(NAMES)}
        self.engine.later(_ACT_MS, self._act)

    def _bring_up(self, name: str) -> Host:
        self._lives += 1
        return Host(self, name, f"{name}{self._lives}", self._disks[name], self._clocks[name])

    def _act(self) -> None:
        self.history.now = self.engine.now / 1_000
        for agent in self.agents.values():
            if self._is_calm or self.engine.random.random() < 0.6:
                agent.act(is_calm=self._is_calm)
        self.engine.later(_ACT_MS, self._act)

    def run(self, ms: int) -> None:
        self.engine.run_until(self.engine.now + ms)

    # --- faults ---------------------------------------------------------------------------------------------------------

    def _any_host(self) -> str:
        seats = [name for name, host in self.hosts.items() if host.is_seated]
        return (
            self.engine.random.choice(seats) if seats and self.engine.random.random() < 0.6 else self.engine.random.choice("abc")
        )

    def kill(self) -> None:
        name = self._any_host()
        self.hosts[name].die()
        self.run(self.engine.random.choice((1, 500, 5_000)))
        self.hosts[name] = self._bring_up(name)

    def cut(self) -> None:
        name = self._any_host()
        self.engine.cut.add(name)
        self.run(self.engine.random.choice((300, 5_000, 9_000, 20_000)))
        self.engine.cut.discard(name)

    def hang(self) -> None:
        """It misses that its time is over, and wakes with what lay in its sockets."""
        host = self.hosts[self._any_host()]
        host.freeze()
        self.run(self.engine.random.choice((400, 2_000, 6_000, 20_000)))
        host.thaw()

    def lose_leader(self) -> None:
        self.engine.is_down = True
        self.run(self.engine.random.choice((2_000, 9_000, 16_000)))
        self.engine.is_down = False

    def move(self) -> None:
        """Some go to other hosts, and some of those are at both for a while."""
        for agent in self.agents.values():
            if self.engine.random.random() < 0.6:
                agent.move(closes=self.engine.random.random() < 0.4)

    FAULTS: tuple[Callable[[ClusterWorld], None], ...] = (kill, cut, hang, lose_leader, move, move)

    def live(self) -> None:
        self.run(4_000)
        for _ in range(STEPS):
            fault = self.engine.random.choice(self.FAULTS)
            self.history.fault(fault.__name__)
            fault(self)
            self.history.now = self.engine.now / 1_000
            self.history.fault(fault.__name__, ends=True)
            self.run(self.engine.random.choice((100, 1_500, 6_000)))
        self._settle()

    # --- the end --------------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        self._is_calm = True
        self.engine.loss = self.engine.doubling = 0.0
        deadline = self.engine.now + _SETTLE_MS
        while self.engine.now < deadline:
            self.run(_ASK_MS)
            if all(agent.is_connected and not agent.unanswered and not agent.open for agent in self.agents.values()):
                self.history.settled()
                return
            for agent in self.agents.values():
                if agent.is_connected:
                    agent.ask_again()
        rest = {agent.name: (agent.is_connected, len(agent.unanswered), len(agent.open)) for agent in self.agents.values()}
        self.history.unsettled(f"it did not come to rest (connected, unanswered, open): {rest}")

    def check(self) -> list[Breach]:
        """But for `durable`: it takes for granted that whoever says something later has been heard before, and an agent that is
        at two hosts says the one here and the other there."""
        return [breach for breach in check(self.history) if breach.rule != "durable"]


def run_cluster_seed(seed: int) -> ClusterWorld:
    """Runs one cluster; a failure says how to run it again."""
    world = ClusterWorld(seed)
    world.live()
    breaches = world.check()
    if breaches:
        said = "\n  ".join(str(breach) for breach in breaches[:8])
        raise AssertionError(
            f"seed {seed}: {len(breaches)} breaches\n  {said}\nagain: python -m tests.simulation --cluster-seed {seed}"
        )
    return world
