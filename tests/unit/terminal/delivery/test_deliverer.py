"""Messages on their last way: through a door, typed, and from one to the other, without losing or doubling any."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent_relay.protocol.envelope import Deliver
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.payloads import Delivery
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.messages import Message
from agent_relay.terminal.delivery import deliverer as delivering
from agent_relay.terminal.delivery.acknowledgements import Acknowledgements
from agent_relay.terminal.delivery.deliverer import Deliverer
from agent_relay.terminal.delivery.door_selection import DoorSelection
from agent_relay.terminal.delivery.handed_messages import HandedMessages
from agent_relay.terminal.delivery.inbox_file import InboxFile
from agent_relay.terminal.delivery.injection import Done, Failed
from agent_relay.terminal.delivery.message_text import Room, Wording
from agent_relay.terminal.delivery.queue import DEFAULT_TTL_MS, DeliveryQueue
from agent_relay.terminal.doors.door import Decision, DoorMessage, DoorShut, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.findings import DoorFindings
from agent_relay.terminal.doors.versions import Versions
from agent_relay.terminal.files.run_file import begin_run, take_up_run
from agent_relay.terminal.profiles.profile import profile_for
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import Reporter

DEADLINE_S = 60.0  # a loaded machine takes many times what an idle one does


class Daemon:
    """The daemon's end: what was acknowledged, refused and reported, in order."""

    state = ClientState.READY

    def __init__(self) -> None:
        self.said: list[tuple[str, ...]] = []
        self.told: dict[str, Any] = {}  # of the agent's state

    def ack(self, message: Message, *answer: Any) -> None:
        self.said.append(("ack", message.body, answer[2]))

    def nack(self, message: Message, code: ErrorCode, text: str | None, retry_after_ms: int | None) -> None:
        self.said.append(("nack", message.body, str(text)))

    def report(self, kind: str, /, **fields: Any) -> None:
        if kind.startswith("message."):
            self.said.append((kind, str(fields["messageId"])))
        if kind == "agent.state":
            self.told = fields

    def of(self, word: str) -> list[str]:
        return [entry[1] for entry in self.said if entry[0] == word]


class Hands:
    """The typist's end: what was typed."""

    def __init__(self) -> None:
        self.typed: list[str] = []
        self.is_paused = False
        self.idle_s = 0.0
        self.outcome: Done | Failed = Done("composer")

    async def type_in(self, render: Callable[[Any], str], mark: str, **how: Any) -> Done | Failed:
        if isinstance(self.outcome, Done):
            self.typed.append(render(Room()))
        return self.outcome

    def note_taken(self, text: str) -> None:
        pass


class ScriptedDoor:
    """The CLI's end. `given` is what it was handed, in order; the test says what was read."""

    name = "scripted"

    def __init__(self, *, can_start_turns: bool = True) -> None:
        self.can_start_turns = can_start_turns
        self.given: list[DoorMessage] = []
        self.whereabouts: dict[str, Whereabouts] = {}
        self.looked_up: list[str] = []
        self.failures: list[Exception] = []
        self.during: Callable[[], None] | None = None
        self.is_closed = False

    async def open(self) -> Probe:
        return Probe("1.0")

    async def deliver(self, message: DoorMessage) -> str:
        if self.during is not None:
            self.during()
        if self.failures:
            raise self.failures.pop(0)
        self.given.append(message)
        return "written"

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        self.looked_up.append(message.body)
        return self.whereabouts.get(message.id, Whereabouts.NOWHERE)

    async def answer(self, request_id: str, decision: Decision) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        self.is_closed = True

    @property
    def bodies(self) -> list[str]:
        return [message.body for message in self.given]


