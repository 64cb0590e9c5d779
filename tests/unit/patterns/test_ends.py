"""What a cancellation may not break off, and what must not be left behind."""

from __future__ import annotations

import asyncio

import pytest

from agent_relay.patterns.ends import side_by_side, to_the_end
from agent_relay.patterns.sessions import Sessions
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.testing.daemon import DaemonProcess


def test_a_cancellation_waits_for_the_end_of_the_work() -> None:
    async def main() -> None:
        may_end, has_begun, seen = asyncio.Event(), asyncio.Event(), []

        async def work() -> None:
            has_begun.set()
            await may_end.wait()
            seen.append("done")

        whole = asyncio.create_task(to_the_end(work()))
        await has_begun.wait()
        for _ in range(2):
            whole.cancel()
            await asyncio.sleep(0)
            assert not whole.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await whole
        assert seen == ["done"]

    asyncio.run(main())


def test_the_work_s_own_result_and_error_are_given_on() -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def main() -> None:
        assert await to_the_end(asyncio.sleep(0, "yes")) == "yes"
        with pytest.raises(ValueError, match="no"):
            await to_the_end(fail())

    asyncio.run(main())


def test_what_runs_side_by_side_has_ended_when_the_block_has() -> None:
    async def main() -> None:
        ended = []

        async def work(number: int) -> int:
            try:
                await asyncio.sleep(0 if number == 1 else 1000)
            finally:
                ended.append(number)
            return number

        async with side_by_side([work(1), work(2)]) as running:
            assert await running[0] == 1
            assert ended == [1]
        assert ended == [1, 2]
        assert running[1].cancelled()

    asyncio.run(main())


def test_without_a_connection_the_end_of_a_session_cannot_be_known(daemon: DaemonProcess) -> None:
    async def main() -> None:
        relay = daemon.connect("Watcher")
        await relay.connect()
        async with Sessions(relay) as ends:
            waiting = asyncio.create_task(ends.reason("ses_of_nobody"))
            await relay.agents()
            assert not waiting.done()
            await relay.close()
            with pytest.raises(ConnectionLost):
                await asyncio.wait_for(waiting, 10)

    asyncio.run(main())
