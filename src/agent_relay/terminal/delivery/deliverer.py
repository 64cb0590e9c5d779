"""Messages on their last way: from the daemon to the agent, in order, each until it is known what became of it.

Through a door a message is handed over at once, and several may be on their way; typed, it is one at a time, and only once
nothing is on its way through a door, so that the order holds. A message is acknowledged when the agent is seen to have it,
not before: if the program or this process ends first, the daemon still owes it. What was handed over and not seen to be read
is looked for before it is handed over again.

A door on trial may have given the agent a message though nothing shows it. Handing the message in again could double it, and
leaving it could lose it. So the agent is told where it can read it.
"""

from __future__ import annotations

import asyncio
import logging
import re
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from agent_relay.protocol.holds import Hold
from agent_relay.protocol.short_ids import short_id
from agent_relay.sdk.messages import Message
from agent_relay.terminal.delivery.doorway import TYPING, Doorway
from agent_relay.terminal.delivery.endings import Settler
from agent_relay.terminal.delivery.inbox_file import InboxFile
from agent_relay.terminal.delivery.injection import Done, Failed
from agent_relay.terminal.delivery.message_text import Room, render, render_introduction, render_notice, render_typed
from agent_relay.terminal.delivery.shown_message import door_message, shown
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
_MARK = re.compile(r"\[([0-9a-f]{8})\]")
_REMEMBERED = 500
_log = logging.getLogger("agent_relay.terminal")


class _Notice(Struct, frozen=True):
    text: str


class _Introduction(Struct, frozen=True):
    pass


class _Typed(Struct, frozen=True):
    """What the person gave us to type."""

    text: str


_Item: TypeAlias = Message | _Notice | _Introduction | _Typed


class Manners(Struct, frozen=True):
    """How this agent is spoken to."""

    name: str
    profile: Profile
    prefix: str
    signed_prefix: str = ""  # the one that only this run of the agent is taught


class _Handed(Struct):
    """On its way through a door. `may_be_read`: the agent has worked since, or already did."""

    message: Message
    door: str
    since: float
    may_be_read: bool


