"""A door: a way to hand messages to a CLI, hear of it and answer for it, that needs no typing.

Each CLI that offers one has its own; the wrapper knows only this port. A door is opened after the program was started,
may not open, and may be lost at any time: then the next one is tried, and typing is the last. `deliver` hands over and
returns; that the agent has read a message is told later, by `door_read`, and never guessed. Whatever was handed over and
not read when a door is lost is the wrapper's to look for and to hand in again.

`O` is the terminal room's own picture of what was observed; this port only hands it on.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, TypeVar

from msgspec import Struct

from agent_relay.protocol.requests import AgentRequest

O_contra = TypeVar("O_contra", contravariant=True)


class DoorState(StrEnum):
    IDLE = "idle"
    WORKING = "working"
    WAITING = "waiting"  # for a person: a permission, a question


class DoorError(Exception):
    """A door failed; the text says why, for people.

    DoorError
    ├── DoorShut      it cannot be used, or not any more
    ├── NotTaken      this message was not handed over, and may be tried again
    └── NotOpen       there is nothing to answer under that id (any more)

    `mend` says what a person can do about it, where there is something. `lasts`: this very program has no such door, at its next
    start no more than now.
    """

    def __init__(self, text: str = "", mend: str = "", *, lasts: bool = False) -> None:
        super().__init__(text)
        self.mend = mend
        self.lasts = lasts


class DoorShut(DoorError):  # noqa: N818 - named by the condition
    pass


class NotTaken(DoorError):  # noqa: N818 - named by the condition
    pass


class NotOpen(DoorError):  # noqa: N818 - named by the condition
    pass


class DoorMessage(Struct, frozen=True):
    """A message to be handed in. `text` is what the agent is to see, header and all; `body` the cleaned body alone.

    `uuid` is a UUID made from the message's id, always the same: most CLIs want one and give it back when it was read.
    """

    id: str
    uuid: str
    sender: str
    body: str
    text: str


class Probe(Struct, frozen=True):
    """An open door. `note` tells what a person should know."""

    version: str = ""  # as the program tells it
    note: str = ""
    is_published: bool = False  # by a published protocol, which holds in every version
    introduces: bool = False  # it tells the agent itself what the relay is: nobody needs to type it


class Whereabouts(StrEnum):
    READ = "read"  # the agent has it
    HELD = "held"  # the CLI has it, and will give it to the agent: handing it over again would double it
    NOWHERE = "nowhere"
    UNKNOWN = "unknown"  # this door cannot tell


class Decision(Struct, frozen=True):
    """A person's decision on a request. `answer` for questions: one of the options, or text. `by` is shown to the agent where
    the CLI has room for it. `option` for permissions: one of the `wider_options`, by its whole text."""

    is_allowed: bool
    reason: str = ""
    answer: str = ""
    by: str = ""
    option: str = ""


class Resolution(StrEnum):
    ALLOWED = "allowed"
    DENIED = "denied"
    ANSWERED = "answered"
    GONE = "gone"  # the turn ended, or nobody can say


class DoorListener(Protocol[O_contra]):
    """Told of what happens, from the event loop, as it happens. It must not block and must not raise."""

    def door_state(self, state: DoorState, waiting_for: str = "") -> None: ...

    def door_read(self, message_id: str, evidence: str) -> None:
        """The CLI's own record shows that the agent has this message. More than once is harmless."""
        ...

    def door_refused(self, message_id: str, reason: str, *, was_given: bool = False) -> None:
        """The CLI will not give this message to the agent; another way may. `was_given`: the CLI had it, and only its record
        does not show that the agent read it."""
        ...

    def door_rejected(self, message_id: str, reason: str) -> None:
        """A person, or a setting of theirs, does not want the agent to have it: no other way is tried, and the sender hears."""
        ...

    def door_asked(self, request: AgentRequest) -> None:
        """The CLI asks a person something, which can be answered here as long as it is open. Its id is unique in this door."""
        ...

    def door_resolved(self, request_id: str, resolution: Resolution, by: str) -> None:
        """`by`: `person` for somebody at the terminal, `door` for an answer of ours."""
        ...

    def door_noticed(self, observation: O_contra) -> None: ...

    def door_said(self, to: str, body: str, id_: str) -> None:
        """The agent wrote to somebody through the door itself. `id_` is the same if it is told again."""
        ...

    def door_heard(self, text: str, id_: str) -> None:
        """Words of the agent, verbatim and whole; commands in it are carried out. `id_` is the same if it is told again."""
        ...

    def door_session(self, session_id: str) -> None:
        """The agent's words are in the session file of this id from now on."""
        ...

    def door_lost(self, reason: str) -> None:
        """It does not work any more. Nothing is told after that."""
        ...


class Door(Protocol):
    """One way into one running program."""

    @property
    def name(self) -> str:
        """As receipts and people see it, such as `claude inbox`."""
        ...

    @property
    def can_start_turns(self) -> bool:
        """False: it takes messages only while the agent works; an idle one must be reached in another way."""
        ...

    async def open(self) -> Probe:
        """Looks whether it is there, known and working, by a harmless round trip; waits for a program that is only just
        starting, within a deadline of its own. Raises DoorShut with the reason."""
        ...

    async def deliver(self, message: DoorMessage) -> str:
        """Hands it over, in the order of the calls, and says in a few words what was seen of it. Raises NotTaken, DoorShut.

        Asking twice hands over twice: the CLIs do not remember. A door that cannot start turns gives back with `door_refused`
        what it still holds when a turn has ended without taking it.
        """
        ...

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        """The place of a message that was handed over, by us or by a wrapper that died: looked up in the CLI's own record."""
        ...

    async def answer(self, request_id: str, decision: Decision) -> None:
        """Raises NotOpen when a person, or anybody else, was faster."""
        ...

    async def close(self) -> None:
        """Lets go of everything it holds: sockets, processes, files. The program is not touched."""
        ...