class Stage:
    """A wrapper's deliverer, the first one of the program or one after it, and all ends of it."""

    def __init__(
        self, folder: Path, doors: Sequence[ScriptedDoor] = (), versions: Versions | None = None,
        queue: DeliveryQueue | None = None, findings: DoorFindings | None = None,
    ) -> None:  # fmt: skip
        self.daemon = Daemon()
        self.hands = Hands()
        self.is_idle = False
        self.seen: set[str] = set()
        self.run = take_up_run(str(folder)) or begin_run(str(folder))
        self.count = 0
        self.queue = DeliveryQueue() if queue is None else queue
        self.reporter = Reporter(RelayLink(self.daemon, lambda: self.daemon))  # type: ignore[arg-type, return-value]
        self.doors = DoorSelection(self.reporter, (), versions, [door.name for door in doors], findings)
        self.doors.call_when_changed(self.queue.wake)
        acknowledgements = self.acknowledgements = Acknowledgements(self.queue, InboxFile(str(folder)), self.run, self.reporter)
        self.handed = HandedMessages(self.queue, acknowledgements, self.doors, self.reporter)
        self.deliverer = Deliverer(
            Wording("Bob", "->relay:"), profile_for("claude"), self.queue, self.handed, acknowledgements, self.doors,
            self.hands, self.run, self.reporter, lambda message: None, lambda words: words in self.seen,  # type: ignore[arg-type]
            lambda: self.is_idle,
        )  # fmt: skip
        self._own = deque(doors)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        jobs = [asyncio.create_task(self.deliverer.run()), asyncio.create_task(self.doors.run(self._own))]  # type: ignore[arg-type]
        try:
            yield
        finally:
            for job in jobs:
                job.cancel()
            await asyncio.gather(*jobs, return_exceptions=True)

    def message(self, body: str, number: int | None = None) -> Message:
        self.count += 1
        number = self.count if number is None else number
        frame = Deliver(
            v=2, id=f"d_{number:04}", ts=1, from_="Alice", to="Bob", payload=msgspec.Raw(msgspec.json.encode({"body": body})),
            delivery=Delivery(seq=number, session_id="ses_1", message_id=f"msg_{number:026}"),
        )  # fmt: skip
        return Message(frame, self.daemon, self.count)  # type: ignore[arg-type]

    def put(self, *bodies: str) -> list[Message]:
        messages = [self.message(body) for body in bodies]
        for message in messages:
            self.deliverer.put(message)
        return messages

    async def until(self, condition: Callable[[], Any]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await asyncio.sleep(0.005)


def play(
    folder: Path, scene: Callable[[Stage], Awaitable[None]], *doors: ScriptedDoor, versions: Versions | None = None,
    findings: DoorFindings | None = None,
) -> Stage:  # fmt: skip
    async def all_of_it() -> Stage:
        stage = Stage(folder, doors, versions, findings=findings)
        async with stage.running():
            await scene(stage)
        return stage

    return asyncio.run(all_of_it())


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "LOOK_S", 0.02)
    monkeypatch.setattr(delivering, "UNREAD_S", 0.05)
    monkeypatch.setattr(delivering, "_AGAIN_S", 0.001)


def test_a_burst_goes_through_the_door_in_order_and_is_acknowledged_when_read(tmp_path: Path) -> None:
    door = ScriptedDoor()
    bodies = [f"message {number}" for number in range(20)]

    async def scene(stage: Stage) -> None:
        messages = stage.put(*bodies)
        await stage.until(lambda: len(door.given) == 20)
        assert stage.daemon.of("ack") == []  # handed over is not read
        for message in messages:
            stage.handed.note_read(message.id, "transcript")
        await stage.until(lambda: len(stage.daemon.of("message.read")) == 20)

    stage = play(tmp_path, scene, door)
    assert door.bodies == stage.daemon.of("ack") == bodies
    assert stage.hands.typed == []
    first = [entry[0] for entry in stage.daemon.said if entry[1] in {"message 0", f"msg_{1:026}"}]
    assert first == ["message.received", "message.handed", "ack", "message.read"]


def test_what_was_not_read_when_the_door_is_lost_is_typed_in_order_and_once(tmp_path: Path) -> None:
    door = ScriptedDoor()

    async def scene(stage: Stage) -> None:
        one, *_ = stage.put("one", "two", "three")
        await stage.until(lambda: len(door.given) == 3)
        stage.handed.note_read(one.id, "transcript")
        stage.handed.lose_door("the socket is gone")
        stage.put("four")
        await stage.until(lambda: len(stage.daemon.of("ack")) == 4)

    stage = play(tmp_path, scene, door)
    assert [text.rsplit(": ", 1)[1] for text in stage.hands.typed] == ["two", "three", "four"]
    assert stage.daemon.of("ack") == ["one", "two", "three", "four"]
    assert door.is_closed


