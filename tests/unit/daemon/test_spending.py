"""The budget of a running daemon, over the real feed: what is told, who is held back, and what a restart remembers."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from agent_relay.daemon.spending import BUDGET_FILE, Spending
from agent_relay.events.budgets import HOUR_MS, Budget
from agent_relay.events.bus import EventBus
from agent_relay.events.codec import decode_event
from agent_relay.events.filter import make_filter
from agent_relay.events.prices import Price, Prices
from agent_relay.events.recorder import Recorder
from agent_relay.events.types import BudgetExceeded, SessionEnded, TokensUsed
from agent_relay.storage.event_memory import MemoryEvents

D = Decimal
PRICES = Prices([Price("m", D(1), D(1))])  # a dollar a million


class Clock:
    now = 10 * HOUR_MS

    def steady_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self.now


class Starter:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def pause(self, reason: str) -> None:
        self.calls.append("pause")

    def resume(self) -> None:
        self.calls.append("resume")

    def stop_all(self, reason: str) -> None:
        self.calls.append(reason)


class Stage:
    def __init__(self, folder: Path) -> None:
        self.clock = Clock()
        self._turns: list[Callable[[], None]] = []
        self._store = MemoryEvents(self._turns.append)
        self.path = folder / BUDGET_FILE
        self.told: list[BudgetExceeded] = []
        self.start()

    def start(self) -> None:
        """The daemon begins, or begins again with the same files."""
        self.starter = Starter()
        self.bus = EventBus(self._store)
        self._store.open(self.bus.published)
        self._heard = self.bus.subscribe(make_filter(["budget.exceeded"]), on_news=self._hear)
        self.recorder = Recorder(self._store.append, self._turns.append)
        self.spending = Spending(str(self.path), self.bus, self.recorder, self.clock, lambda: PRICES, self.starter)
        self.spending.begin()

    def _hear(self) -> None:
        for record in self._heard.take():
            event = decode_event(record.line)
            assert isinstance(event, BudgetExceeded)
            self.told.append(event)

    def settle(self) -> None:
        """Until everything that was published has come out, and what it caused, too."""
        while self._turns:
            self._turns.pop(0)()

    def use(self, tokens: int, session: str = "s1", agent: str = "Alice", model: str = "m") -> None:
        event = TokensUsed(session_id=session, agent_name=agent, model=model, input_tokens=tokens, output_tokens=0)
        self.recorder.publish(event, agent=agent, session_id=session, at_ms=self.clock.now)
        self.settle()
        self.spending.tick()
        self.settle()

    def set(self, budget: Budget) -> None:
        self.spending.set(budget)
        self.settle()
        self.spending.tick()
        self.settle()

    def heard(self) -> list[tuple[str, float, str]]:
        told, self.told = self.told, []
        return [(event.budget, float(event.spent_usd), event.action) for event in told]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_without_a_budget_nobody_follows(stage: Stage) -> None:
    before = stage.bus.subscribers
    stage.use(10**9)
    assert stage.heard() == []
    assert stage.spending.current() == Budget()
    assert stage.bus.subscribers == before == 1
    assert not stage.path.exists()


def test_a_limit_is_told_once_and_agents_are_held_back(stage: Stage) -> None:
    stage.set(Budget(max_total=D(2), alert_threshold=D("0.5"), action="pause-spawning"))
    stage.use(900_000)
    assert (stage.heard(), stage.starter.calls) == ([], [])
    stage.use(100_000)
    assert (stage.heard(), stage.starter.calls) == ([("total", 1.0, "alert")], [])
    stage.use(1_000_000)
    stage.use(1_000_000)
    assert (stage.heard(), stage.starter.calls) == ([("total", 2.0, "pause-spawning")], ["pause"])
    stage.set(Budget(max_total=D(50), action="pause-spawning"))
    assert stage.starter.calls == ["pause", "resume"]


def test_stop_all_stops_once(stage: Stage) -> None:
    stage.set(Budget(max_per_session=D("0.5"), action="stop-all"))
    stage.use(500_000, session="s7", agent="Bob")
    stage.use(500_000, session="s7", agent="Bob")
    (event,) = stage.told
    assert (event.budget, event.agent, event.by_session, event.by_agent) == ("session", "Bob", "s7", "Bob")
    assert stage.starter.calls == ["The budget of $0.50 for a session is used up.", "pause"]


def test_an_hour_later_agents_may_start_again(stage: Stage) -> None:
    stage.set(Budget(max_per_hour=D(1), action="pause-spawning"))
    stage.use(1_000_000)
    stage.clock.now += HOUR_MS - 1
    stage.spending.tick()
    assert stage.starter.calls == ["pause"]
    stage.clock.now += 1
    stage.spending.tick()
    assert stage.starter.calls == ["pause", "resume"]


def test_a_session_that_ended_holds_nobody_back(stage: Stage) -> None:
    stage.set(Budget(max_per_session=D(1), action="pause-spawning"))
    stage.use(1_000_000)
    ended = SessionEnded(session_id="s1", ended_at=stage.clock.now, reason="completed")
    stage.recorder.publish(ended, at_ms=stage.clock.now)
    stage.settle()
    assert stage.starter.calls == ["pause", "resume"]


def test_a_new_budget_counts_what_was_spent_before_it(stage: Stage) -> None:
    for _ in range(3):
        stage.use(1_000_000)
    stage.set(Budget(max_total=D(2), action="pause-spawning"))
    assert (stage.heard(), stage.starter.calls) == ([("total", 3.0, "pause-spawning")], ["pause"])


def test_a_restart_remembers_and_tells_nothing_twice(stage: Stage) -> None:
    stage.set(Budget(max_total=D(2), action="pause-spawning"))
    stage.use(2_000_000)
    assert len(stage.heard()) == 1
    stage.spending.close()
    stage.start()
    stage.settle()
    stage.spending.tick()
    stage.settle()
    assert stage.spending.current() == Budget(max_total=D(2), action="pause-spawning")
    assert (stage.heard(), stage.starter.calls) == ([], ["pause"])
    stage.set(Budget(max_total=D(1), max_per_session=D(1), action="pause-spawning"))
    assert stage.heard() == [("session", 2.0, "pause-spawning")]


def test_a_restart_goes_on_where_it_was(stage: Stage) -> None:
    stage.set(Budget(max_total=D(2)))
    stage.use(1_500_000)
    stage.spending.close()
    stage.start()
    stage.settle()
    stage.use(500_000)
    assert stage.heard() == [("total", 2.0, "alert")]


def test_what_comes_while_the_past_is_read_is_told(stage: Stage) -> None:
    for _ in range(300):  # more than is read at once
        stage.use(5_000)
    stage.set(Budget(max_total=D(2)))
    stage.spending.close()
    stage.start()
    late = TokensUsed(session_id="s1", agent_name="Alice", model="m", input_tokens=500_000, output_tokens=0)
    stage.recorder.publish(late, agent="Alice", session_id="s1", at_ms=stage.clock.now)
    stage.recorder.flush()  # it is in the store before the rest of the past is read from there
    stage.settle()
    assert stage.heard() == [("total", 2.0, "alert")]


def test_a_feed_that_was_cut_is_taken_up_again(stage: Stage) -> None:
    stage.set(Budget(max_total=D(2)))
    feed = stage.spending._feed
    assert feed is not None
    feed.is_cut = True
    stage.bus.forget(feed)
    stage.use(2_000_000)
    stage.spending.tick()
    stage.settle()
    assert stage.heard() == [("total", 2.0, "alert")]


def test_taking_the_budget_away_frees_everybody(stage: Stage) -> None:
    stage.set(Budget(max_total=D(1), action="pause-spawning"))
    stage.use(1_000_000)
    stage.set(Budget())
    assert stage.starter.calls == ["pause", "resume"]
    assert not stage.path.exists()


def test_what_has_no_price_is_in_no_budget(stage: Stage) -> None:
    stage.set(Budget(max_total=D("0.01")))
    stage.use(10**9, model="mystery")
    assert stage.heard() == []


@pytest.mark.parametrize("content", [b"", b"{", b'{"maxTotal": -1}', b"\xff"])
def test_a_broken_file_is_no_budget(stage: Stage, content: bytes, caplog: pytest.LogCaptureFixture) -> None:
    stage.path.write_bytes(content)
    stage.start()
    assert stage.spending.current() == Budget()
    assert "budget_unreadable" in caplog.text


def test_a_budget_that_cannot_be_kept_is_not_set(stage: Stage) -> None:
    stage.path.mkdir()
    with pytest.raises(OSError, match="directory"):
        stage.spending.set(Budget(max_total=D(1)))
    assert stage.spending.current() == Budget()
