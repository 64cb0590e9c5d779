"""How a message ends: each end is told to the daemon once, and stands in the inbox file."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from agent_relay.terminal.delivery.endings import DEFAULT_TTL_MS, Settler
from agent_relay.terminal.delivery.inbox_file import InboxFile
from tests.unit.terminal.delivery.test_deliverer import Stage


def play(folder: Path, scene: Callable[[Stage, Settler], Awaitable[None]]) -> Stage:
    async def run() -> Stage:
        stage = Stage(folder)
        await scene(stage, Settler(InboxFile(str(folder)), stage.run, stage.reporter))
        await asyncio.sleep(0)  # what is told is told in the next turn
        return stage

    return asyncio.run(run())


def test_one_that_the_agent_has_is_acknowledged_and_never_given_again(tmp_path: Path) -> None:
    async def scene(stage: Stage, settler: Settler) -> None:
        message = stage.message("one")
        settler.begin(message)
        assert not settler.is_over(message)
        settler.finish(message, "typing", "composer", is_read=True)
        await asyncio.sleep(0)
        assert [entry[0] for entry in stage.daemon.said] == ["message.received", "ack", "message.read"]
        assert settler.is_over(message)  # it came once more: the acknowledgement was lost

    stage = play(tmp_path, scene)
    assert stage.daemon.said[-1] == ("ack", "one", "typing")
    assert "given to the agent (by typing, seen by: composer)" in (tmp_path / "inbox.md").read_text("utf-8")


def test_one_whose_time_is_over_is_given_up(tmp_path: Path) -> None:
    async def scene(stage: Stage, settler: Settler) -> None:
        late, fresh = stage.message("late"), stage.message("fresh")
        late.queued_ms = DEFAULT_TTL_MS
        settler.begin(late)
        settler.begin(fresh)
        assert (settler.is_over(late), settler.is_over(fresh)) == (True, False)
        assert (settler.deadline_of(late), settler.deadline_of(fresh) is None) == (None, False)

    stage = play(tmp_path, scene)
    assert stage.daemon.of("nack") == ["late"]
    assert "could not be given to the agent" in (tmp_path / "inbox.md").read_text("utf-8")
