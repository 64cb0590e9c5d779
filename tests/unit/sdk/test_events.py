"""Feeds of events against a scripted daemon: beginning, and being called off."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agent_relay.events.codec import encode_event
from agent_relay.events.types import AgentState
from agent_relay.protocol.encode import encode_event_frame
from agent_relay.sdk.events import EventFeed

from .scripted import Line, connected


def say_event(line: Line, subscription: str, seq: int) -> None:
    event = encode_event(AgentState(seq=seq, ts=1, state="idle"))
    line.say_bytes(encode_event_frame(2, "f_1", "1", "agent.state", subscription, event))


def answer(line: Line, id_: str, seq: int) -> None:
    line.say("ACK", {"ack_id": id_, "stage": "subscribed", "topic": "$events", "seq": seq})


async def call_off(feed: EventFeed, line: Line) -> dict[str, Any]:
    """Begins, and gives up before there is an answer."""
    beginning = asyncio.create_task(anext(feed))
    asked = await line.hear("SUBSCRIBE")
    beginning.cancel()
    with pytest.raises(asyncio.CancelledError):
        await beginning
    return asked


def test_a_beginning_that_is_called_off_is_called_off_at_the_daemon_as_well() -> None:
    """Else the daemon goes on sending for as long as the connection lasts, and after a few of them takes no more."""

    async def main() -> None:
        async with connected() as (_, client, line):
            asked = await call_off(client.events(), line)
            answer(line, asked["id"], 7)
            assert (await line.hear("UNSUBSCRIBE"))["payload"] == {"topic": "$events", "subscription": asked["id"]}

    asyncio.run(main())


def test_a_feed_that_was_called_off_in_its_beginning_can_begin_again() -> None:
    async def main() -> None:
        async with connected() as (_, client, line):
            feed = client.events()
            await call_off(feed, line)
            await line.hear("UNSUBSCRIBE")
            going_on = asyncio.create_task(anext(feed))
            again = await line.hear("SUBSCRIBE")
            answer(line, again["id"], 7)
            say_event(line, again["id"], 8)
            assert (await going_on).seq == 8

    asyncio.run(main())
