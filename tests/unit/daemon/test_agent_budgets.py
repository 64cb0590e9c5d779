"""The budget of one agent: counted by its session, told once, and the agent released."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

from agent_relay.daemon.agent_budgets import AgentBudgets
from agent_relay.events.prices import Price, Prices
from agent_relay.events.types import TokensUsed
from agent_relay.ports.callers import RELAY, Caller
from agent_relay.protocol.errors import ErrorCode, RelayError
from tests.support.event_driver import START_MS, HarnessEvents

PRICES = Prices([Price("m", Decimal(1), Decimal(1))])  # a dollar a million tokens


class Scene:
    def __init__(self) -> None:
        self.events = HarnessEvents()
        self.limits: dict[str, tuple[str, float]] = {"s": ("Bob", 2.0)}
        self.released: list[tuple[str, str]] = []
        self.refusal: RelayError | None = None
        service: Any = self
        self.budgets = AgentBudgets(
            self.events.bus, self.events.recorder, lambda: self.limits, service, lambda: START_MS, lambda: PRICES
        )

    async def release(self, name: str, reason: str, *, caller: Caller) -> None:
        assert caller is RELAY  # it holds on every host
        self.released.append((name, reason))
        if self.refusal is not None:
            raise self.refusal

    def spend(self, dollars: int, session: str = "s", usage_id: str | None = None, model: str = "m") -> None:
        used = TokensUsed(
            session_id=session,
            agent_name="Bob",
            model=model,
            input_tokens=dollars * 1_000_000,
            output_tokens=0,
            usage_id=usage_id,
        )
        self.events.recorder.publish(used, agent="Bob", session_id=session, at_ms=START_MS)

    def look(self) -> None:
        async def play() -> None:
            while self.events.step():
                pass
            self.budgets.clock_says()
            while self.events.step():
                pass
            self.budgets.clock_says()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        asyncio.run(play())

    @property
    def told(self) -> list[tuple[str, str, float, float, str]]:
        found = self.events.named("budget.exceeded")
        return [(each["budget"], each["agent"], each["limitUsd"], each["spentUsd"], each["action"]) for each in found]


def test_an_agent_that_has_spent_its_budget_is_released_once() -> None:
    scene = Scene()
    scene.spend(1)
    scene.look()
    assert scene.released == []
    scene.spend(1)
    scene.look()
    scene.spend(5)
    scene.look()
    assert scene.released == [("Bob", "Its budget of $2.0 is spent.")]
    assert scene.told == [("session", "Bob", 2.0, 2.0, "stop")]


def test_other_sessions_repeats_and_unknown_prices_do_not_count() -> None:
    scene = Scene()
    scene.spend(1, usage_id="u")
    scene.spend(1, usage_id="u")
    scene.spend(9, session="other")
    scene.spend(9, model="unknown")
    scene.look()
    assert scene.released == []


def test_the_past_of_a_running_session_counts() -> None:
    scene = Scene()
    scene.limits = {}
    scene.spend(3)
    scene.look()  # nobody has a budget: nothing is watched
    assert scene.told == []
    scene.limits = {"s": ("Bob", 2.0)}
    scene.look()
    assert [name for name, _ in scene.released] == ["Bob"]


def test_one_that_cannot_be_released_is_no_crash() -> None:
    scene = Scene()
    scene.refusal = RelayError(ErrorCode.INVALID_TARGET, "It has ended.")
    scene.spend(3)
    scene.look()
    assert len(scene.released) == 1
