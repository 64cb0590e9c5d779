"""A budget is held against everything that was spent, also before it was set, and acted upon once."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agent_relay.daemon.budget_keeper import BudgetKeeper
from agent_relay.daemon.shelves import FileShelf
from agent_relay.events.budgets import Budget
from agent_relay.events.bus import EventBus
from agent_relay.events.prices import Price, Prices
from agent_relay.events.types import TokensUsed
from agent_relay.ports.callers import RELAY, Caller
from agent_relay.protocol.errors import ErrorCode, RelayError
from tests.support.event_driver import START_MS, HarnessEvents, make_note

PRICES = Prices([Price("m", Decimal(1), Decimal(1))])  # a dollar a million tokens


class Relay:
    """What the keeper acts upon: whether agents may be started, and those that run."""

    def __init__(self) -> None:
        self.is_paused = False
        self.is_silent = False
        self.stopped: list[str] = []

    def pause(self, reason: str) -> None:
        assert reason.endswith(".")
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False

    def agents(self) -> list[Any]:
        if self.is_silent:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE)
        return [SimpleNamespace(name="Bob")]

    async def control(self, name: str, command: str, *, caller: Caller) -> None:
        assert caller is RELAY  # it holds on every host
        self.stopped.append(f"{command} {name}")


class Scene:
    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "budget.json")
        self.events = HarnessEvents()
        self.relay = Relay()
        self.keeper = self.open(self.events.bus)

    def open(self, bus: EventBus) -> BudgetKeeper:
        relay: Any = self.relay
        return BudgetKeeper(FileShelf(self.path), bus, self.events.recorder, relay, relay, lambda: START_MS, lambda: PRICES)

    def spend(self, dollars: int, usage_id: str | None = None) -> None:
        used = TokensUsed(
            session_id="s", agent_name="Bob", model="m", input_tokens=dollars * 1_000_000, output_tokens=0, usage_id=usage_id
        )
        self.events.recorder.publish(used, agent="Bob", session_id="s", at_ms=START_MS)

    def settle(self) -> None:
        while self.events.step():
            pass

    @property
    def told(self) -> list[tuple[str, float, str]]:
        return [(each["budget"], each["spentUsd"], each["action"]) for each in self.events.named("budget.exceeded")]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def total(dollars: int, action: Any = "pause-spawning") -> Budget:
    return Budget(max_total=Decimal(dollars), action=action)


def test_a_new_budget_that_is_reached_already_is_told_and_acted_upon(scene: Scene) -> None:
    scene.spend(3)
    scene.settle()
    scene.keeper.set(total(2))
    scene.settle()
    assert (scene.told, scene.relay.is_paused) == ([("total", 3, "pause-spawning")], True)
    assert scene.keeper.current() == total(2)
    scene.spend(1)
    scene.settle()
    assert len(scene.told) == 1
    scene.keeper.set(total(100))
    assert not scene.relay.is_paused


def test_that_goes_for_each_further_budget(scene: Scene) -> None:
    async def play() -> None:
        scene.keeper.set(total(2, "alert"))
        scene.spend(3)
        scene.settle()
        scene.keeper.set(total(2, "stop-all"))
        scene.settle()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(play())
    assert scene.told == [("total", 3, "alert"), ("total", 3, "stop-all")]
    assert (scene.relay.is_paused, scene.relay.stopped) == (True, ["stop Bob"])


def test_a_past_that_is_no_longer_in_memory_is_read_from_the_store(scene: Scene) -> None:
    """The end of it is nothing a budget looks at, so only the clock brings the keeper there."""
    scene.spend(3)
    scene.settle()
    for place in range(600):
        scene.events.recorder.record([make_note(place)])
    scene.settle()
    keeper = scene.open(EventBus(scene.events.store))
    keeper.set(total(2))
    assert keeper.current() == total(2)
    scene.settle()
    keeper.clock_says()
    scene.settle()
    assert (scene.told, scene.relay.is_paused) == ([("total", 3, "pause-spawning")], True)


def test_the_next_daemon_keeps_to_it_without_telling_it_again(scene: Scene) -> None:
    scene.keeper.set(total(2))
    scene.spend(3)
    scene.settle()
    scene.relay.is_paused = False
    again = scene.open(EventBus(scene.events.store))
    again.start()
    scene.settle()
    assert (len(scene.told), scene.relay.is_paused, again.current()) == (1, True, total(2))
    again.set(total(2))  # the same, said again
    assert len(scene.told) == 1


def test_a_usage_that_is_told_again_is_spent_once(scene: Scene) -> None:
    scene.keeper.set(total(4))
    for _ in range(2):
        scene.spend(3, "run:1")
        scene.settle()
    assert scene.told == []
    scene.spend(3, "run:2")
    scene.settle()
    assert scene.told == [("total", 6, "pause-spawning")]


@pytest.mark.parametrize("content", [b"", b"{", b'{"maxTotal": -1}', b'{"action": "\xff"}'])
def test_a_file_that_cannot_be_read_stops_nobody(scene: Scene, content: bytes) -> None:
    Path(scene.path).write_bytes(content)
    scene.keeper.start()
    assert scene.keeper.current() == Budget()


def test_agents_that_could_not_be_stopped_are_stopped_when_the_relay_answers_again(scene: Scene) -> None:
    async def main() -> None:
        scene.relay.is_silent = True
        scene.keeper.set(total(2, "stop-all"))
        scene.spend(3)
        scene.settle()
        for _ in range(3):
            await asyncio.sleep(0)
        assert scene.relay.stopped == []
        scene.relay.is_silent = False
        scene.keeper.clock_says()
        for _ in range(3):
            await asyncio.sleep(0)
        scene.keeper.clock_says()
        await asyncio.sleep(0)
        assert scene.relay.stopped == ["stop Bob"]

    asyncio.run(main())
