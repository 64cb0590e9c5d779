"""The start of a CLI, such that its doors can be opened, and found again by a later wrapper.

A CLI's module is imported only for that CLI: some are heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from agent_relay.terminal.doors.door import Door, DoorListener
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.profiles.profile import Profile

ASKED_FOR_VERSION = frozenset({"opencode"})  # CLIs of which it decides how they are started


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


def kit_for(profile: Profile, *, asks_for_hooks: bool = False, version: Callable[[], str] = lambda: "") -> Kit | None:
    """None for a CLI that can only be typed to. `asks_for_hooks`: a CLI that runs hooks only with the person's word may ask.
    `version`: of the program, which may take a while to be found."""
    match profile.name if profile.doors else "":
        case "claude":
            from agent_relay.terminal.doors.claude.launch import ClaudeKit

            return ClaudeKit()
        case "codex":
            from agent_relay.terminal.doors.codex.launch import CodexKit

            return CodexKit(asks_for_hooks=asks_for_hooks)
        case "gemini":
            from agent_relay.terminal.doors.gemini.launch import GeminiKit

            return GeminiKit()
        case "opencode":
            from agent_relay.terminal.doors.opencode.launch import OpencodeKit

            return OpencodeKit(version)
        case _:
            return None
