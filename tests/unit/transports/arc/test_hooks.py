"""Hooks run elsewhere: what they do wrong stays with them."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import msgspec
import pytest

from agent_relay.protocol.arc.client_frames import read_said
from agent_relay.protocol.arc.codes import ArcCode, ArcProblem
from agent_relay.transports.arc.hooks import HookRunner

DEADLINE_S = 60.0


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
        if command == "nonsense":
            return {"who": object()}
        return {"who": agent_id, "what": payload} if command == "ask" else None

    def routed(self, message: dict[str, Any]) -> None:
        self.heard.append(dict(message))
        message.clear()
        self.enough.set()


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
        answer = await runner.ask("ann-1", "ask", {"x": 1})
        assert json.loads(msgspec.json.encode(answer)) == {"who": "ann-1", "what": {"x": 1}}
        refusals = {
            "other": ArcCode.UNKNOWN_TYPE, "fail": ArcCode.INVALID_MESSAGE, "nonsense": ArcCode.INVALID_MESSAGE,
        }  # fmt: skip
        for command, code in refusals.items():
            with pytest.raises(ArcProblem) as problem:
                await runner.ask("ann-1", command, {})
            assert problem.value.code is code
        runner.stop()

    asyncio.run(main())


def test_each_hook_has_a_message_of_its_own() -> None:
    hooks = [Hook(), Hook()]
    said = read_said(b'{"to":["bob-1"],"payload":{"a":[1]},"mark":true,"type":"t","ref":7}')
    for hook in hooks:
        runner = HookRunner(hook)
        runner.routed("ann-1", said)
        assert hook.enough.wait(DEADLINE_S)
        runner.stop()
    whole = {"from": "ann-1", "to": ["bob-1"], "payload": {"a": [1]}, "mark": True, "type": "t", "ref": 7}
    assert [hook.heard for hook in hooks] == [[whole], [whole]]