class Deliverer:
    """`is_idle`: whether the agent has nothing to do. `was_seen`: whether these words stand in what the agent was given, on
    its screen or in its session file."""

    def __init__(
        self, manners: Manners, typist: Typist, inbox: InboxFile, run: RunFile, reporter: Reporter,
        expect_answer: Callable[[Message], None], was_seen: Callable[[str], bool], is_idle: Callable[[], bool],
    ) -> None:  # fmt: skip
        self.manners = manners
        self._typist = typist
        self._run = run
        self._settler = Settler(inbox, run, reporter)
        self._reporter = reporter
        self._expect_answer = expect_answer
        self._was_seen = was_seen
        self._is_idle = is_idle
        self.doorway = Doorway([], reporter, self.wake)  # another one, once the program runs
        self._items: deque[_Item] = deque()
        self._handed: OrderedDict[str, _Handed] = OrderedDict()  # by message id, in order
        self._refused: set[str] = set()  # message ids that must be typed
        self._begun_here: set[str] = set()  # message ids that this very wrapper has begun to hand over
        self._doubted: dict[str, str] = {}  # message ids that a door on trial may have given to the agent, and which door
        self._woken = asyncio.Event()
        self._given: OrderedDict[str, str] = OrderedDict()  # message ids by mark
        self._typed_now = self._read_early = ""
        self.direct_marks: list[str] = []  # of messages to this agent alone

    # --- what there is to hand in --------------------------------------------------------------------------------------

    def introduce(self) -> None:
        self._put(_Introduction())

    def notify(self, text: str) -> None:
        """A word of the relay itself. Never silence: what an agent asked for and did not get, it hears of."""
        self._put(_Notice(text))

    def type_in(self, text: str) -> None:
        """As the person would type it."""
        self._put(_Typed(text))

    def put(self, message: Message) -> None:
        self._settler.begin(message)
        self._put(message)

    def take_over(self, other: Deliverer) -> None:
        """What another one was to deliver to a program that has ended, in the same order."""
        given = [handed.message for handed in other._handed.values()]
        other._put_back(given)
        other._handed.clear()
        for item in other._items:
            if isinstance(item, Message):
                self._settler.take_over(item, other._settler)
            if not isinstance(item, _Introduction):
                self._put(item)

    def _put(self, item: _Item) -> None:
        self._items.append(item)
        self.wake()

    def wake(self) -> None:
        self._woken.set()

    # --- what is heard of it -------------------------------------------------------------------------------------------

    def note_taken(self, text: str) -> None:
        """The CLI's own record has this as something the agent was given."""
        self._typist.note_taken(text)
        for mark in _MARK.findall(text):
            if mark in self._given:
                self.note_read(self._given[mark], "transcript")

    def note_read(self, message_id: str, evidence: str) -> None:
        self._begun_here.discard(message_id)
        handed = self._handed.pop(message_id, None)
        if handed is not None:
            self._settler.finish(handed.message, handed.door, evidence, is_read=True)
            if self.doorway.current is not None and self.doorway.current.name == handed.door:
                self.doorway.prove()
            self.wake()
        elif message_id == self._typed_now:
            self._read_early = evidence  # told after the acknowledgement, in the order it should be read in
        else:
            self._reporter.read(message_id, evidence)

    def note_working(self) -> None:
        """The agent has begun to work, perhaps on what it was handed."""
        for handed in self._handed.values():
            handed.may_be_read = True

    def note_refused(self, message_id: str, reason: str, *, was_given: bool = False) -> None:
        """The door will not give it to the agent, and it is typed. `was_given`: the CLI had it."""
        handed = self._handed.pop(message_id, None)
        if handed is not None:
            _log.warning("%s: %s refuses it: %s", message_id, handed.door, reason)
            self._refused.add(message_id)
            if was_given:
                self._doubt(handed)
            self._put_back([handed.message])

    def note_rejected(self, message_id: str, reason: str) -> None:
        """Somebody at the terminal does not want it. Should they let it in later, the sender is not told again."""
        handed = self._handed.pop(message_id, None)
        if handed is not None:
            self._settler.give_up(handed.message, reason)
            self.wake()

    def _doubt(self, handed: _Handed) -> None:
        """What a proven door does not show was not read; of one on trial that is not known."""
        if handed.may_be_read and not self.doorway.is_proven:
            _log.warning("%s: %s may have given it to the agent, so it is not handed in again", handed.message.id, handed.door)
            self._doubted[handed.message.id] = handed.door

    def _put_back(self, messages: list[Message]) -> None:
        """In front of the others, in the order they came."""
        waiting = [item for item in self._items if isinstance(item, Message)]
        rest = [item for item in self._items if not isinstance(item, Message)]
        ordered = sorted({*messages, *waiting}, key=lambda message: message.order)
        self._items = deque([*rest, *ordered])
        self.wake()

    # --- the work ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        while True:
            self._woken.clear()
            if self._items and not self.doorway.is_decided and self._typist.idle_s >= AT_PROMPT_S:
                self.doorway.stop_waiting()
            if self._items and self.doorway.is_decided:
                item = self._items[0]  # it stays there until it is dealt with, should the terminal fail in between
                if await self._deal_with(item) and item in self._items:
                    self._items.remove(item)
                    continue
            elif self._handed:
                await self._look_after_handed()
            await self._wait()

    async def _wait(self) -> None:
        patience_s = LOOK_S if self._handed or self._items else None
        if self._items and not self.doorway.is_decided:
            patience_s = SOON_S
        try:
            async with asyncio.timeout(patience_s):
                await self._woken.wait()
        except TimeoutError:
            return

    async def _deal_with(self, item: _Item) -> bool:
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
                self._refused.discard(item.id)
                self._doubted.pop(item.id, None)
            case _Notice(text):
                await self._say(partial(render_notice, text, prefix=self.manners.prefix), text, door)
            case _Typed(text):
                await self._say(partial(render_typed, text), text, None)
            case _Introduction() if not self.doorway.introduces:
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

    def _door_for(self, item: _Item) -> Door | None:
        door = self.doorway.current
        if door is None or (isinstance(item, Message) and item.id in self._refused) or self._typist.is_paused:
            return None
        return door if door.can_start_turns or not self._is_idle() else None

    def _render_introduction(self, room: Room) -> str:
        return render_introduction(self.manners.name, self._run.mark, room, self.manners.prefix, self.manners.signed_prefix)

    # --- through a door ------------------------------------------------------------------------------------------------

    async def _hand_over(self, message: Message, door: Door) -> bool:
        if self._settler.is_over(message):
            return True
        self._note_given(message)
        if self._run.was_begun(message.delivery_id):
            where = await self._find(door, message)
            if where is Whereabouts.READ:
                self._handed[message.id] = self._begin(message, door)
                self.note_read(message.id, "found again")
                return True
            if where is Whereabouts.HELD:
                self._handed[message.id] = self._begin(message, door)
                return True
            if message.id not in self._begun_here and not self.doorway.is_proven:
                self._doubted[message.id] = door.name  # handed over by a wrapper before us, and this door may not see it
        asked = door_message(message, self.manners.prefix, self._doubted.get(message.id, ""))
        self._begun_here.add(message.id)
        self._run.note_begun(message.delivery_id)
        self._expect_answer_to(message)
        self._handed[message.id] = self._begin(message, door)  # before: it may be read before this returns
        try:
            seen = await self._try_door(door, asked)
        except DoorError as error:
            if self.doorway.current is not door:
                return False  # it was lost meanwhile, and what was on its way stands in front again
            if self._handed.pop(message.id, None) is None:
                return True  # it arrived all the same
            if isinstance(error, DoorShut):
                self.lose_door(str(error), error.mend)
            else:
                self._refused.add(message.id)
                self.wake()
            return False
        if self.doorway.current is not door:
            return False
        _log.info("%s: handed to %s (%s)", message.id, door.name, seen)
        self._reporter.handed(message.id, door.name, seen)
        return True

    def _begin(self, message: Message, door: Door) -> _Handed:
        return _Handed(message, door.name, _now(), may_be_read=not self._is_idle())

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
        """Where a message is that somebody handed over, or began to type, before."""
        if self._was_seen(f"[{short_id(message.id)}]"):
            return Whereabouts.READ
        if door is None:
            return Whereabouts.NOWHERE
        try:
            return await door.look_up(door_message(message, self.manners.prefix))
        except DoorError:
            return Whereabouts.UNKNOWN

    async def _look_after_handed(self) -> None:
        """An agent with nothing to do that was handed something long ago will not read it any more."""
        door = self.doorway.current
        old = [handed for handed in self._handed.values() if _now() - handed.since > UNREAD_S]
        if not old or not self._is_idle():
            return
        for handed in old:
            where = await self._find(door, handed.message)
            if where is Whereabouts.READ:
                self.note_read(handed.message.id, "found again")
            elif where is Whereabouts.HELD:
                handed.since = _now()
            elif handed.message.id in self._handed:
                self.lose_door("it took a message but did not give it to the agent")
                return

    def lose_door(self, reason: str, mend: str = "") -> None:
        """What was on its way through it is looked for, and goes another way if nobody has it."""
        handed = [entry.message for entry in self._handed.values()]
        for entry in self._handed.values():
            self._doubt(entry)
        self._handed.clear()
        self.doorway.drop(reason, mend)
        self._put_back(handed)

    # --- typed ---------------------------------------------------------------------------------------------------------

    async def _type(self, message: Message) -> None:
        if self._settler.is_over(message):
            return
        mark = f"[{short_id(message.id)}]"
        self._note_given(message)
        was_begun = self._run.was_begun(message.delivery_id)
        if was_begun and await self._find(None, message) is Whereabouts.READ:
            self._settler.finish(message, TYPING, "found again", is_read=True)
            return

        def give(room: Room) -> str:
            self._run.note_begun(message.delivery_id)
            self._expect_answer_to(message)  # the answer may be there before it is seen that the question was taken
            return self._text_of(message, room)

        is_own = partial(self._is_own, message) if was_begun else None
        self._typed_now, self._read_early = message.id, ""
        try:
            outcome = await self._typist.type_in(
                give,
                mark,
                until=self._settler.deadline_of(message),
                is_own=is_own,
                tell=partial(self._tell_held, message=message),
            )
        finally:
            self._typed_now = ""
        _log.info("%s: %s", message.id, outcome)
        match outcome:
            case Done(evidence):
                self._settler.finish(message, TYPING, evidence, is_read=bool(self._read_early) or evidence == "transcript")
            case Failed(reason):
                self._settler.give_up(message, reason)

    def _tell_held(self, hold: Hold | None, is_long: bool, message: Message | None = None) -> None:
        """Whoever looks at the agent sees why it gets nothing; where that lasts, the message's sender is told too."""
        self._reporter.held(hold)
        if hold is not None and is_long and message is not None:
            self._reporter.waits(message.id, hold)

    def _is_own(self, message: Message, draft: str) -> bool:
        """The whole text, and nothing that a person wrote behind it."""
        placeholder = self.manners.profile.submit.placeholder
        if placeholder and re.fullmatch(placeholder, draft.strip()):
            return True
        text = self._text_of(message, Room())
        return "".join(draft.split()) == "".join(text.split())

    def _text_of(self, message: Message, room: Room) -> str:
        return render(shown(message), room, self.manners.prefix, self._doubted.get(message.id, ""))

    # --- before and after ----------------------------------------------------------------------------------------------

    def _expect_answer_to(self, message: Message) -> None:
        if message.correlation_id is not None:
            self._expect_answer(message)

    def _note_given(self, message: Message) -> None:
        mark = short_id(message.id)
        self._given[mark] = message.id
        if len(self._given) > _REMEMBERED:
            self._given.popitem(last=False)
        if shown(message).channel is None:
            self.direct_marks.append(f"[{mark}]")
            del self.direct_marks[:-_REMEMBERED]


def _now() -> float:
    return asyncio.get_running_loop().time()
