"""Delivery of messages on their last way: from the daemon to the agent, in order, each until it is known what became of it.

Through a door a message is handed over at once, and several may be on their way; typed, it is one at a time, and only once
nothing is on its way through a door, so that the order holds. A message is acknowledged when the agent is seen to have it,
not before: if the program or this process ends first, the daemon still owes it. What was handed over and not seen to be read
is looked for before it is handed over again.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections.abc import Callable
from functools import partial

from agent_relay.protocol.holds import Hold, HoldReason
from agent_relay.protocol.short_ids import short_id
from agent_relay.sdk.messages import Message
from agent_relay.terminal.delivery.acknowledgements import Acknowledgements
from agent_relay.terminal.delivery.door_selection import TYPING, DoorSelection
from agent_relay.terminal.delivery.handed_messages import HandedMessages
from agent_relay.terminal.delivery.injection import Done, Failed
from agent_relay.terminal.delivery.message_text import (
    Room,
    Wording,
    door_message,
    render,
    render_introduction,
    render_notice,
    render_typed,
    shown_message,
)
from agent_relay.terminal.delivery.queue import DeliveryQueue, Introduction, Item, Notice, TypedText
from agent_relay.terminal.delivery.typist import Render, Typist
from agent_relay.terminal.doors.door import Door, DoorError, DoorMessage, DoorShut, NotTaken, Whereabouts
from agent_relay.terminal.files.run_file import RunFile
from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.reports.reporter import Reporter

UNREAD_S = 20.0  # an idle agent that has not read what it was handed: it never will
LOOK_S = 5.0
AT_PROMPT_S = 4.0  # so long an agent is seen at its prompt before messages are typed though a door is still being tried
SOON_S = 0.5  # between two looks at that
MAX_TRIES = 3
_AGAIN_S = 1.0
_AT_LEISURE = Hold(HoldReason.LEISURE.value)
_log = logging.getLogger("agent_relay.terminal")


class Deliverer:
    """`expect_answer` hears of questions that the agent is given. `was_seen`: whether these words stand in what the agent was
    given, on its screen or in its session file. `is_idle`: whether the agent has nothing to do."""

    def __init__(
        self, wording: Wording, profile: Profile, queue: DeliveryQueue, handed: HandedMessages,
        acknowledgements: Acknowledgements, doors: DoorSelection, typist: Typist, run: RunFile, reporter: Reporter,
        expect_answer: Callable[[Message], None], was_seen: Callable[[str], bool], is_idle: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._wording = wording
        self._placeholder = profile.submit.placeholder
        self._queue = queue
        self._handed = handed
        self._acknowledgements = acknowledgements
        self._doors = doors
        self._typist = typist
        self._run = run
        self._reporter = reporter
        self._expect_answer = expect_answer
        self._was_seen = was_seen
        self._is_idle = is_idle
        self._is_resting = False

    def put(self, message: Message) -> None:
        self._acknowledgements.begin(message)
        self._queue.put(message)

    async def run(self) -> None:
        while True:
            self._queue.note_look()
            self._note_rest()
            if self._queue and not self._doors.is_decided and self._typist.idle_s >= AT_PROMPT_S:
                self._doors.stop_waiting()
            if self._queue and self._doors.is_decided and not self._is_resting:
                item = self._queue.first  # it stays there until it is dealt with, should the terminal fail in between
                if await self._deal_with(item) and self._queue.remove(item):
                    continue
            elif self._handed:
                await self._look_after_handed()
            await self._queue.wait(self._patience_s)

    def _note_rest(self) -> None:
        """Shows why the messages of a channel wait, while they are all that waits."""
        if self._queue.rests == self._is_resting:
            return
        self._is_resting = self._queue.rests
        first = self._queue.first if self._is_resting else None
        hold = _AT_LEISURE if self._is_resting else None
        self._tell_held(hold, is_long=True, message=first if isinstance(first, Message) else None)

    @property
    def _patience_s(self) -> float | None:
        if self._queue and not self._doors.is_decided:
            return SOON_S
        return LOOK_S if self._handed or self._queue else None

    async def _deal_with(self, item: Item) -> bool:
        """False: not now."""
        door = self._door_for(item)
        if door is not None and isinstance(item, Message):
            return await self._hand_over(item, door)
        if self._handed and isinstance(item, Message):
            await self._look_after_handed()  # what went through a door before comes first
            return False
        match item:
            case Message():
                await self._type(item)
                self._handed.note_typed(item)
            case Notice(text):
                await self._say(partial(render_notice, text, prefix=self._wording.prefix), text, door)
            case TypedText(text):
                await self._say(partial(render_typed, text), text, None)
            case Introduction() if not self._doors.introduces:
                await self._say(self._render_introduction, self._run.mark, door)
        return True

    async def _say(self, render: Render, mark: str, door: Door | None) -> None:
        """A word of the relay itself, of which nobody needs a receipt."""
        if door is not None:
            text = render(Room())
            try:
                await door.deliver(DoorMessage(f"notice-{mark}", str(uuid.uuid4()), "relay", text, text))
            except DoorError as error:
                _log.info("%s did not take a notice: %s", door.name, error)
            else:
                return
        await self._typist.type_in(render, mark, tell=self._tell_held)

    def _door_for(self, item: Item) -> Door | None:
        door = self._doors.current
        if door is None or (isinstance(item, Message) and self._handed.is_refused(item)) or self._typist.is_paused:
            return None
        return door if door.can_start_turns or not self._is_idle() else None

    def _render_introduction(self, room: Room) -> str:
        return render_introduction(self._wording, self._run.mark, room)

    # --- through a door ------------------------------------------------------------------------------------------------

    async def _hand_over(self, message: Message, door: Door) -> bool:
        if self._acknowledgements.is_over(message):
            return True
        self._handed.note_given(message)
        if self._run.was_begun(message.delivery_id):
            where = await self._find(door, message)
            if where in {Whereabouts.READ, Whereabouts.HELD}:
                self._handed.begin(message, door.name, may_be_read=not self._is_idle())
                if where is Whereabouts.READ:
                    self._handed.note_read(message.id, "found again")
                return True
            if not self._handed.was_begun(message) and not self._doors.is_proven:
                self._handed.doubt(message, door.name)  # handed over by a wrapper before us, and this door may not see it
        asked = door_message(message, self._wording.prefix, self._handed.doubted_door(message))
        self._handed.note_begun(message)
        self._run.note_begun(message.delivery_id)
        self._expect_answer_to(message)
        self._handed.begin(message, door.name, may_be_read=not self._is_idle())  # before: it may be read before this returns
        try:
            seen = await self._try_door(door, asked)
        except DoorError as error:
            if self._doors.current is not door:
                return False  # it was lost meanwhile, and what was on its way stands in front again
            if not self._handed.withdraw(message):
                return True
            if isinstance(error, DoorShut):
                self._handed.lose_door(str(error), error.mend, lasts=error.lasts)
            else:
                self._handed.refuse(message)
            return False
        if self._doors.current is not door:
            return False
        _log.info("%s: handed to %s (%s)", message.id, door.name, seen)
        self._reporter.handed(message.id, door.name, seen)
        return True

    async def _try_door(self, door: Door, asked: DoorMessage) -> str:
        for attempt in range(MAX_TRIES):
            try:
                return await door.deliver(asked)
            except NotTaken as error:
                _log.info("%s: %s did not take it: %s", asked.id, door.name, error)
                if attempt == MAX_TRIES - 1:
                    raise
                await asyncio.sleep(_AGAIN_S * 2**attempt)
        raise AssertionError

    async def _find(self, door: Door | None, message: Message) -> Whereabouts:
        """Finds a message that somebody handed over, or began to type, before."""
        if self._was_seen(f"[{short_id(message.id)}]"):
            return Whereabouts.READ
        if door is None:
            return Whereabouts.NOWHERE
        try:
            return await door.look_up(door_message(message, self._wording.prefix))
        except DoorError:
            return Whereabouts.UNKNOWN

    async def _look_after_handed(self) -> None:
        """An agent with nothing to do that was handed something long ago will not read it any more."""
        door = self._doors.current
        old = self._handed.older_than(UNREAD_S)
        if not old or not self._is_idle():
            return
        for handed in old:
            where = await self._find(door, handed.message)
            if where is Whereabouts.READ:
                self._handed.note_read(handed.message.id, "found again")
            elif where is Whereabouts.HELD:
                handed.since = asyncio.get_running_loop().time()
            elif handed.message.id in self._handed:
                failed = not self._doors.is_proven  # in a version that nobody knows, it is not tried again so soon
                self._handed.lose_door("it took a message but did not give it to the agent", lasts=failed)
                return

    # --- typed ---------------------------------------------------------------------------------------------------------

    async def _type(self, message: Message) -> None:
        if self._acknowledgements.is_over(message):
            return
        mark = f"[{short_id(message.id)}]"
        self._handed.note_given(message)
        was_begun = self._run.was_begun(message.delivery_id)
        if was_begun and await self._find(None, message) is Whereabouts.READ:
            self._acknowledgements.finish(message, TYPING, "found again", is_read=True)
            return

        def give(room: Room) -> str:
            self._run.note_begun(message.delivery_id)
            self._expect_answer_to(message)  # the answer may be there before it is seen that the question was taken
            return self._text_of(message, room)

        is_own = partial(self._is_own, message) if was_begun else None
        tell = partial(self._tell_held, message=message)
        with self._handed.typing(message):
            outcome = await self._typist.type_in(give, mark, until=self._queue.deadline_of(message), is_own=is_own, tell=tell)
        _log.info("%s: %s", message.id, outcome)
        match outcome:
            case Done(evidence):
                is_read = self._handed.was_read_early or evidence == "transcript"
                self._acknowledgements.finish(message, TYPING, evidence, is_read=is_read)
            case Failed(reason):
                self._acknowledgements.give_up(message, reason)

    def _tell_held(self, hold: Hold | None, is_long: bool, message: Message | None = None) -> None:
        """Shows whoever looks at the agent why it gets nothing; where that lasts, the message's sender is told too."""
        self._reporter.held(hold)
        if hold is not None and is_long and message is not None:
            self._reporter.waits(message.id, hold)

    def _is_own(self, message: Message, draft: str) -> bool:
        """The whole text, and nothing that a person wrote behind it."""
        if self._placeholder and re.fullmatch(self._placeholder, draft.strip()):
            return True
        text = self._text_of(message, Room())
        return "".join(draft.split()) == "".join(text.split())

    def _text_of(self, message: Message, room: Room) -> str:
        return render(shown_message(message), room, self._wording.prefix, self._handed.doubted_door(message))

    def _expect_answer_to(self, message: Message) -> None:
        if message.correlation_id is not None:
            self._expect_answer(message)
