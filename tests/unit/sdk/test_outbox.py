"""Room for what is unanswered: in order, by count and by bytes."""

from __future__ import annotations

import asyncio

import pytest

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.sdk.outbox import Window


def test_room_is_given_in_the_order_of_asking() -> None:
    async def main() -> None:
        window = Window(2, 100)
        order: list[int] = []

        async def enter(number: int, size: int) -> None:
            await window.enter(size)
            order.append(number)

        tasks = [asyncio.create_task(enter(number, size)) for number, size in enumerate([60, 60, 10, 10])]
        await asyncio.sleep(0)
        assert order == [0]  # the second is too large now, and nobody overtakes it
        window.leave(60)
        await asyncio.sleep(0)
        assert order == [0, 1, 2]
        window.leave(60)
        await asyncio.gather(*tasks)
        assert order == [0, 1, 2, 3]

    asyncio.run(main())


def test_something_larger_than_all_room_passes_alone() -> None:
    async def main() -> None:
        window = Window(10, 100)
        await window.enter(500)
        waiting = asyncio.create_task(window.enter(1))
        await asyncio.sleep(0)
        assert not waiting.done()
        window.leave(500)
        await waiting

    asyncio.run(main())


@pytest.mark.parametrize("granted_before", [True, False])
def test_whoever_gives_up_takes_no_room(granted_before: bool) -> None:
    async def main() -> None:
        window = Window(1, 100)
        await window.enter(1)
        leaving, staying = (asyncio.create_task(window.enter(1)) for _ in range(2))
        await asyncio.sleep(0)
        if granted_before:
            window.leave(1)
        leaving.cancel()
        if not granted_before:
            await asyncio.sleep(0)
            window.leave(1)
        await asyncio.wait_for(staying, 30)
        assert leaving.cancelled() or leaving.cancelling()

    asyncio.run(main())


def test_refusing_tells_everybody_who_waits() -> None:
    async def main() -> None:
        window = Window(1, 100)
        await window.enter(1)
        waiting = asyncio.create_task(window.enter(1))
        await asyncio.sleep(0)
        window.refuse(RelayError(ErrorCode.SERVICE_UNAVAILABLE))
        with pytest.raises(RelayError):
            await waiting

    asyncio.run(main())
