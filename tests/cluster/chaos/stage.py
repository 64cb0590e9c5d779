"""One run: hosts, servers, and agents that live on all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from tests.chaos.habits import Habits
from tests.chaos.stage import Stage
from tests.cluster.machines import Machines

SETTLE_S = 150.0  # a seat that is lost, an election of NATS, and a busy machine


class ClusterStage(Stage):
    def __init__(self, seed: object, names: Sequence[str], habits: Habits, machines: Machines) -> None:
        first = next(iter(machines.hosts.values()))
        super().__init__(seed, names, habits, (), first.directory)
        self.daemon = first
        self.machines = machines
        self.sockets = {host: daemon.socket for host, daemon in machines.hosts.items()}
        homes = list(self.sockets.values())
        for place, agent in enumerate(self.agents):
            agent.homes = homes
            agent.socket = homes[place % len(homes)]

    def _start(self) -> None:
        """They run already, and are removed by who started them."""

    def _remove(self) -> None: ...

    async def read_events(self) -> str:
        """Nothing: each host records the events of the time it had the seat."""
        return ""

    async def seat(self) -> str:
        return await asyncio.to_thread(lambda: self.machines.seat)

    async def leader(self) -> str:
        return await asyncio.to_thread(lambda: self.machines.leader)
