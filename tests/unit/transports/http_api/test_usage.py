"""What agents used: counted from the beginning, and then as it is told."""

from __future__ import annotations

import asyncio

from agent_relay.events.bus import EventBus, ReadDone
from agent_relay.events.codec import encode_event
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.prices import Prices
from agent_relay.events.record import read_records
from agent_relay.events.types import TokensUsed
from agent_relay.transports.http.usage import UsageBoard


def used(seq: int, agent: str, model: str, tokens: int) -> bytes:
    return encode_event(
        TokensUsed(
            seq=seq,
            ts=seq,
            by_agent=agent,
            session_id="ses_1",
            agent_name=agent,
            model=model,
            input_tokens=tokens,
            output_tokens=0,
        )
    )


class Past:
    """A source with one event in it."""

    last_seq = 1

    def read(self, query: EventQuery, done: ReadDone) -> None:
        records = read_records([used(1, "Bob", "old", 10)]) if query.after_seq < 1 else []
        asyncio.get_running_loop().call_soon(done, EventPage(records, 1, 1, is_end=True))


def test_the_past_and_what_follows_are_counted_once() -> None:
    async def play() -> None:
        bus = EventBus(Past())
        board = UsageBoard(bus, Prices)
        assert board.total().total_tokens == 0
        async with asyncio.timeout(120):
            while board.total().total_tokens != 10:
                await asyncio.sleep(0)
        assert board.agents()["bob"][0] == "old"
        bus.published(2, 2, used(2, "Bob", "new", 5) + b"\n" + used(3, "Ann", "new", 1) + b"\n")
        async with asyncio.timeout(120):
            while board.total().total_tokens != 16:
                await asyncio.sleep(0)
        model, sum_ = board.agents()["bob"]
        assert (model, sum_.total_tokens, sum_.estimated_cost_usd) == ("new", 15, None)

    asyncio.run(play())