def test_the_next_door_gets_what_the_first_one_lost_unless_the_agent_has_it(tmp_path: Path) -> None:
    first, second = ScriptedDoor(), ScriptedDoor()

    async def scene(stage: Stage) -> None:
        one, two = stage.put("one", "two")
        await stage.until(lambda: len(first.given) == 2)
        second.whereabouts[one.id] = Whereabouts.READ
        stage.handed.lose_door("it crashed")
        await stage.until(lambda: second.given)
        stage.handed.note_read(two.id, "transcript")
        await stage.until(lambda: len(stage.daemon.of("ack")) == 2)

    stage = play(tmp_path, scene, first, second)
    assert second.bodies == ["two"]
    assert stage.daemon.of("ack") == ["one", "two"]


def test_a_door_that_is_lost_while_it_is_given_a_message_loses_none(tmp_path: Path) -> None:
    door = ScriptedDoor()
    door.failures = [DoorShut("gone")]

    async def scene(stage: Stage) -> None:
        door.during = lambda: stage.handed.lose_door("gone")
        stage.put("one", "two")
        await stage.until(lambda: len(stage.daemon.of("ack")) == 2)

    stage = play(tmp_path, scene, door)
    assert stage.daemon.of("ack") == ["one", "two"]
    assert len(stage.hands.typed) == 2


def test_why_a_door_was_dropped_and_what_to_do_is_reported(tmp_path: Path) -> None:
    door = ScriptedDoor()
    door.failures = [DoorShut("It does not take `--thread`.", "Update it.")]

    async def scene(stage: Stage) -> None:
        stage.put("one")
        await stage.until(lambda: stage.daemon.of("ack") == ["one"])

    stage = play(tmp_path, scene, door)
    assert stage.daemon.told["unusedDoors"] == [
        {"door": "scripted", "reason": "It does not take `--thread`.", "mend": "Update it."}
    ]
    assert stage.daemon.told["doorNote"] == "scripted: It does not take `--thread`. Update it."


def test_a_message_the_door_does_not_take_is_tried_again_and_then_typed_before_the_next(tmp_path: Path) -> None:
    door = ScriptedDoor()
    door.failures = [NotTaken("busy")] * delivering.MAX_TRIES

    async def scene(stage: Stage) -> None:
        _, two = stage.put("one", "two")
        await stage.until(lambda: door.given)
        stage.handed.note_read(two.id, "transcript")
        await stage.until(lambda: len(stage.daemon.of("ack")) == 2)

    stage = play(tmp_path, scene, door)
    assert len(stage.hands.typed) == 1
    assert door.bodies == ["two"]
    assert stage.daemon.of("ack") == ["one", "two"]


def test_an_idle_agent_that_never_reads_it_loses_the_door(tmp_path: Path) -> None:
    door = ScriptedDoor()

    async def scene(stage: Stage) -> None:
        stage.is_idle = True
        stage.put("one")
        await stage.until(lambda: stage.daemon.of("ack"))

    stage = play(tmp_path, scene, door)
    assert door.bodies == ["one"]
    assert len(stage.hands.typed) == 1


def test_what_the_program_still_holds_is_not_handed_over_again(tmp_path: Path) -> None:
    door = ScriptedDoor()

    async def scene(stage: Stage) -> None:
        (one,) = stage.put("one")
        door.whereabouts[one.id] = Whereabouts.HELD
        stage.is_idle = True
        await stage.until(lambda: len(door.looked_up) >= 2)  # an idle agent was given its time twice over
        assert stage.daemon.of("ack") == []
        stage.handed.note_read(one.id, "transcript")
        await stage.until(lambda: stage.daemon.of("ack"))

    stage = play(tmp_path, scene, door)
    assert door.bodies == ["one"]
    assert stage.hands.typed == []


