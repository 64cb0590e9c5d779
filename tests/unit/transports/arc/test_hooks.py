"""Hooks run elsewhere: what they do wrong stays with them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agent_relay.protocol.arc.codes import ArcCode, ArcProblem
from agent_relay.transports.arc.hooks import HookRunner

DEADLINE_S = 20.0


class Hook:
    name = "mine"

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.go = threading.Event()
        self.enough = threading.Event()

    def joined(self, agent_id: str) -> None:
        self.heard.append(agent_id)
        if agent_id == "wait":
            assert self.go.wait(DEADLINE_S)
        if agent_id == "fail":
            raise RuntimeError("on purpose")
        if agent_id == "enough":
            self.enough.set()

    def command(self, agent_id: str, command: str, payload: dict[str, Any]) -> dict[str, Any] | None:
        if command == "fail":
            raise RuntimeError("on purpose")
        return {"who": agent_id, "what": payload} if command == "ask" else None


@pytest.fixture
def hook() -> Hook:
    return Hook()


def test_a_hook_that_fails_goes_on(hook: Hook) -> None:
    runner = HookRunner(hook)
    for agent_id in ("one", "fail", "two", "enough"):
        runner.joined(agent_id)
    runner.left("nobody asked to be told")
    assert hook.enough.wait(DEADLINE_S)
    assert hook.heard == ["one", "fail", "two", "enough"]
    runner.stop()


def test_a_hook_that_is_behind_misses_the_newest(hook: Hook) -> None:
    runner = HookRunner(hook)
    for agent_id in ["wait"] + [str(number) for number in range(2_000)]:
        runner.joined(agent_id)
    assert runner.missed >= 999
    hook.go.set()
    while not hook.enough.is_set():
        runner.joined("enough")
    assert hook.heard[:1_000] == ["wait"] + [str(number) for number in range(999)]


def test_answers_come_back_and_failures_are_told(hook: Hook) -> None:
    async def main() -> None:
        runner = HookRunner(hook)
        assert await runner.ask("ann-1", "ask", {"x": 1}) == {"who": "ann-1", "what": {"x": 1}}
        for command, code in (("other", ArcCode.UNKNOWN_TYPE), ("fail", ArcCode.INVALID_MESSAGE)):
            with pytest.raises(ArcProblem) as problem:
                await runner.ask("ann-1", command, {})
            assert problem.value.code is code
        runner.stop()

    asyncio.run(main())
