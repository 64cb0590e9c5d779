"""How a CLI is started so that its doors can be opened, and found again by a later wrapper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from agent_relay.terminal.doors.door import Door, DoorListener
from agent_relay.terminal.output.observations import Observation


class Program(Struct, frozen=True):
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


class AgentPlace(Struct, frozen=True):
    """Where the agent's own files are; `folder` is the user's alone."""

    agent: str
    folder: str
    project_id: str


class Note(Struct, frozen=True):
    """What people should know of a start. `doors`: those that are not there because of it; `mend`: what to do."""

    text: str
    doors: tuple[str, ...] = ()
    mend: str = ""

    @property
    def whole(self) -> str:
        return f"{self.text} {self.mend}".strip()


class Prepared(Struct, frozen=True):
    """`facts` are kept, privately, as long as the program runs: a later wrapper finds the doors by them."""

    program: Program
    facts: dict[str, str] = {}
    is_introduced: bool = False  # the agent gets the introduction with its start: nobody needs to type it
    session_id: str | None = None  # of the session file, where it could be chosen
    notes: tuple[Note, ...] = ()  # what could not be prepared, and why


class Kit(Protocol):
    """One CLI's."""

    def prepare(self, program: Program, place: AgentPlace, introduction: str) -> Prepared:
        """Adds flags and variables and writes files of our own. Nothing of the user's is edited, and nothing the user asked
        for is changed: where a flag of theirs is in the way, it is left out and noted. `introduction` may be empty."""
        ...

    def doors(
        self, program: Program, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]
    ) -> list[Door]:
        """The doors of a program that was started so, the best first. None of them is open yet."""
        ...