def test_a_door_that_cannot_start_turns_is_used_while_the_agent_works(tmp_path: Path) -> None:
    door = ScriptedDoor(can_start_turns=False)

    async def scene(stage: Stage) -> None:
        (one,) = stage.put("one")
        await stage.until(lambda: door.given)
        stage.handed.note_refused(one.id, "the turn is over")
        await stage.until(lambda: stage.daemon.of("ack") == ["one"])
        stage.is_idle = True
        stage.put("two")
        await stage.until(lambda: len(stage.daemon.of("ack")) == 2)

    stage = play(tmp_path, scene, door)
    assert door.bodies == ["one"]
    assert len(stage.hands.typed) == 2


def test_a_message_somebody_does_not_want_is_refused_and_goes_no_other_way(tmp_path: Path) -> None:
    door = ScriptedDoor()

    async def scene(stage: Stage) -> None:
        (one,) = stage.put("one")
        await stage.until(lambda: door.given)
        stage.handed.note_rejected(one.id, "Denied at the terminal.")
        await stage.until(lambda: stage.daemon.of("nack"))

    stage = play(tmp_path, scene, door)
    assert stage.hands.typed == []
    assert stage.daemon.of("ack") == []


@pytest.mark.parametrize(
    ("where", "doubled"), [(Whereabouts.READ, False), (Whereabouts.HELD, False), (Whereabouts.NOWHERE, True)]
)
def test_a_later_wrapper_looks_for_what_was_handed_over_before_it_came(
    tmp_path: Path, where: Whereabouts, doubled: bool
) -> None:  # fmt: skip
    before, after = ScriptedDoor(), ScriptedDoor()

    async def scene(stage: Stage) -> None:
        stage.put("one")
        await stage.until(lambda: before.given)

    play(tmp_path, scene, before)  # and the wrapper is killed

    async def again() -> Stage:
        stage = Stage(tmp_path, [after])
        (one,) = stage.put("one")
        after.whereabouts[one.id] = where
        async with stage.running():
            await stage.until(lambda: after.given if doubled else stage.doors.current is not None)
            stage.handed.note_read(one.id, "transcript")
            await stage.until(lambda: stage.daemon.of("ack"))
        return stage

    stage = asyncio.run(again())
    assert after.bodies == (["one"] if doubled else [])
    assert stage.daemon.of("ack") == ["one"]


def test_what_expired_meanwhile_is_not_handed_over(tmp_path: Path) -> None:
    door = ScriptedDoor()

    async def scene(stage: Stage) -> None:
        message = stage.message("late")
        message.queued_ms = DEFAULT_TTL_MS
        stage.deliverer.put(message)
        await stage.until(lambda: stage.daemon.of("nack"))

    stage = play(tmp_path, scene, door)
    assert door.given == []
    assert stage.hands.typed == []


# --- a door of a version that was not tested -----------------------------------------------------------------------------

UNTESTED = Versions("Test CLI", "2.0")  # the door says 1.0


def is_pointer(text: str) -> bool:
    """It says where the message can be read, and does not say it again."""
    return "agent-relay read" in text and "you may not have seen it" in text


def test_a_door_on_trial_is_kept_once_a_message_was_read_and_believed_from_then_on(tmp_path: Path) -> None:
    door = ScriptedDoor()

    async def scene(stage: Stage) -> None:
        (one,) = stage.put("one")
        await stage.until(lambda: door.given)
        assert not stage.doors.is_proven
        stage.handed.note_read(one.id, "transcript")
        assert stage.doors.is_proven
        stage.put("two")
        await stage.until(lambda: len(door.given) == 2)
        stage.handed.note_working()
        stage.is_idle = True
        await stage.until(lambda: len(stage.daemon.of("ack")) == 2)

    stage = play(tmp_path, scene, door, versions=UNTESTED)
    (typed,) = stage.hands.typed  # what a proven door does not show was not read
    assert typed.endswith(": two")


