"""The parts of the world that fail: the store, the links, and dice that can be thrown again."""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.connection import FULL_BYTES
from agent_relay.ports.store import (
    Batch,
    DeadLetterQuery,
    DeadLettersDone,
    MessageQuery,
    MessageRow,
    OwedDone,
    OwedQuery,
    PageDone,
    PruneDone,
    SeenDone,
    Snapshot,
    StoreError,
    StoreStats,
    TrailDone,
    WriteDone,
)
from agent_relay.protocol.states import CloseReason
from agent_relay.storage.memory import MemoryStore

if TYPE_CHECKING:
    from tests.simulation.client import Client
    from tests.simulation.world import World


class Dice:
    """`ports.Entropy` from a seed."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def fraction(self) -> float:
        return self._rng.random()

    def bits(self, count: int) -> int:
        return self._rng.getrandbits(count)

    def token(self) -> str:
        return f"{self._rng.getrandbits(256):064x}"


class Notes:
    """`ports.Log`: the last things that happened, for the report of a failure."""

    def __init__(self, world: World) -> None:
        self.lines: deque[str] = deque(maxlen=200)
        self._world = world

    def note(self, what: str, **fields: object) -> None:
        self.lines.append(f"{what} {fields}")
        if what == "dead_letter":
            self._world.check.died(str(fields["to"]), str(fields["message_id"]))


class FaultyStore:
    """Answers when the world lets it, refuses when the world says so. What it has accepted survives every crash. At times it does
    not know whether a batch is stored, says so (`trouble`), and finds out later; a crash before that decides it unseen."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._inner = MemoryStore(lambda callback: callback())
        self._waiting: deque[Callable[[], None]] = deque()
        self._in_doubt: Batch | None = None

    @property
    def trouble(self) -> str | None:
        if self._in_doubt is None:
            return None
        # Whoever asks refuses what has gathered; the sender may be gone and never hear it.
        self._world.check.nacked.update(message.row.client_id for message in self._world.relay.sending.committer.messages)
        return "the disk failed"

    def step(self) -> None:
        if self._waiting:
            self._waiting.popleft()()

    @property
    def busy(self) -> bool:
        return bool(self._waiting)

    def forget_waiting(self) -> None:
        self._waiting.clear()
        batch, self._in_doubt = self._in_doubt, None
        if batch is not None and self._world.rng.random() < 0.5:  # it was in the file after all
            self._keep(batch)

    def _keep(self, batch: Batch) -> StoreError | None:
        answer: list[StoreError | None] = []
        self._inner.write(batch, answer.append)
        if answer[0] is None:
            self._world.durable(batch)
        return answer[0]

    def _refuse(self, batch: Batch, done: WriteDone) -> None:
        self._world.check.nacked.update(row.client_id for row in batch.messages)
        done(StoreError("the disk is full"))

    def _find_out(self, batch: Batch, done: WriteDone) -> None:
        if not self._world.is_calm and self._world.rng.random() < 0.9:
            self._waiting.append(lambda: self._find_out(batch, done))
            return
        self._in_doubt = None
        if self._world.rng.random() < 0.5:
            done(self._keep(batch))
        else:
            self._refuse(batch, done)

    def open(self) -> Snapshot:
        return self._inner.open()

    def write(self, batch: Batch, done: WriteDone) -> None:
        def run() -> None:
            if self._world.chance("crash_before_write"):
                self._world.crash()
                return
            if self._world.chance("store_fails"):
                self._refuse(batch, done)
            elif self._world.chance("in_doubt"):
                self._in_doubt = batch
                self._find_out(batch, done)
            else:
                failure = self._keep(batch)
                if failure is None and self._world.chance("crash_before_answer"):
                    self._world.crash()
                    return
                done(failure)
            if self._world.chance("crash_after_answer"):
                self._world.crash()

        self._waiting.append(run)

    def find(self, query: MessageQuery, done: PageDone) -> None:
        self._waiting.append(lambda: self._inner.find(query, done))

    def fetch(self, numbers: list[int], done: PageDone) -> None:
        self._waiting.append(lambda: self._inner.fetch(numbers, done))

    def trail(self, message: MessageRow, done: TrailDone) -> None:
        self._waiting.append(lambda: self._inner.trail(message, done))

    def replay(self, recipient: str, after: dict[tuple[str, str], int], done: PageDone) -> None:
        self._waiting.append(lambda: self._inner.replay(recipient, after, done))

    def owed(self, query: OwedQuery, done: OwedDone) -> None:
        self._waiting.append(lambda: self._inner.owed(query, done))

    def seen(self, sender: str, since: int, limit: int, done: SeenDone) -> None:
        self._waiting.append(lambda: self._inner.seen(sender, since, limit, done))

    def dead_letters(self, query: DeadLetterQuery, done: DeadLettersDone) -> None:
        self._waiting.append(lambda: self._inner.dead_letters(query, done))

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        self._waiting.append(lambda: self._inner.prune(before, limit, done))

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        self._waiting.append(lambda: self._inner.erase(agent, limit, done))

    def stats(self) -> StoreStats:
        return self._inner.stats()

    def close(self) -> None:
        self._inner.close()


class Link:
    """One connection, both directions; implements `ports.Connection`."""

    def __init__(self, world: World, client: Client) -> None:
        self.unsent_bytes = 0
        self.notify_drained = False
        self.client = client
        self.peer: Any = None
        self.to_daemon: deque[bytes] = deque()
        self.to_client: deque[dict[str, Any]] = deque()
        self.daemon_closed: CloseReason | None = None
        self.alive = True
        self.asked: dict[str, int] = {}  # SENDs the daemon has heard on this link, by id
        self.answered: dict[str, int] = {}
        self._world = world

    @property
    def is_full(self) -> bool:
        return self.unsent_bytes > FULL_BYTES

    def send(self, frame: bytes) -> None:
        assert self.daemon_closed is None, "a frame was sent on a connection the daemon has closed"
        said = json.loads(frame[4:])
        self._world.check.daemon_said(self, said)
        self.to_client.append(said)

    def send_all(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.send(frame)

    def caller(self) -> Caller:
        return OWNER

    def runs(self, agent: str, pid: int | None) -> None:
        """Nobody asks."""

    def close(self, reason: CloseReason) -> None:
        assert self.daemon_closed is None, "closed twice"
        self.daemon_closed = reason

    def stall(self) -> None:
        self.unsent_bytes = 5 * 1024 * 1024

    def unstall(self) -> None:
        self.unsent_bytes = 0
        if self.notify_drained and self.alive and self.daemon_closed is None:
            self.notify_drained = False
            self._world.relay.drained(self.peer)
