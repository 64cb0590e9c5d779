"""Messages that were handed to the agent, and what is heard of each: read, refused, rejected, or lost with its door.

A door on trial may have given the agent a message though nothing shows it. Handing the message in again could double it, and
leaving it could lose it. So the agent is told where it can read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections import OrderedDict
from collections.abc import Collection, Iterator

from msgspec import Struct

from agent_relay.protocol.short_ids import short_id
from agent_relay.sdk.messages import Message
from agent_relay.terminal.delivery.acknowledgements import Acknowledgements
from agent_relay.terminal.delivery.door_selection import DoorSelection
from agent_relay.terminal.delivery.message_text import shown_message
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.reports.reporter import Reporter

_MARK = re.compile(r"\[([0-9a-f]{8})\]")
_REMEMBERED = 500
_EVIDENCE = 50  # marks that are looked for in a session file
_log = logging.getLogger("agent_relay.terminal")


class HandedMessage(Struct):
    """One on its way through a door. `may_be_read`: the agent has worked since, or already did."""

    message: Message
    door: str
    since: float
    may_be_read: bool


class HandedMessages:
    def __init__(
        self, queue: DeliveryQueue, acknowledgements: Acknowledgements, doors: DoorSelection, reporter: Reporter
    ) -> None:  # fmt: skip
        self._queue = queue
        self._acknowledgements = acknowledgements
        self._doors = doors
        self._reporter = reporter
        self._entries: OrderedDict[str, HandedMessage] = OrderedDict()  # by message id, in order
        self._refused: set[str] = set()  # message ids that must be typed
        self._begun: set[str] = set()  # message ids that this very wrapper has begun to hand over
        self._doubted: dict[str, str] = {}  # message ids that a door on trial may have given to the agent, and which door
        self._given: OrderedDict[str, str] = OrderedDict()  # message ids by mark
        self._direct_marks: list[str] = []  # of messages to this agent alone
        self._typed_now = self._read_early = ""

    def __bool__(self) -> bool:
        return bool(self._entries)

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._entries

    # --- what is handed over ---------------------------------------------------------------------------------------------

    def note_given(self, message: Message) -> None:
        """The agent may see this message from now on."""
        mark = short_id(message.id)
        self._given[mark] = message.id
        if len(self._given) > _REMEMBERED:
            self._given.popitem(last=False)
        if shown_message(message).channel is None:
            self._direct_marks.append(f"[{mark}]")
            del self._direct_marks[:-_REMEMBERED]

    def direct_marks(self) -> Collection[str]:
        """Marks that only this agent was given. The id of a message to several is in all their session files."""
        return self._direct_marks[-_EVIDENCE:]

    def begin(self, message: Message, door: str, *, may_be_read: bool) -> None:
        self._entries[message.id] = HandedMessage(message, door, asyncio.get_running_loop().time(), may_be_read)

    def note_begun(self, message: Message) -> None:
        self._begun.add(message.id)

    def was_begun(self, message: Message) -> bool:
        """By this very wrapper."""
        return message.id in self._begun

    def withdraw(self, message: Message) -> bool:
        """The door has not taken it. False: it arrived all the same."""
        return self._entries.pop(message.id, None) is not None

    def older_than(self, seconds: float) -> list[HandedMessage]:
        before = asyncio.get_running_loop().time() - seconds
        return [entry for entry in self._entries.values() if entry.since < before]

    # --- which must be typed -----------------------------------------------------------------------------------------------

    def refuse(self, message: Message) -> None:
        self._refused.add(message.id)
        self._queue.wake()

    def is_refused(self, message: Message) -> bool:
        return message.id in self._refused

    def doubt(self, message: Message, door: str) -> None:
        self._doubted[message.id] = door

    def doubted_door(self, message: Message) -> str:
        """The door that may have given it to the agent; empty where none has."""
        return self._doubted.get(message.id, "")

    def note_typed(self, message: Message) -> None:
        self._refused.discard(message.id)
        self._doubted.pop(message.id, None)

    @contextlib.contextmanager
    def typing(self, message: Message) -> Iterator[None]:
        """While it is typed, that it was read is kept back: the acknowledgement comes first."""
        self._typed_now, self._read_early = message.id, ""
        try:
            yield
        finally:
            self._typed_now = ""

    @property
    def was_read_early(self) -> bool:
        """Whether the message that was typed last was read before it was acknowledged."""
        return bool(self._read_early)

    # --- what is heard of it -----------------------------------------------------------------------------------------------

    def note_taken(self, text: str) -> None:
        """The CLI's own record has this as something the agent was given."""
        for mark in _MARK.findall(text):
            if mark in self._given:
                self.note_read(self._given[mark], "transcript")

    def note_read(self, message_id: str, evidence: str) -> None:
        self._begun.discard(message_id)
        entry = self._entries.pop(message_id, None)
        if entry is not None:
            self._acknowledgements.finish(entry.message, entry.door, evidence, is_read=True)
            if self._doors.current is not None and self._doors.current.name == entry.door:
                self._doors.prove()
            self._queue.wake()
        elif message_id == self._typed_now:
            self._read_early = evidence
        else:
            self._reporter.read(message_id, evidence)

    def note_answered(self, message_id: str) -> None:
        self.note_read(message_id, "answered")

    def note_working(self) -> None:
        """The agent has begun to work, perhaps on what it was handed."""
        for entry in self._entries.values():
            entry.may_be_read = True

    def note_refused(self, message_id: str, reason: str, *, was_given: bool = False) -> None:
        """The door will not give it to the agent, and it is typed. `was_given`: the CLI had it."""
        entry = self._entries.pop(message_id, None)
        if entry is not None:
            _log.warning("%s: %s refuses it: %s", message_id, entry.door, reason)
            self._refused.add(message_id)
            if was_given:
                self._doubt_entry(entry)
            self._queue.put_back([entry.message])

    def note_rejected(self, message_id: str, reason: str) -> None:
        """Somebody at the terminal does not want it. Should they let it in later, the sender is not told again."""
        entry = self._entries.pop(message_id, None)
        if entry is not None:
            self._acknowledgements.give_up(entry.message, reason)
            self._queue.wake()

    def lose_door(self, reason: str, mend: str = "", *, lasts: bool = False) -> None:
        """Drops the door in use; `lasts`: for the next starts of the program too. What was on its way through it is looked for,
        and goes another way if nobody has it."""
        entries = list(self._entries.values())
        for entry in entries:
            self._doubt_entry(entry)
        self._entries.clear()
        self._doors.drop(reason, mend, lasts=lasts)
        self._queue.put_back(entry.message for entry in entries)

    def hand_back(self) -> None:
        """The program has ended: what it was handed waits for the next one."""
        self._queue.put_back(entry.message for entry in self._entries.values())
        self._entries.clear()

    def _doubt_entry(self, entry: HandedMessage) -> None:
        """Doubts whether it was read: what a proven door does not show was not, of one on trial that is not known."""
        if entry.may_be_read and not self._doors.is_proven:
            _log.warning("%s: %s may have given it to the agent, so it is not handed in again", entry.message.id, entry.door)
            self.doubt(entry.message, entry.door)
