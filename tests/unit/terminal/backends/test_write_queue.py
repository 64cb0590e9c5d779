from __future__ import annotations

import asyncio
import contextlib
import os

from agent_relay.terminal.backends.write_queue import WriteQueue
from tests.unit.terminal.backends.recorder import eventually


def test_a_reader_that_does_not_read_blocks_nobody_and_loses_nothing() -> None:
    async def scene() -> None:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        rooms = []
        queue = WriteQueue(writing, lambda: rooms.append(1))
        data = bytes(range(256)) * 4096
        queue.put(data)
        queue.put(b"END")
        assert queue.unsent_bytes > 500_000
        flushing = asyncio.create_task(queue.flush())
        await asyncio.sleep(0)
        assert not flushing.done()
        taken = b""
        os.set_blocking(reading, False)
        while len(taken) < len(data) + 3:
            with contextlib.suppress(BlockingIOError):
                taken += os.read(reading, 65_536)
            await asyncio.sleep(0)
        await flushing
        assert taken == data + b"END"
        assert queue.unsent_bytes == 0
        await eventually(lambda: rooms == [1])
        queue.close()
        os.close(reading)
        os.close(writing)

    asyncio.run(scene())


def test_a_reader_that_is_gone_ends_the_waiting() -> None:
    async def scene() -> None:
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        queue = WriteQueue(writing)
        queue.put(b"x" * 1_000_000)
        flushing = asyncio.create_task(queue.flush())
        await asyncio.sleep(0)
        os.close(reading)
        await asyncio.wait_for(flushing, 10)
        assert queue.is_broken
        queue.put(b"more")
        assert queue.unsent_bytes == 0
        os.close(writing)

    asyncio.run(scene())


def test_a_descriptor_that_blocks_is_written_to_when_it_is_ready() -> None:
    async def scene() -> None:
        reading, writing = os.pipe()
        queue = WriteQueue(writing)
        queue.put(b"x" * 200_000)
        taken = 0
        while taken < 200_000:
            await asyncio.sleep(0)
            if queue.unsent_bytes < 200_000 - taken:
                taken += len(os.read(reading, 4096))
        await queue.flush()
        queue.close()
        os.close(reading)
        os.close(writing)

    asyncio.run(scene())
