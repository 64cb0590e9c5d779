"""Controls from the daemon, and pauses: until somebody says otherwise, and for a time."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_relay.protocol.payloads import AgentEventPayload, BusyPayload, ControlPayload
from agent_relay.terminal.agent.controls import Pauses, WrapperControls
from agent_relay.terminal.delivery.queue import DeliveryQueue, Notice
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.reports.relay_link import DaemonEvent, RelayLink

LONG_MS = 60_000


def test_a_pause_lasts_until_it_is_ended() -> None:
    told: list[tuple[bool, str, bool]] = []
    pauses = Pauses(lambda *state: told.append(state))
    pauses.pause(by="Anna")
    pauses.resume()
    assert told == [(True, "Anna", False), (False, "", False)]


def test_one_for_a_time_ends_by_itself() -> None:
    async def play() -> None:
        told: list[bool] = []
        over = asyncio.Event()
        pauses = Pauses(lambda is_paused, *_: (told.append(is_paused), over.set() if not is_paused else None)[0])
        pauses.pause(20)
        assert told == [True]
        async with asyncio.timeout(120):
            await over.wait()
        assert told == [True, False]

    asyncio.run(play())


def test_saying_it_again_puts_the_end_off() -> None:
    async def play() -> None:
        told: list[bool] = []
        pauses = Pauses(lambda is_paused, *_: told.append(is_paused))
        pauses.pause(1)
        pauses.pause(LONG_MS)
        await asyncio.sleep(0.02)  # the first one's time is over
        assert told == [True, True]
        pauses.pause(0)
        assert told[-1] is False

    asyncio.run(play())


def test_the_end_of_the_time_leaves_the_other_kind_alone() -> None:
    async def play() -> None:
        told: list[bool] = []
        pauses = Pauses(lambda is_paused, *_: told.append(is_paused))
        pauses.pause()
        pauses.pause(LONG_MS)
        pauses.pause(0)
        assert told[-1] is True
        pauses.pause(LONG_MS)
        pauses.resume()
        assert told[-1] is False

    asyncio.run(play())


def test_one_for_a_time_is_somebody_at_the_keyboard_unless_there_is_the_other_kind() -> None:
    async def play() -> None:
        told: list[tuple[bool, str, bool]] = []
        pauses = Pauses(lambda *state: told.append(state))
        pauses.pause(LONG_MS)
        assert told[-1] == (True, "", True)
        pauses.pause(by="Anna")
        assert told[-1] == (True, "Anna", False)
        pauses.resume()

    asyncio.run(play())


# --- what the daemon tells -----------------------------------------------------------------------------------------------


class Ends:
    """Everything that controls steer, in one: the client, the terminal, the typist and the reporter."""

    def __init__(self) -> None:
        self.did: list[object] = []
        self.stopping = asyncio.Event()
        self.queue = DeliveryQueue()
        self.link = RelayLink(self, lambda: self)  # type: ignore[arg-type, return-value]
        end: Any = self
        self.controls = WrapperControls(
            self.link, self.stopping, self.queue, end, end, end, load_profiles()["generic"], end
        )  # fmt: skip

    def pause(self) -> None:
        self.did.append("pause")

    def resume(self) -> None:
        self.did.append("resume")

    def paused(self, is_paused: bool, by: str, *, has_keyboard: bool) -> None:
        self.did.append((is_paused, by, has_keyboard))

    async def write(self, data: bytes) -> None:
        self.did.append(data)

    async def give(self, control: ControlPayload) -> None:
        self.did.append(control.id)


def tell(*events: DaemonEvent) -> Ends:
    async def run() -> Ends:
        ends = Ends()
        for event in events:
            ends.link.events.put_nowait(event)
        ends.controls.finish()
        await asyncio.sleep(0)
        return ends

    return asyncio.run(run())


def test_a_pause_reaches_the_typist_and_is_reported() -> None:
    ends = tell(ControlPayload("pause", by="Anna"), ControlPayload("resume"))
    assert ends.did == ["pause", (True, "Anna", False), "resume", (False, "", False)]


def test_input_and_answers_are_passed_on_and_input_touches_the_program() -> None:
    answered = tell(ControlPayload("approve", id="r1"), ControlPayload("answer", id="r2"))
    assert (answered.did, answered.controls.was_touched) == (["r1", "r2"], False)
    typed = tell(ControlPayload("input", text="yes\n"))
    assert (typed.did, typed.controls.was_touched) == ([b"yes\r"], True)


def test_what_was_asked_last_is_heard_and_what_is_unknown_is_passed_over() -> None:
    assert tell(ControlPayload("dance"), ControlPayload("stop")).stopping.is_set()


def test_the_agent_is_told_of_loops_and_of_queues_that_are_full_and_of_nothing_else() -> None:
    ends = tell(
        AgentEventPayload("loop.detected", {"text": "a loop"}), AgentEventPayload("message.waits", {"text": "it waits"}),
        AgentEventPayload("agent.state", {"text": "no"}), AgentEventPayload("loop.detected", {}),
        BusyPayload("Carol", queue_depth=4, queue_capacity=5), BusyPayload("Carol", queue_depth=1, cleared=True),
    )  # fmt: skip
    told = []
    while ends.queue:
        item = ends.queue.first
        assert isinstance(item, Notice)
        told.append(item.text)
        ends.queue.remove(item)
    assert told[:2] == ["a loop", "it waits"]
    assert told[2].startswith("Carol is busy: 4 of at most 5")
    assert told[3:] == ["Carol has room for messages again (1 waiting)."]
