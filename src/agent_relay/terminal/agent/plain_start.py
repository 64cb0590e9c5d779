"""A program that ends at once when it is started the relay's way is started once more, as the person wrote it.

What the relay adds (flags, variables, hooks) may be refused by a version that nobody has tried. Only an end that this could
explain counts: within seconds, before a prompt or a dialog was seen, and nobody has touched it. A status of 0 counts too where a
door was prepared, since only a program that opens a session has doors: opencode 1.17.0 ends so.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence

from msgspec import Struct

from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.backends.terminal import ExitStatus
from agent_relay.terminal.doors.launch import Program
from agent_relay.terminal.screen.state import State

SOON_S = 10.0  # from the start to the end; later, something else has gone wrong
SHOWN_LINES = 10
# Somebody has ended it: by Ctrl-C, by closing the window, or from elsewhere.
_ENDED_BY_SOMEBODY = frozenset({signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL})
_SHOW = 'printf "%s\\n" "$0"; exec "$@"'


class FailedStart(Struct, frozen=True):
    """A start that we changed, and that went wrong."""

    program: str
    status: int
    after_s: float
    last_lines: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        name = os.path.basename(self.program)
        return f"{name} ended with status {self.status} {self.after_s:.1f} s after it was started with the relay's additions"

    @property
    def text(self) -> str:
        """For the person at the terminal."""
        lines = [f"agent-relay: {self.reason}."]
        if self.last_lines:
            lines += ["Its last lines:", *(f"  | {line}" for line in self.last_lines)]
        return "\n".join([*lines, "agent-relay: starting it again without them; messages are typed."])


def find_failed_start(
    argv: Sequence[str], status: ExitStatus, after_s: float, state: State, *, is_changed: bool, has_doors: bool, was_touched: bool
) -> FailedStart | None:
    """`is_changed`: it was started in another way than the person wrote; `has_doors`: so that it can be reached.
    `was_touched`: somebody typed, or asked it to stop."""
    is_ended = status.signal in _ENDED_BY_SOMEBODY or status.code - 128 in _ENDED_BY_SOMEBODY
    is_early = after_s <= SOON_S and state is State.STARTING
    is_changed = has_doors or (is_changed and status.code != 0)
    if is_ended or not is_early or not is_changed or was_touched:
        return None
    return FailedStart(argv[0], status.code, after_s)


def last_lines(rows: Sequence[str]) -> tuple[str, ...]:
    shown = [clean(row).rstrip() for row in rows if row.strip()]
    return tuple(shown[-SHOWN_LINES:])


def announce(program: Program, text: str) -> Program:
    """The same program, which first shows this text. The shell becomes the program."""
    return Program(("/bin/sh", "-c", _SHOW, text, *program.argv), program.cwd, program.environment)
