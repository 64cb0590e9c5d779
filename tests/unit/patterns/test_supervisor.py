from __future__ import annotations

import pytest

from agent_relay import patterns
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import DEADLINE_S, SHORT_S, StandIn, play, say_it


def test_agents_that_do_nothing_are_replaced_until_the_limit(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        seen: list[str] = []

        async def improve(message: Message) -> None:
            seen.append(message.body)
            await (say_it(message) if len(seen) > 2 else message.ack())

        relay.parts["improving"] = improve
        tasks = [patterns.Task("Good", "talker", "say a"), patterns.Task("Slow", "improving", "say b")]
        found = await patterns.supervise(relay, tasks=tasks, max_restarts=2, timeout=SHORT_S * 5)
        assert sorted((answer.name, answer.text) for answer in found.completed) == [("Good", "a"), ("Slow", "b")]
        assert (found.failed, found.restarts, found.escalations) == ((), 2, ())

    play(daemon, scene)


def test_an_idle_agent_is_reminded_and_then_replaced(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        heard: list[str] = []

        async def idle(message: Message) -> None:
            heard.append(message.body)
            relay.clients[str(message.to)].report("agent.state", state="working")
            relay.clients[str(message.to)].report("agent.state", state="idle")
            await message.ack()

        relay.parts["idle"] = idle
        found = await patterns.supervise(
            relay, tasks=[patterns.Task("Ann", "idle", "x")], max_restarts=0, idle=SHORT_S, timeout=DEADLINE_S
        )
        (failure,) = found.failed
        assert failure.details["reason"] == "idle"
        assert len(heard) == 2
        assert "You are idle, and the result of task task-" in heard[1]

    play(daemon, scene)


@pytest.mark.parametrize(("decisions", "failed"), [(["retry", "no"], 1), (["no"], 1), (["Retry, please", "retry"], 0)])
def test_one_that_fails_too_often_is_escalated(daemon: DaemonProcess, decisions: list[str], failed: int) -> None:
    async def scene(relay: StandIn) -> None:
        starts = 0
        told: list[patterns.Progress] = []

        async def third_time(message: Message) -> None:
            nonlocal starts
            starts += 1
            await (say_it(message) if starts > 2 else message.ack())

        async def decide(message: Message) -> None:
            await message.reply(decisions[sum(step.kind == "escalated" for step in told) - 1])

        relay.parts |= {"third": third_time, "boss": decide}
        await relay.spawn("Boss", "boss")
        found = await patterns.supervise(
            relay, tasks=[patterns.Task("Ann", "third", "say yes")], max_restarts=0, timeout=SHORT_S * 5, escalate_to="Boss",
            escalation_timeout=DEADLINE_S, on_progress=told.append,
        )  # fmt: skip
        await relay.release("Boss")
        assert [each.decision for each in found.escalations] == decisions
        assert (len(found.failed), len(found.completed)) == (failed, 1 - failed)
        assert "did not reply" in found.escalations[0].error

    play(daemon, scene)


def test_what_cannot_be_is_refused(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        with pytest.raises(RelayError, match="`idle` must be greater than 0"):
            await patterns.supervise(relay, tasks=[], idle=0)

    play(daemon, scene)
