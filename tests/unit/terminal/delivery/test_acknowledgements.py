"""Acknowledgements: each end of a message is told to the daemon once, and stands in the inbox file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_relay.terminal.delivery.queue import DEFAULT_TTL_MS
from tests.unit.terminal.delivery.test_deliverer import Stage


def play(folder: Path, scene: Callable[[Stage], Awaitable[None]]) -> Stage:
    async def run() -> Stage:
        stage = Stage(folder)
        await scene(stage)
        await asyncio.sleep(0)  # what is told is told in the next turn
        return stage

    return asyncio.run(run())


def test_one_that_the_agent_has_is_acknowledged_and_never_given_again(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        (message,) = stage.put("one")
        assert not stage.acknowledgements.is_over(message)
        stage.acknowledgements.finish(message, "typing", "composer", is_read=True)
        await asyncio.sleep(0)
        assert [entry[0] for entry in stage.daemon.said] == ["message.received", "ack", "message.read"]
        assert stage.acknowledgements.is_over(message)  # it came once more: the acknowledgement was lost

    stage = play(tmp_path, scene)
    assert stage.daemon.said[-1] == ("ack", "one", "typing")
    assert "given to the agent (by typing, seen by: composer)" in (tmp_path / "inbox.md").read_text("utf-8")


def test_one_whose_time_is_over_is_given_up(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        late, fresh = stage.message("late"), stage.message("fresh")
        late.queued_ms = DEFAULT_TTL_MS
        stage.deliverer.put(late)
        stage.deliverer.put(fresh)
        assert (stage.acknowledgements.is_over(late), stage.acknowledgements.is_over(fresh)) == (True, False)
        assert (stage.queue.deadline_of(late), stage.queue.deadline_of(fresh) is None) == (None, False)

    stage = play(tmp_path, scene)
    assert stage.daemon.of("nack") == ["late"]
    assert "could not be given to the agent" in (tmp_path / "inbox.md").read_text("utf-8")
