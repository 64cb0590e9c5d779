"""Results that are not what was asked for: read, refused with a reason, asked for once more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_relay import patterns
from agent_relay.patterns import results
from agent_relay.patterns.results import make_reader, read_json
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.messages import Message
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.patterns.standing_in import DEADLINE_S, StandIn, play

SCHEMA = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"], "additionalProperties": False}


@pytest.mark.parametrize("text", ['{"a": [1]}', ' \n{"a": [1]}\n', '```json\n{"a": [1]}\n```', '```\n{"a":\n[1]}\n```\n'])
def test_json_may_stand_in_a_fence(text: str) -> None:
    assert read_json(text) == {"a": [1]}


@pytest.mark.parametrize("text", ["", "yes", "{", "[" * 100_000, 'Here it is: {"a": 1}'])
def test_what_is_no_json_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="It is not JSON"):
        read_json(text)


def test_a_value_is_checked_and_the_place_of_the_mistake_named() -> None:
    read = make_reader(SCHEMA)
    assert read('{"count": 3}') == {"count": 3}
    with pytest.raises(ValueError, match=r"At \$\.count: 'three' is not of type 'integer'"):
        read('{"count": "three"}')


def test_a_schema_that_is_none_is_refused() -> None:
    with pytest.raises(RelayError, match="not a JSON Schema"):
        make_reader({"type": "no such type"})


def test_nothing_is_fetched_for_a_schema() -> None:
    read = make_reader({"$ref": "http://127.0.0.1:9/schema.json"})
    with pytest.raises(Exception, match=r"127\.0\.0\.1") as refused:
        read("{}")
    assert "Unresolvable" in type(refused.value).__name__ + str(type(refused.value).__mro__)


def test_a_missing_package_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_import(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(results, "import_module", no_import)
    with pytest.raises(RelayError, match=r"needs the package jsonschema: pip install 'agent-relay\[run\]'"):
        make_reader(SCHEMA)


def test_a_wrong_result_is_asked_for_once_more_with_the_mistake_named(daemon: DaemonProcess) -> None:
    heard: list[str] = []

    async def learn(message: Message) -> None:
        heard.append(message.body)
        assert (message.kind, message.thread) == ("task", message.data["task"])
        await message.reply('{"count": 3}' if "was not accepted" in message.body else "three")

    async def scene(relay: StandIn) -> None:
        relay.parts["learner"] = learn
        told: list[patterns.Progress] = []
        found = await patterns.map_reduce(
            relay, task="Count", items=["x"], worker_cli="learner", schema=SCHEMA, timeout=DEADLINE_S, on_progress=told.append
        )
        assert [(each.value, each.attempts) for each in found.results] == [({"count": 3}, 1)]
        assert [step.kind for step in told] == ["started", "asked_again", "answered", "released"]
        assert '"additionalProperties":false' in heard[0]
        assert "It is not JSON" in heard[1]

    play(daemon, scene)


def test_one_that_gives_garbage_twice_has_failed_and_is_replaced(daemon: DaemonProcess) -> None:
    async def rave(message: Message) -> None:
        await message.reply("garbage")

    async def scene(relay: StandIn) -> None:
        relay.parts["raver"] = rave
        found = await patterns.fan_out(
            relay, tasks=[patterns.Task("Ann", "raver", "x")], schema=SCHEMA, retries=1, timeout=DEADLINE_S
        )
        (failure,) = found.failed
        assert (failure.attempts, failure.code, failure.details["reason"]) == (2, ErrorCode.INVALID_FORMAT, "bad_result")
        assert len(relay.started) == 2

    play(daemon, scene)


def test_an_agent_that_says_why_it_has_no_result_is_believed(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        async def give_up(message: Message) -> None:
            agent = relay.clients[message.to if isinstance(message.to, str) else ""]
            await agent.result(message.thread or "", None, "There is no such file.")
            await message.ack()

        relay.parts["honest"] = give_up
        found = await patterns.map_reduce(relay, task="Read", items=["x"], worker_cli="honest", retries=3, timeout=DEADLINE_S)
        (failure,) = found.failures
        assert failure.error.message.endswith("has no result: There is no such file.")
        assert failure.attempts == 1

    play(daemon, scene)


def test_a_result_by_the_tasks_id_is_the_answer(daemon: DaemonProcess) -> None:
    async def scene(relay: StandIn) -> None:
        async def count(message: Message) -> None:
            agent = relay.clients[message.to if isinstance(message.to, str) else ""]
            await agent.send("Lead", "I begin now.")  # no result: it names no task, and answers nothing
            await agent.result(message.thread or "", {"count": 3})
            await message.ack()

        relay.parts["counter"] = count
        found = await patterns.map_reduce(relay, task="Count", items=["x"], worker_cli="counter", schema=SCHEMA)
        assert [each.value for each in found.results] == [{"count": 3}]
        async with asyncio.timeout(120):  # the beginning is acknowledged, though nobody read it
            while (me := (await relay.agents()).find("Lead")) is None or (me.queue_depth, me.inflight) != (0, 0):
                await asyncio.sleep(0.01)

    play(daemon, scene)
