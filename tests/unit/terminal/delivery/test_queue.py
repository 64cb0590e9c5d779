"""The queue of what an agent is to be given: in order, whoever puts something back."""

from __future__ import annotations

import asyncio
from pathlib import Path

from agent_relay.terminal.delivery.queue import Introduction, Notice, TypedText
from tests.unit.terminal.delivery.test_deliverer import Stage


def drain(stage: Stage) -> list[object]:
    found: list[object] = []
    while stage.queue:
        item = stage.queue.first
        found.append(getattr(item, "body", item))
        assert stage.queue.remove(item)
        assert not stage.queue.remove(item)
    return found


def test_what_is_put_back_stands_before_what_came_later_and_behind_words_of_the_relay(tmp_path: Path) -> None:
    async def run() -> None:
        stage = Stage(tmp_path)
        one, two = stage.put("one", "two")
        assert stage.queue.remove(one)
        assert stage.queue.remove(two)
        stage.put("three")
        stage.queue.notify("a word")
        stage.queue.put_back([two, one])
        assert drain(stage) == [Notice("a word"), "one", "two", "three"]

    asyncio.run(run())


def test_an_introduction_is_for_one_run_of_the_program(tmp_path: Path) -> None:
    async def run() -> None:
        stage = Stage(tmp_path)
        stage.queue.introduce()
        stage.queue.type_in("hello")
        assert stage.queue.first == Introduction()
        stage.queue.drop_introductions()
        assert drain(stage) == [TypedText("hello")]

    asyncio.run(run())


def test_whoever_waits_is_woken_by_what_is_put_in_and_by_time(tmp_path: Path) -> None:
    async def run() -> None:
        stage = Stage(tmp_path)
        stage.queue.notify("before")
        stage.queue.note_look()
        await stage.queue.wait(0.001)
        waiting = asyncio.create_task(stage.queue.wait(None))
        await asyncio.sleep(0)
        assert not waiting.done()
        stage.queue.notify("after")
        async with asyncio.timeout(120):
            await waiting

    asyncio.run(run())
