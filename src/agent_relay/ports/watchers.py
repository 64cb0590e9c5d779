"""Views for people, beside the relay itself: terminals, workspaces, budgets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from agent_relay.events.budgets import Budget


class Shown(Struct, frozen=True):
    """Oldest line first."""

    lines: list[str]
    is_over: bool = False


class ScreenReader(Protocol):
    """The screens of agents' terminals. Blocks; None: nothing of that agent was ever recorded here."""

    def screen(self, agent: str) -> Shown | None: ...

    def output(self, agent: str, lines: int) -> Shown | None:
        """The last lines, with those on the screen at the end."""
        ...


class LivePlace(Struct, frozen=True):
    """A reader's place in what a terminal shows."""

    file: str  # which one, by its own mark
    offset: int
    state: tuple[int, int, int]  # of the file when it was read; the same: nothing is new


class LiveNews(Struct, frozen=True):
    """The output since then. `size`, columns and rows, where the screen is drawn anew: what was shown before is void."""

    place: LivePlace
    text: str = ""
    size: tuple[int, int] | None = None
    is_over: bool = False  # the program has ended


class LiveScreens(Protocol):
    """The screens of agents' terminals, as they change. Blocks."""

    def read(self, agent: str, place: LivePlace | None) -> LiveNews | None:
        """None: nothing is new, or nothing of that agent is there."""
        ...


class AgentFileReader(Protocol):
    def read(self, agent: str) -> Iterator[tuple[str, str]]:
        """The name and the text of every file that is kept of an agent. Blocks."""
        ...


class Workspace(Struct, frozen=True):
    """A project directory with its daemon."""

    id: str
    path: str
    name: str
    is_running: bool = False
    is_default: bool = False
    is_own: bool = False


class Workspaces(Protocol):
    """The workspaces of one user. Blocks; raises RelayError."""

    def all(self) -> list[Workspace]: ...

    def get(self, id_: str) -> Workspace: ...

    def add(self, path: str, name: str | None) -> Workspace: ...

    def remove(self, id_: str) -> None:
        """Forgets it; what is in the directory and whatever runs there stays."""
        ...

    def switch(self, id_: str) -> Workspace:
        """Makes it the default."""
        ...

    def agents(self, id_: str) -> list[tuple[str, str | None, bool, str]]:
        """Name, CLI, whether it is connected, session: as the daemon of another workspace wrote them down."""
        ...


class StartableCli(Struct, frozen=True):
    """A program that agents may be started with. `install` is the command its makers name, where it is known."""

    name: str
    is_installed: bool
    permission_modes: list[str]
    takes_model: bool
    install: str


class RunningProject(Struct, frozen=True):
    """A project whose relay runs. `host` is what its HTTP is bound to."""

    name: str
    path: str
    url: str
    host: str
    agents: int  # that are connected


class Projects(Protocol):
    """The user's other projects. Blocks."""

    def others(self) -> list[RunningProject]: ...


class Budgets(Protocol):
    def current(self) -> Budget: ...

    def set(self, budget: Budget) -> None: ...
