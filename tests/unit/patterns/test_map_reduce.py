from __future__ import annotations

from typing import Any

import pytest

from agent_relay import patterns
from agent_relay.protocol.errors import RelayError
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import DEADLINE_S, StandIn, play, refuse, say_it


def test_results_and_failures_are_in_the_order_of_the_items(daemon: DaemonProcess) -> None:
    async def moody(message: Message) -> None:
        await (refuse if "say 2" in message.body or "say 4" in message.body else say_it)(message)

    async def scene(relay: StandIn) -> None:
        relay.parts["moody"] = moody
        found = await patterns.map_reduce(
            relay, task="say", items=range(1, 6), worker_cli="moody", template="{{task}} {{item}}", max_workers=5, retries=3,
            timeout=DEADLINE_S, name="Counter",
        )  # fmt: skip
        assert [(each.item, each.result) for each in found.results] == [(1, "1"), (3, "3"), (5, "5")]
        assert [(each.item, each.attempts) for each in found.failures] == [(2, 1), (4, 1)]
        assert (found.output, found.reduce_error, found.worker_count) == (None, None, 5)
        assert all(name.startswith("Counter-") for name in relay.started)

    play(daemon, scene)


def test_no_more_workers_than_allowed_at_once(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        found = await patterns.map_reduce(relay, task="say it", items="abcdefg", worker_cli="talker", max_workers=2)
        assert (len(found.results), len(relay.started), relay.most_running) == (7, 7, 2)

    play(daemon, scene)


def test_the_results_are_made_one(daemon: DaemonProcess) -> None:
    async def repeat(message: Message) -> None:
        await (message.reply(message.body) if message.body.startswith("Join") else say_it(message))

    async def scene(relay: StandIn) -> None:
        relay.parts["repeater"] = repeat
        found = await patterns.map_reduce(
            relay, task="", items=["say a", "say b"], worker_cli="repeater", template="{{item}}", reduce="Join them."
        )
        assert found.output is not None
        assert found.output.startswith("Join them.\n\nResult for say a:\na\n\nResult for say b:\nb\n\nThis is task task-")

    play(daemon, scene)


def test_a_reduction_that_fails_does_not_lose_the_results(daemon: DaemonProcess) -> None:
    async def mapper_only(message: Message) -> None:
        await (refuse if message.body.startswith("Join") else say_it)(message)

    async def scene(relay: StandIn) -> None:
        relay.parts["mapper"] = mapper_only
        found = await patterns.map_reduce(relay, task="say it", items=["a"], worker_cli="mapper", reduce="Join them.")
        assert ([each.item for each in found.results], found.output) == (["a"], None)
        assert found.reduce_error is not None
        assert found.reduce_error.message == "I will not."

    play(daemon, scene)


def test_nothing_to_do_starts_nobody(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        nothing: list[str] = []
        found = await patterns.map_reduce(relay, task="say", items=nothing, worker_cli="talker", reduce="Join.")
        assert (found.results, found.failures, found.output, found.worker_count) == ((), (), None, 0)
        cases: list[dict[str, Any]] = [{"max_workers": 0}, {"timeout": 0.0}, {"name": "no name"}]
        for wrong in cases:
            with pytest.raises(RelayError):
                await patterns.map_reduce(relay, task="say", items=["a"], worker_cli="talker", **wrong)

    play(daemon, scene)


def test_the_time_of_an_item_begins_when_it_has_a_worker(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        found = await patterns.map_reduce(
            relay, task="say", items=["a", "b"], worker_cli="talker", max_workers=1, timeout=DEADLINE_S
        )
        assert found.duration_s >= sum(each.duration_s for each in found.results)

    play(daemon, scene)
