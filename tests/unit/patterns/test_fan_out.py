from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_relay import patterns
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import SHORT_S, StandIn, play, say_it


def task(name: str, cli: str = "talker") -> patterns.Task:
    return patterns.Task(name, cli, f"say {name.lower()}")


def test_all_run_side_by_side_and_are_waited_for(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        everybody = asyncio.Barrier(3)

        async def together(message: Message) -> None:
            await everybody.wait()
            await say_it(message)

        relay.parts["together"] = together
        found = await patterns.fan_out(relay, tasks=[task(name, "together") for name in "ABC"])
        assert {answer.name: answer.text for answer in found.completed} == {"A": "a", "B": "b", "C": "c"}
        assert (found.failed, found.pending) == ((), ())

    play(daemon, scene)


@pytest.mark.parametrize(("wait_for", "answers"), [("any", 1), (2, 2)])
def test_it_ends_when_so_many_have_answered(daemon: DaemonProcess, wait_for: Any, answers: int) -> None:
    async def scene(relay: StandIn) -> None:
        tasks = [task("A", "silent"), *(task(name) for name in "BC"[:answers])]
        found = await patterns.fan_out(relay, tasks=tasks, wait_for=wait_for)
        assert [answer.text for answer in sorted(found.completed, key=lambda answer: answer.name)] == ["b", "c"][:answers]
        assert (found.failed, found.pending) == ((), ("A",))

    play(daemon, scene)


def test_one_that_fails_does_not_count(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        found = await patterns.fan_out(relay, tasks=[task("A", "unknown"), task("B")], wait_for="any")
        assert [answer.name for answer in found.completed] == ["B"]
        assert [(failure.task, failure.attempts) for failure in found.failed] == [("A", 1)]
        nobody = await patterns.fan_out(relay, tasks=[task("A", "unknown")], wait_for="any")
        assert (nobody.completed, len(nobody.failed), nobody.pending) == ((), 1, ())

    play(daemon, scene)


def test_it_ends_with_what_there_is_when_the_time_is_over(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        found = await patterns.fan_out(relay, tasks=[task("A", "silent"), task("B", "silent")], timeout=SHORT_S)
        assert (found.completed, found.failed, found.pending) == ((), (), ("A", "B"))

    play(daemon, scene)


@pytest.mark.parametrize("wrong", [{"wait_for": 0}, {"wait_for": 3}, {"wait_for": "most"}, {"tasks": [task("A"), task("a")]}])
def test_what_cannot_be_is_refused_before_anybody_is_started(daemon: DaemonProcess, wrong: dict[str, Any]) -> None:
    async def scene(relay: StandIn) -> None:
        with pytest.raises(RelayError):
            await patterns.fan_out(relay, **{"tasks": [task("A"), task("B")], **wrong})
        assert relay.started == []

    play(daemon, scene)
