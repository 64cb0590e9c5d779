"""A busy recipient: messages to it wait for room, not for long, and everybody can see it."""

from __future__ import annotations

import asyncio
import time

import pytest

from tests.unit.sdk.scripted import Line, connected, until


def busy(line: Line, name: str = "Bob", retry_after_ms: int = 60_000) -> None:
    said = {"to": name, "queue_depth": 800, "queue_capacity": 1000, "retry_after_ms": retry_after_ms, "accepting": True}
    line.say("BUSY", said)


def room(line: Line, name: str = "Bob") -> None:
    line.say("BUSY", {"to": name, "queue_depth": 500, "queue_capacity": 1000, "accepting": True, "cleared": True})


def test_messages_to_a_busy_recipient_wait_for_room_and_others_do_not() -> None:
    async def main() -> None:
        async with connected(slow_down=60) as (_, client, line):
            busy(line)
            await until(lambda: "Bob" in client.backpressure)
            assert "busy=['Bob']" in repr(client)
            waiting = asyncio.create_task(client.submit("bob", "later"))
            await client.submit("Carol", "now")
            await client.submit("*", "to all")
            assert [(await line.hear("SEND"))["payload"]["body"] for _ in range(2)] == ["now", "to all"]
            assert line.silent
            assert not waiting.done()
            room(line)
            assert (await line.hear("SEND"))["payload"]["body"] == "later"
            assert (await waiting).held_ms >= 0
            assert not client.backpressure

    asyncio.run(main())


@pytest.mark.parametrize(("slow_down", "retry_after_ms"), [(0.02, 60_000), (60, 20)])
def test_the_wait_is_as_long_as_the_daemon_advises_and_the_client_allows(slow_down: float, retry_after_ms: int) -> None:
    async def main() -> None:
        async with connected(slow_down=slow_down) as (_, client, line):
            busy(line, retry_after_ms=retry_after_ms)
            await until(lambda: "Bob" in client.backpressure)
            receipt = await client.submit(["Carol", "Bob"], "x")
            assert receipt.held_ms >= 15
            assert (await line.hear("SEND"))["payload"]["body"] == "x"

    asyncio.run(main())


def test_nobody_waits_where_that_was_switched_off() -> None:
    async def main() -> None:
        async with connected(slow_down=0) as (_, client, line):
            busy(line)
            await until(lambda: "Bob" in client.backpressure)
            started = time.monotonic()
            await client.submit("Bob", "x")
            assert time.monotonic() - started < 30  # not the minute that the daemon advises

    asyncio.run(main())


def test_whoever_waits_is_let_go_when_the_client_closes() -> None:
    async def main() -> None:
        async with connected(slow_down=60) as (_, client, line):
            busy(line)
            await until(lambda: "Bob" in client.backpressure)
            waiting = asyncio.create_task(client.send("Bob", "x"))
            await asyncio.sleep(0)
            await client.close(0)
            with pytest.raises(Exception, match="closed"):
                await waiting

    asyncio.run(main())
