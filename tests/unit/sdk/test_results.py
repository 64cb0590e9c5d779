"""Results of tasks, given and heard over a real daemon."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.client import RelayClient
from agent_relay.testing.daemon import DaemonProcess


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as process:
        yield process


def play(daemon: DaemonProcess, scene: Callable[[RelayClient, RelayClient], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(120), daemon.connect("Lead") as lead, daemon.connect("Ann") as ann:
            await scene(lead, ann)

    asyncio.run(main())


@pytest.mark.parametrize(("value", "text"), [("two\nlines", "two\nlines"), ({"n": [1, None]}, '{"n":[1,null]}'), (None, "null")])
def test_a_result_is_the_answer_to_its_task(daemon: DaemonProcess, value: object, text: str) -> None:
    async def scene(lead: RelayClient, ann: RelayClient) -> None:
        asked = await lead.ask("Ann", "Count.", 60, thread=f"task-{text}", kind="task")
        receipt = await ann.result(f"task-{text}", value)
        reply = await lead.answer_to(asked, 60)
        assert (reply.by, reply.body, reply.data) == ("Ann", text, {"task": f"task-{text}"})
        assert reply.message is not None
        assert (reply.message.kind, reply.message.id) == ("result", receipt.message_id)

    play(daemon, scene)


def test_an_error_says_why_there_is_no_result(daemon: DaemonProcess) -> None:
    async def scene(lead: RelayClient, ann: RelayClient) -> None:
        asked = await lead.ask("Ann", "Count.", 60, thread="broken", kind="task")
        await ann.result("broken", None, "There is nothing to count.")
        reply = await lead.answer_to(asked, 60)
        assert reply.data == {"task": "broken", "error": "There is nothing to count."}

    play(daemon, scene)


def test_the_newest_question_of_a_task_gets_the_result(daemon: DaemonProcess) -> None:
    async def scene(lead: RelayClient, ann: RelayClient) -> None:
        first = await lead.ask("Ann", "Count.", 60, thread="twice", kind="task")
        await ann.result("twice", "many")
        await lead.answer_to(first, 60)
        again = await lead.ask("Ann", "A number, please.", 60, thread="twice", kind="task")
        await ann.result("twice", 7)
        assert (await lead.answer_to(again, 60)).body == "7"

    play(daemon, scene)


def test_what_is_no_task_of_ours_is_refused(daemon: DaemonProcess) -> None:
    async def scene(lead: RelayClient, ann: RelayClient) -> None:
        with pytest.raises(RelayError, match="Ann was given no task 'nothing'") as refused:
            await ann.result("nothing", 1)
        assert (refused.value.code, refused.value.details["reason"]) == (ErrorCode.INVALID_TARGET, "task_not_found")
        await lead.ask("Ann", "Count.", 60, thread="whose", kind="task")
        with pytest.raises(RelayError, match="Lead was given no task 'whose'"):
            await lead.result("whose", 1)
        with pytest.raises(RelayError, match="cannot be written as JSON"):
            await ann.result("whose", object())

    play(daemon, scene)


def test_the_first_result_counts_and_the_same_again_is_no_other(daemon: DaemonProcess) -> None:
    async def scene(lead: RelayClient, ann: RelayClient) -> None:
        await lead.ask("Ann", "Count.", 60, thread="once", kind="task")
        first = await ann.result("once", "one")
        assert (await ann.result("once", "one")).message_id == first.message_id
        with pytest.raises(RelayError, match="already has a result from Ann"):
            await ann.result("once", "two")

    play(daemon, scene)
