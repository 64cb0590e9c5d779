"""Steps that fail, and those beside them."""

from __future__ import annotations

import asyncio
import logging

import pytest

from agent_relay.daemon.pulse import Pulse


def test_each_step_is_done_so_many_beats_apart() -> None:
    often: list[None] = []
    rarely: list[None] = []
    pulse = Pulse((1, lambda: often.append(None)), (3, lambda: rarely.append(None)))
    for _ in range(7):
        pulse.beat()
    assert (len(often), len(rarely)) == (7, 2)


def test_a_step_that_fails_stops_nothing_and_is_noted_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("agent_relay"), "propagate", True)
    done: list[None] = []
    errors = ["a", "a", "a", "b", "", "b"]

    def fail() -> None:
        error = errors.pop(0)
        if error:
            raise RuntimeError(error)

    pulse = Pulse((1, fail), (1, lambda: done.append(None)))
    with caplog.at_level(logging.ERROR, "agent_relay"):
        for _ in range(6):
            pulse.beat()
    assert len(done) == 6
    assert [str(record.exc_info[1]) for record in caplog.records if record.exc_info] == ["a", "b", "b"]


def test_it_goes_on_after_a_failure() -> None:
    async def main() -> None:
        beats = asyncio.Semaphore(0)

        def fail() -> None:
            beats.release()
            raise RuntimeError("no")

        running = asyncio.create_task(Pulse((1, fail)).run(0.001))
        async with asyncio.timeout(120):
            for _ in range(3):
                await beats.acquire()
        assert not running.done()
        running.cancel()

    asyncio.run(main())
