"""The start of a CLI, such that its doors can be opened, and found again by a later wrapper.

A CLI's module is imported only for that CLI: some are heavy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from agent_relay.terminal.doors.door import Door, DoorListener
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.find import home_of
from agent_relay.terminal.profiles.profile import Profile, load_profiles

ASKED_FOR_VERSION = frozenset({"opencode"})  # CLIs of which it decides how they are started


class Program(Struct, frozen=True):
    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


class AgentPlace(Struct, frozen=True):
    """An agent, and the folder of its own files, which is the user's alone."""

    agent: str
    folder: str
    project_id: str


class Note(Struct, frozen=True):
    """Something that people should know of a start. `doors`: those that are not there because of it; `mend`: what to do."""

    text: str
    doors: tuple[str, ...] = ()
    mend: str = ""

    @property
    def whole(self) -> str:
        return f"{self.text} {self.mend}".strip()


class PreparedStart(Struct, frozen=True):
    """`facts` are kept, privately, as long as the program runs: a later wrapper finds the doors by them."""

    program: Program
    facts: dict[str, str] = {}
    is_introduced: bool = False  # the agent gets the introduction with its start: nobody needs to type it
    session_id: str | None = None  # of the session file, where it could be chosen
    notes: tuple[Note, ...] = ()  # what could not be prepared, and why


class Launcher(Protocol):
    """Prepares the start of one CLI, and knows its doors."""

    def prepare(self, program: Program, place: AgentPlace, introduction: str) -> PreparedStart:
        """Adds flags and variables and writes files of our own. Nothing of the user's is edited, and nothing the user asked
        for is changed: where a flag of theirs is in the way, it is left out and noted. `introduction` may be empty."""
        ...

    def doors(
        self, program: Program, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]
    ) -> list[Door]:
        """The doors of the program that this launcher started, the best first. None of them is open yet."""
        ...


def home_of_cli(cli: str, program: Program) -> Path:
    """The folder where this CLI keeps its settings and session files, for this program."""
    transcript = load_profiles()[cli].transcript
    assert transcript is not None
    return home_of(transcript, program.environment)


def launcher_for(profile: Profile, *, asks_for_hooks: bool = False, version: Callable[[], str] = lambda: "") -> Launcher | None:
    """None for a CLI that can only be typed to. `asks_for_hooks`: a CLI that runs hooks only with the person's word may ask.
    `version`: of the program, which may take a while to be found."""
    match profile.name if profile.doors else "":
        case "claude":
            from agent_relay.terminal.doors.claude.launch import ClaudeLauncher

            return ClaudeLauncher()
        case "codex":
            from agent_relay.terminal.doors.codex.launch import CodexLauncher

            return CodexLauncher(asks_for_hooks=asks_for_hooks)
        case "gemini":
            from agent_relay.terminal.doors.gemini.launch import GeminiLauncher

            return GeminiLauncher()
        case "opencode":
            from agent_relay.terminal.doors.opencode.launch import OpencodeLauncher

            return OpencodeLauncher(version)
        case _:
            return None