@pytest.mark.parametrize("where", [Whereabouts.NOWHERE, Whereabouts.UNKNOWN])
@pytest.mark.parametrize("is_idle", [True, False])
def test_what_a_door_on_trial_may_have_given_to_the_agent_is_not_typed_again(
    tmp_path: Path, where: Whereabouts, is_idle: bool
) -> None:
    """An agent that worked after it was handed over, or when it was."""
    door = ScriptedDoor()

    async def scene(stage: Stage) -> None:
        stage.is_idle = is_idle
        (one,) = stage.put("one")
        door.whereabouts[one.id] = where
        await stage.until(lambda: door.given)
        if is_idle:
            stage.handed.note_working()
        stage.is_idle = True
        await stage.until(lambda: stage.daemon.of("ack") == ["one"])
        stage.put("two")
        await stage.until(lambda: len(stage.daemon.of("ack")) == 2)

    stage = play(tmp_path, scene, door, versions=UNTESTED)
    pointer, full = stage.hands.typed
    assert is_pointer(pointer)
    assert "one" not in pointer.partition("]: ")[2]
    assert full.endswith(": two")  # the door was dropped
    assert door.is_closed


def start_of(folder: Path) -> DoorFindings:
    """What another start of the same program finds."""
    program = folder / "program"
    if not program.exists():
        program.write_text("#!/bin/sh\n")
        program.chmod(0o700)
    return DoorFindings(str(program), {"PATH": "/bin"}, str(folder))


