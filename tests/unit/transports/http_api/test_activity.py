"""What agents do: the newest of their work, and since when they are in their state."""

from __future__ import annotations

import asyncio

from agent_relay.events.bus import EventBus, ReadDone
from agent_relay.events.codec import encode_event
from agent_relay.events.pages import EventPage, EventQuery
from agent_relay.events.record import read_records
from agent_relay.events.types import AgentState, CommandExecuted, Event, FileOperation, ItemStarted
from agent_relay.transports.http.activity import ActivityBoard, Doing

BOB = {"by_agent": "Bob", "by_session": "ses_1"}
PAST: list[Event] = [
    AgentState(seq=1, ts=1, **BOB, state="idle"),
    AgentState(seq=2, ts=2, **BOB, state="working"),
    ItemStarted(seq=3, ts=3, **BOB, session_id="ses_1", item_id="i", item_type="thinking", started_at=3),
]


class Past:
    last_seq = len(PAST)

    def read(self, query: EventQuery, done: ReadDone) -> None:
        records = read_records([encode_event(event) for event in PAST if event.seq > query.after_seq])
        asyncio.get_running_loop().call_soon(done, EventPage(records, self.last_seq, self.last_seq, is_end=True))


def test_the_newest_of_its_work_is_known_and_since_when_it_is_so() -> None:
    async def play() -> None:
        bus = EventBus(Past())
        board = ActivityBoard(bus)

        def tell(event: Event) -> None:
            bus.published(event.seq, event.seq, encode_event(event) + b"\n")

        async def until(doing: Doing) -> None:
            async with asyncio.timeout(120):
                while (found := board.of("Bob", "ses_1")) is None or found.doing != doing:
                    await asyncio.sleep(0)

        await until(Doing("item", "thinking", "", 3))
        tell(FileOperation(seq=4, ts=4, **BOB, session_id="ses_1", operation="edit", file_path="src/auth.py"))
        await until(Doing("file", "edit", "src/auth.py", 4))
        tell(CommandExecuted(seq=5, ts=5, **BOB, session_id="ses_1", command="make test\nmake lint", exit_code=0, duration=1))
        await until(Doing("command", "run", "make test", 5))
        tell(AgentState(seq=6, ts=6, **BOB, state="working"))  # said again
        tell(AgentState(seq=7, ts=7, by_agent="Ada", by_session="ses_2", state="idle"))
        async with asyncio.timeout(120):
            while board.of("Ada", "ses_2") is None:
                await asyncio.sleep(0)
        found = board.of("bob", "ses_1")
        assert found is not None
        assert (found.state, found.state_at) == ("working", 2)
        assert board.of("Bob", "ses_9") is None  # of another session nothing is known

    asyncio.run(play())
