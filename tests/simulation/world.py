"""The world: a relay, its clients, and everything that can go wrong between them, one small step after the other."""

from __future__ import annotations

import json
import random
from typing import Any

from agent_relay.core import gathering, mailbox
from agent_relay.core.limits import Limits
from agent_relay.core.relay import Relay
from agent_relay.ports.store import Batch
from agent_relay.protocol.states import CloseReason
from tests.simulation.checks import Broken, Check
from tests.simulation.client import Client
from tests.simulation.parts import Dice, FaultyStore, Link, Notes
from tests.support.harness import OWNER_TOKEN

START_WALL = 1_800_000_000_000


class World:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = rng = random.Random(seed)
        self.steady = 1_000
        self.wall = START_WALL
        self.incarnation = 0
        self.all_durable_at = -1  # everything heard before this moment is in the store
        self.notes = Notes(self)
        self.odds = {
            "store_fails": rng.choice((0.0, 0.0, 0.02, 0.2)),
            "in_doubt": rng.choice((0.0, 0.0, 0.05, 0.2)),
            "crash_before_write": rng.choice((0.0, 0.0, 0.01, 0.1)),
            "crash_before_answer": rng.choice((0.0, 0.0, 0.01, 0.1)),
            "crash_after_answer": rng.choice((0.0, 0.0, 0.01, 0.1)),
            "cut": rng.choice((0.0, 0.01, 0.03)),
            "crash": rng.choice((0.0, 0.0, 0.005, 0.02)),
            "stall": rng.choice((0.0, 0.01)),
            "clock_jump": rng.choice((0.0, 0.002)),
        }
        self.short_lived = rng.choice((0.05, 0.15, 0.5))  # the share of messages that expire soon
        self.limits = Limits(
            queue_capacity=rng.choice((3, 20, 1000)), max_inflight=rng.choice((1, 4, 256)), ack_timeout_ms=500,
            heartbeat_ms=2_000, max_attempts=rng.choice((2, 5)), dedup_ids=1_000,
            loop_slow_after=rng.choice((0, 1, 3)), loop_hold_after=rng.choice((0, 2, 4)),
        )  # fmt: skip
        mailbox._KEPT = rng.choice((2, 10, 2_000, 2_000))  # a longer queue waits in the store
        gathering._SUSTAINED = rng.choice((0, 0, 8))  # batches in a row before one waits for more, and how slow time is then
        gathering._SLOW_MS, gathering._CLOSE_MS = rng.choice(((1, 2), (20, 60)))
        wrapped_share = rng.choice((0.0, 0.7, 1.0, 1.0))
        self.is_calm = False
        self.gathered = 0  # steps during which a batch waited for more
        self.held: set[str] = set()  # agents whose messages waited for new input at some time
        self.check = Check(self)
        self.store = FaultyStore(self)
        self.recipients: dict[str, tuple[tuple[str, int], ...]] = {}
        self.numbered: dict[tuple[str, str, str, int], tuple[str, str]] = {}
        self.ids: dict[int, str] = {}
        self.dead: set[tuple[str, str]] = set()
        self.letters: set[tuple[str, str]] = set()
        self.must_arrive: dict[str, tuple[str, str]] = {}
        self.links: list[Link] = []
        self.relay = self._start()
        self.clients = [
            Client(self, name, rng.choice((1, 3, 64)), wrapped=rng.random() < wrapped_share)
            for name in ("Ann", "Bob", "Cyd", "Dan")[: rng.randrange(2, 5)]
        ]

    def chance(self, what: str) -> bool:
        odds = self.odds[what]
        return odds > 0 and self.rng.random() < odds

    # --- the daemon's life --------------------------------------------------------------------------------------------------

    def _start(self) -> Relay:
        self.incarnation += 1
        snapshot = self.store.open()
        return Relay(
            self.limits, self.store, Dice(self.rng), self.notes, snapshot, self.steady, self.wall, owner_token=OWNER_TOKEN
        )

    def crash(self) -> None:
        """kill -9: whatever was not in the store is gone, and every connection. Clients still hear some of what was said."""
        self.notes.note("crash")
        self.store.forget_waiting()
        self.check.crashed()
        for client in self.clients:
            link = client.link
            if link is not None:
                for _ in range(self.rng.randrange(len(link.to_client) + 1)):
                    client.hear(link.to_client.popleft())
                link.alive = False
                client.lost()
        self.relay = self._start()

    def durable(self, batch: Batch) -> None:
        """What the checks need to know about what the store holds."""
        for row in batch.messages:
            self.recipients[row.id] = row.recipients
            self.ids[row.number] = row.id
            for name, seq in row.recipients:
                key = (name, row.topic, row.sender, seq)
                if key in self.numbered:
                    raise Broken(f"the number {key} was given to two messages")
                self.numbered[key] = (name, row.id)
        for letter in batch.dead_letters:
            self.dead.add((letter.recipient, self.ids[letter.number]))
            self.letters.add((letter.recipient, self.ids[letter.number]))
        for step in batch.trail:
            if step.event in {"expired", "rejected"}:
                self.dead.add(self.numbered[(step.recipient, step.topic, step.sender, step.first_seq)])

    def message_with(self, recipient: str, topic: str, sender: str, seq: int) -> tuple[str, str]:
        return self.numbered[(recipient, topic, sender, seq)]

    # --- steps ----------------------------------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self._move_time()
            self._something_happens()
            self._gather()
            self.relay.turn_ended()
            if self.relay.settled and not self.relay.journal.has_news():
                self.all_durable_at = self.steady
            self.check.state()
        self._calm_down()

    def _gather(self) -> None:
        """A batch that waits for more is let go sooner or later, unless the clock has done so."""
        if self.relay.is_gathering:
            self.gathered += 1
            if self.rng.random() < 0.5:
                self.relay.gathered()

    def _move_time(self) -> None:
        step = self.rng.choice((0, 0, 1, 1, 5, 20, 60))
        if self.rng.random() < 0.01:
            step = self.rng.choice((600, 3_000, 15_000))
        self.steady += step
        self.wall += step
        if self.chance("clock_jump"):
            self.wall += self.rng.choice((-3_600_000, 3_600_000, -50, 50))
        self.relay.clock_says(self.steady, self.wall)

    def _something_happens(self) -> None:
        rng = self.rng
        if self.chance("crash"):
            self.crash()
            return
        client = rng.choice(self.clients)
        link = client.link
        roll = rng.random()
        if roll < 0.15:
            self.store.step()
        elif roll < 0.25:
            self.relay.tick()
        elif link is None:
            if rng.random() < 0.5:
                client.connect()
        elif self.chance("cut"):
            self._cut(link)
        elif self.chance("stall"):
            link.stall()
        elif roll < 0.45:
            self._to_daemon(link, rng.randrange(1, 6))
        elif roll < 0.65:
            self._to_client(link, rng.randrange(1, 6))
        elif client.welcomed:
            self._client_acts(client)
        if link is not None and link.alive and link.unsent_bytes and rng.random() < 0.05:
            link.unstall()

    def _client_acts(self, client: Client) -> None:
        rng = self.rng
        roll = rng.random()
        if roll < 0.45:
            others = [other.name for other in self.clients if other is not client and other.token is not None]
            for _ in range(rng.choice((1, 1, 2, 8))):
                meta: dict[str, Any] = {}
                if rng.random() < self.short_lived:
                    meta["ttl_ms"] = rng.choice((1, 300, 2_000))
                if rng.random() < 0.3:
                    meta["priority"] = rng.randrange(10)
                if rng.random() < 0.3:
                    meta["requires_ack"] = True
                to = rng.choice([*others, *others, "*", others]) if others else "*"
                client.send(to, **meta)
        elif roll < 0.9:
            client.answer_one()
        elif roll < 0.95:
            client.acknowledge_again()
        else:
            client.repeat_an_old_one()

    def _to_daemon(self, link: Link, count: int) -> None:
        if link.daemon_closed is not None:
            return
        frames = [link.to_daemon.popleft() for _ in range(min(count, len(link.to_daemon)))]
        for frame in frames:
            self.check.daemon_hears(link, json.loads(frame))
        if frames:
            self.relay.received(link.peer, frames)

    def _to_client(self, link: Link, count: int) -> None:
        if link.unsent_bytes:
            return
        for _ in range(min(count, len(link.to_client))):
            frame = link.to_client.popleft()
            link.client.hear(frame)
        if link.daemon_closed is not None and not link.to_client and link.alive:
            link.alive = False
            link.client.lost()
        elif not link.to_client and link.notify_drained:
            link.unstall()

    def _cut(self, link: Link) -> None:
        """The connection dies: some of what the client sent arrives, nothing of what the daemon sent does."""
        if link.daemon_closed is None:
            self._to_daemon(link, self.rng.randrange(len(link.to_daemon) + 1))
        link.alive = False
        if link.client.link is link:
            link.client.lost()
        if link.daemon_closed is None:
            self.relay.disconnected(link.peer, CloseReason.CLIENT_GONE)

    # --- the end ----------------------------------------------------------------------------------------------------------------

    def _calm_down(self) -> None:
        """No more faults: everything that was accepted has to arrive now."""
        self.odds = dict.fromkeys(self.odds, 0.0)
        self.is_calm = True
        calm = 0
        for step in range(3_000):
            if step % 100 == 99:
                self._give_new_input()
            self.steady += 40
            self.wall += 40
            self.relay.clock_says(self.steady, self.wall)
            self.relay.tick()
            moved = self._move_everything()
            self.relay.turn_ended()
            calm = 0 if moved else calm + 1
            if calm > 60 and all(client.welcomed for client in self.clients):
                break
        self.check.state()
        self.check.end()

    def _give_new_input(self) -> None:
        """Somebody types to one agent of every ring that is held: that has to be enough for all of them."""
        for agent in self.relay.registry.agents.values():
            loop = self.relay.loops.describe(agent)
            if loop is not None and agent.loop is not None and agent.loop.barrier is not None and loop["stage"] == "held":
                self.held.add(agent.name)
                name = self.rng.choice(loop["agents"])
                next(client for client in self.clients if client.name == name).report_input()

    def _move_everything(self) -> bool:
        moved = False
        while self.store.busy:
            self.store.step()
            moved = True
        for client in self.clients:
            if client.link is None:
                client.connect()
                moved = True
            link = client.link
            assert link is not None
            if link.unsent_bytes:
                link.unstall()
            while client.to_acknowledge:
                client.answer_one()
                moved = True
            moved = moved or bool(link.to_daemon) or bool(link.to_client)
            self._to_daemon(link, 1_000)
            self._to_client(link, 1_000)
        if any(agent.mailbox.waiting or agent.mailbox.inflight for agent in self.relay.registry.agents.values()):
            moved = True
        return moved


def run_seed(seed: int, steps: int) -> World:
    """Runs one world; a failure says how to run it again. What it changed in modules is as it was afterwards."""
    changed = [(mailbox, "_KEPT"), (gathering, "_SUSTAINED"), (gathering, "_SLOW_MS"), (gathering, "_CLOSE_MS")]
    before = [getattr(module, name) for module, name in changed]
    world = World(seed)
    try:
        world.run(steps)
    except Exception as error:
        last = "\n  ".join(list(world.notes.lines)[-15:])
        raise Broken(
            f"seed {seed}: {type(error).__name__}: {error}\n  odds {world.odds}\n  {last}\n"
            f"replay it with: python -m tests.simulation --seed {seed} --steps {steps}"
        ) from error
    finally:
        for (module, name), value in zip(changed, before, strict=True):
            setattr(module, name, value)
    return world
