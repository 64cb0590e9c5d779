"""A store over memory that answers when the test lets it and fails when the test says so."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from agent_relay.ports.store import (
    Batch,
    ConversationsDone,
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
    StepsDone,
    StoreError,
    StoreStats,
    TrailDone,
    WriteDone,
)
from agent_relay.storage.memory import MemoryStore


class ControlledStore:
    """`ports.MessageStore`. Every call waits in a queue, first in first out, until `step` lets it happen and answers it.
    What has happened survives a `crash`; what still waits does not."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []  # that were written
        self._answers: deque[Callable[[], None]] = deque()  # called here, so that what fails in them fails the test
        self._inner = MemoryStore(self._answers.append)
        self._waiting: deque[Callable[[], None]] = deque()
        self._failures: deque[str] = deque()
        self._read_failures: deque[str] = deque()
        self._held = False
        self._lose_next_answer = False
        self.trouble: str | None = None  # the test says so

    # --- what the test says -------------------------------------------------------------------------------------------

    def fail_next(self, count: int = 1, why: str = "the disk is full") -> None:
        """The next so many writes are refused, and nothing of them is kept."""
        self._failures.extend([why] * count)

    def fail_next_read(self, count: int = 1, why: str = "the file is locked") -> None:
        self._read_failures.extend([why] * count)

    def mend(self) -> None:
        """No more failures."""
        self._failures.clear()
        self._read_failures.clear()

    def hold(self) -> None:
        """From now on everything waits."""
        self._held = True

    def release(self) -> None:
        """No more waiting: `step` goes on. The harness's `settle` runs it."""
        self._held = False

    def step(self) -> bool:
        """Lets the first call happen; False: nothing waits, or it is held."""
        return False if self._held else self.step_held()

    def step_held(self) -> bool:
        """The same, although it is held."""
        if not self._waiting:
            return False
        self._waiting.popleft()()
        while self._answers:
            self._answers.popleft()()
        return True

    def lose_next_answer(self) -> None:
        """The next write happens and nobody hears of it: what a crash between the write and its answer leaves behind."""
        self._lose_next_answer = True

    def crash(self) -> None:
        self._waiting.clear()
        self.mend()
        self._held = False

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    # --- the port -----------------------------------------------------------------------------------------------------

    def open(self) -> Snapshot:
        return self._inner.open()

    def write(self, batch: Batch, done: WriteDone) -> None:
        def run() -> None:
            if self._failures:
                done(StoreError(self._failures.popleft()))
                return
            self.batches.append(batch)
            is_lost, self._lose_next_answer = self._lose_next_answer, False
            self._inner.write(batch, (lambda _error: None) if is_lost else done)

        self._waiting.append(run)

    def find(self, query: MessageQuery, done: PageDone) -> None:
        self._read(done, lambda: self._inner.find(query, done))

    def fetch(self, numbers: list[int], done: PageDone) -> None:
        self._read(done, lambda: self._inner.fetch(numbers, done))

    def trail(self, message: MessageRow, done: TrailDone) -> None:
        self._read(done, lambda: self._inner.trail(message, done))

    def steps(self, messages: list[MessageRow], done: StepsDone) -> None:
        self._read(done, lambda: self._inner.steps(messages, done))

    def conversations(self, limit: int, done: ConversationsDone) -> None:
        self._read(done, lambda: self._inner.conversations(limit, done))

    def replay(self, recipient: str, after: dict[tuple[str, str], int], done: PageDone) -> None:
        self._read(done, lambda: self._inner.replay(recipient, after, done))

    def owed(self, query: OwedQuery, done: OwedDone) -> None:
        self._read(done, lambda: self._inner.owed(query, done))

    def seen(self, sender: str, since: int, limit: int, done: SeenDone) -> None:
        self._read(done, lambda: self._inner.seen(sender, since, limit, done))

    def dead_letters(self, query: DeadLetterQuery, done: DeadLettersDone) -> None:
        self._read(done, lambda: self._inner.dead_letters(query, done))

    def prune(self, before: int, limit: int, done: PruneDone) -> None:
        self._read(done, lambda: self._inner.prune(before, limit, done))

    def erase(self, agent: str, limit: int, done: PruneDone) -> None:
        self._read(done, lambda: self._inner.erase(agent, limit, done))

    def stats(self) -> StoreStats:
        return self._inner.stats()

    def close(self) -> None:
        self._inner.close()

    def _read(self, done: Callable[[StoreError], None], run: Callable[[], None]) -> None:
        self._waiting.append(lambda: done(StoreError(self._read_failures.popleft())) if self._read_failures else run())
