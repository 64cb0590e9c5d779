"""A program in a terminal, as the wrapper sees it: something that shows, is typed into, and ends.

`S` is the terminal room's own picture of a screen; this port only hands it on. Two backends implement it: `tmux`, where
the program lives on when we go, and `pty`, where it runs in the person's own terminal or in none at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Protocol, TypeVar

from msgspec import Struct

DEFAULT_COLUMNS = 120  # what the recorded screens have; wide enough that most lines of a CLI are not broken
DEFAULT_ROWS = 40
UNKNOWN_SIGNAL = 128  # a status: killed, and nobody can tell by which signal

S_co = TypeVar("S_co", covariant=True)


class Key(StrEnum):
    """Keys that are pressed on their own. The value is tmux's name of the key."""

    ENTER = "Enter"
    TAB = "Tab"
    ESCAPE = "Escape"
    SPACE = "Space"
    BACKSPACE = "BSpace"
    UP = "Up"
    DOWN = "Down"
    LEFT = "Left"
    RIGHT = "Right"
    CTRL_C = "C-c"
    CTRL_D = "C-d"
    CTRL_U = "C-u"


class ExitStatus(Struct, frozen=True):
    """End of the program. `code` is what a shell would say: the exit code, or 128 and the signal's number."""

    code: int
    signal: int | None = None

    @property
    def was_killed(self) -> bool:
        """By a signal, known or not: maybe in the middle of a line."""
        return self.signal is not None or self.code == UNKNOWN_SIGNAL


class PersonSeen(Struct, frozen=True):
    """Facts about the human at this terminal. `typed_ms_ago` is None when no key was seen."""

    is_attached: bool
    typed_ms_ago: int | None = None
    is_scrolled_back: bool = False  # reading what scrolled off; typing for the agent ends that


class RunningProgram(Struct, frozen=True):
    """One that has the terminal for its input."""

    argv: tuple[str, ...]
    is_parent: bool = False  # another of them was started by it


class Foreground(Struct, frozen=True):
    """Programs that get what is typed at this moment, as the system tells it, whatever the program was started by."""

    programs: tuple[RunningProgram, ...]
    collects_lines: bool = False  # the terminal itself collects and shows a line, as plain programs expect it
    is_reading: bool = False  # one of them is seen to wait for input from this terminal
    hides_input: bool = False  # the terminal collects a line and does not show it, as for a password
    unread: int | None = None  # bytes of whole lines that nobody has read yet; None: not known


class Drawing(Struct, frozen=True):
    """Text that makes any terminal of that size show what this one shows, whatever it showed before."""

    columns: int
    rows: int
    data: bytes


class TerminalError(Exception):
    """Something about a terminal went wrong; the text says what, and where possible what to do.

    TerminalError
    ├── BackendMissing     the backend asked for cannot run here
    ├── ProgramMissing     the program to run was not found
    ├── TerminalEnded      the program is not running (any more)
    └── SessionExists      a program already runs under that name
    """


class BackendMissing(TerminalError):  # noqa: N818 - named by the condition
    pass


class ProgramMissing(TerminalError):  # noqa: N818 - named by the condition
    pass


class TerminalEnded(TerminalError):  # noqa: N818 - named by the condition
    pass


class SessionExists(TerminalError):  # noqa: N818 - named by the condition
    pass


class TerminalListener(Protocol):
    """Told of what happens, from the event loop, as it happens. It must not block and must not raise."""

    def output(self, data: bytes) -> None:
        """The program wrote this. Cut anywhere, also inside a character."""
        ...

    def output_lost(self) -> None:
        """More came than could be passed on; the screen knows the outcome: read it."""
        ...

    def person_typed(self) -> None:
        """The human pressed a key; not what a terminal says by itself, such as an answer, a focus or a mouse report."""
        ...


class Terminal(Protocol[S_co]):
    """One program. Every method that needs it running raises TerminalEnded when it is not."""

    async def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str],
        columns: int = DEFAULT_COLUMNS,
        rows: int = DEFAULT_ROWS,
    ) -> None:
        """Runs the program with these arguments, no shell between, and this environment and nothing else of ours."""
        ...

    @property
    def pid(self) -> int | None:
        """The process that the program is, or that the program is a child of; None before it was started."""
        ...

    async def write(self, data: bytes) -> None:
        """Raw bytes, as if typed. Returns once the system has taken them, which a program that does not read delays."""
        ...

    async def paste(self, text: str) -> None:
        """The text as one bracketed paste, or plain where the program did not ask for brackets. Controls are removed."""
        ...

    async def press(self, key: Key) -> None:
        """One key, as its own write."""
        ...

    @property
    def takes_paste(self) -> bool | None:
        """Whether the program asked for bracketed paste; None where that cannot be known (re-attached)."""
        ...

    async def screen(self) -> S_co:
        """Reads what is shown now, preceded by what scrolled off since the last reading. One reader at a time."""
        ...

    async def draw(self, at: Callable[[], None]) -> Drawing:
        """The screen, for another terminal to show. `at` is called at its place in the output: what was passed on before is
        in it, what comes later is not."""
        ...

    async def resize(self, columns: int, rows: int) -> None:
        """Sets the size, unless a person's own terminal decides it."""
        ...

    async def show_status(self, text: str) -> None:
        """Shows a line about the program to a person at its terminal, where there is room beside the program."""
        ...

    async def interrupt(self) -> None:
        """Does what Ctrl-C at the keyboard does: a SIGINT, or a key to a program that reads keys itself."""
        ...

    async def stop(self, grace_s: float) -> ExitStatus:
        """Asks the program and all it started to end, and ends what is left when the time is over."""
        ...

    def kill(self) -> None:
        """Ends the program and all it started, at once and from any thread: for when nothing else can be done any more."""
        ...

    async def wait(self) -> ExitStatus:
        """Returns when the program has ended and all its output was passed on."""
        ...

    async def person(self) -> PersonSeen: ...

    async def foreground(self) -> Foreground | None:
        """None where the system does not tell."""
        ...

    async def attach(self) -> None:
        """Gives the terminal we were started in to the program, until the person detaches or it ends."""
        ...

    async def close(self) -> None:
        """Lets go of the terminal. Under tmux the program lives on; in a PTY it is hung up."""
        ...