def test_a_door_that_has_proven_itself_is_not_on_trial_at_the_next_start(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        (one,) = stage.put("one")
        await stage.until(lambda: stage.doors.current is not None)
        stage.handed.note_read(one.id, "transcript")
        await stage.until(lambda: stage.doors.is_proven)

    async def next_scene(stage: Stage) -> None:
        await stage.until(lambda: stage.doors.current is not None)
        assert stage.doors.is_proven

    play(tmp_path, scene, ScriptedDoor(), versions=UNTESTED, findings=start_of(tmp_path))
    play(tmp_path, next_scene, ScriptedDoor(), versions=UNTESTED, findings=start_of(tmp_path))


def test_a_door_that_failed_on_trial_is_not_tried_at_the_next_start_of_the_same_program(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        stage.is_idle = True
        stage.deliverer.put(stage.message("one", next(numbers)))
        await stage.until(lambda: stage.daemon.of("ack"))

    numbers = count(1)
    play(tmp_path, scene, ScriptedDoor(), versions=UNTESTED, findings=start_of(tmp_path))
    door = ScriptedDoor()
    stage = play(tmp_path, scene, door, versions=UNTESTED, findings=start_of(tmp_path))
    assert door.given == []
    assert stage.hands.typed
    assert "Found at an earlier start." in stage.daemon.told["unusedDoors"][0]["reason"]
    (tmp_path / "program").write_text("#!/bin/sh\necho an update\n")
    play(tmp_path, scene, updated := ScriptedDoor(), versions=UNTESTED, findings=start_of(tmp_path))
    assert updated.bodies == ["one"]


def test_what_an_idle_agent_never_began_to_work_on_was_not_read_and_is_typed_whole(tmp_path: Path) -> None:
    door = ScriptedDoor()

    async def scene(stage: Stage) -> None:
        stage.is_idle = True
        stage.put("one")
        await stage.until(lambda: stage.daemon.of("ack"))

    stage = play(tmp_path, scene, door, versions=UNTESTED)
    (typed,) = stage.hands.typed
    assert typed.endswith(": one")


def test_the_next_door_is_given_the_pointer_too(tmp_path: Path) -> None:
    first, second = ScriptedDoor(), ScriptedDoor()
    second.name = "second"

    async def scene(stage: Stage) -> None:
        (one,) = stage.put("one")
        await stage.until(lambda: first.given)
        stage.handed.lose_door("it crashed")
        await stage.until(lambda: second.given)
        stage.handed.note_read(one.id, "transcript")
        await stage.until(lambda: stage.daemon.of("ack"))

    play(tmp_path, scene, first, second, versions=UNTESTED)
    assert is_pointer(second.given[0].text)
    assert second.given[0].uuid == first.given[0].uuid


@pytest.mark.parametrize("was_given", [True, False])
def test_what_is_refused_before_the_program_had_it_is_typed_whole(tmp_path: Path, was_given: bool) -> None:
    door = ScriptedDoor(can_start_turns=False)

    async def scene(stage: Stage) -> None:
        (one,) = stage.put("one")
        await stage.until(lambda: door.given)
        stage.handed.note_refused(one.id, "the turn is over", was_given=was_given)
        await stage.until(lambda: stage.daemon.of("ack"))

    stage = play(tmp_path, scene, door, versions=UNTESTED)
    assert [is_pointer(text) for text in stage.hands.typed] == [was_given]


def test_a_door_that_does_not_open_is_not_waited_for_at_a_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivering, "SOON_S", 0.01)
    door, opens = ScriptedDoor(), asyncio.Event()

    async def open_late() -> Probe:
        await opens.wait()
        return Probe("2.0")

    door.open = open_late  # type: ignore[method-assign]

    async def scene(stage: Stage) -> None:
        stage.put("one")
        stage.hands.idle_s = delivering.AT_PROMPT_S - 0.1
        stage.queue.wake()
        await asyncio.sleep(0)
        assert stage.hands.typed == []
        stage.hands.idle_s = delivering.AT_PROMPT_S
        await stage.until(lambda: stage.daemon.of("ack") == ["one"])
        opens.set()
        await stage.until(lambda: stage.doors.current is door)
        (two,) = stage.put("two")
        await stage.until(lambda: door.bodies == ["two"])  # used as soon as it is there
        stage.handed.note_read(two.id, "transcript")
        await stage.until(lambda: len(stage.daemon.of("ack")) == 2)

    stage = play(tmp_path, scene, door, versions=UNTESTED)
    assert len(stage.hands.typed) == 1


def test_what_a_program_left_over_that_ended_at_once_is_delivered_to_the_next_in_order_and_once(tmp_path: Path) -> None:
    door = ScriptedDoor()

    async def run() -> tuple[Stage, Stage]:
        first = Stage(tmp_path, [door])
        async with first.running():
            first.put("one", "two")
            await first.until(lambda: len(door.given) == 2)
        first.queue.notify("a word of the relay")
        first.put("three")
        first.handed.hand_back()
        second = Stage(tmp_path, queue=first.queue)  # types everything
        async with second.running():
            await second.until(lambda: len(first.daemon.of("ack")) == 3)
        return first, second

    first, second = asyncio.run(run())
    assert first.daemon.of("ack") == ["one", "two", "three"]
    assert [text.rsplit(": ", 1)[1] for text in second.hands.typed] == ["a word of the relay", "one", "two", "three"]
    received = first.daemon.of("message.received") + second.daemon.of("message.received")
    assert received.count(f"msg_{1:026}") == 1


# --- the introduction --------------------------------------------------------------------------------------------------


class Introducing(ScriptedDoor):
    async def open(self) -> Probe:
        return Probe("1.0", introduces=True)


class Shut(Introducing):
    async def open(self) -> Probe:
        raise DoorShut("It runs no hooks.")


@pytest.mark.parametrize(("door", "is_typed"), [(Introducing, False), (Shut, True), (ScriptedDoor, True)])
def test_it_is_typed_unless_the_door_does_it(tmp_path: Path, door: type[ScriptedDoor], is_typed: bool) -> None:
    async def scene(stage: Stage) -> None:
        stage.is_idle = True
        stage.queue.introduce()
        stage.put("hello")
        await stage.until(lambda: stage.daemon.of("ack") == ["hello"])

    stage = play(tmp_path, scene, door(can_start_turns=False))
    assert any("you are Bob" in text for text in stage.hands.typed) is is_typed


def test_what_is_read_at_leisure_waits_for_something_that_wakes_the_agent_and_comes_before_it(tmp_path: Path) -> None:
    async def scene(stage: Stage) -> None:
        for body in ("news", "more news"):
            message = stage.message(body)
            message.at_leisure = True
            stage.deliverer.put(message)
        await stage.until(lambda: stage.daemon.told.get("hold"))
        assert stage.daemon.told["hold"] == "leisure"
        assert stage.hands.typed == []
        stage.put("wake up")
        await stage.until(lambda: len(stage.daemon.of("ack")) == 3)
        assert stage.daemon.told.get("hold") is None

    stage = play(tmp_path, scene)
    assert stage.daemon.of("ack") == ["news", "more news", "wake up"]
    assert stage.daemon.of("message.waits") == [f"msg_{1:026}"]
