"""`version` and `completion`."""

from __future__ import annotations

import platform
from enum import StrEnum
from typing import Annotated

import typer

from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.version import __version__

_KNOCK_S = 1.0


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def version(as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Show the version of this program, and of the daemon if one is running."""
    from agent_relay.cli.project.daemon_process import Answer, knock

    found = knock(find_place(socket, state_dir).socket, _KNOCK_S)
    daemon = clean_line(found.version) if found.answer is Answer.RELAY else None
    screen = Screen()
    if as_json:
        screen.json({"version": __version__, "python": platform.python_version(), "daemon": daemon})
    else:
        screen.line(f"agent-relay {__version__}, Python {platform.python_version()}")
        screen.line(f"daemon {daemon}" if daemon else "daemon not running")
    return 0


def completion(
    shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.")],
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Print a script for your shell that completes commands, options and agent names."""
    del socket, state_dir  # taken by every command, so that a script can pass them to all alike
    from typer._completion_shared import get_completion_script

    from agent_relay.cli.app import COMPLETE_VARIABLE, PROGRAMS

    for program in PROGRAMS:
        Screen().line(get_completion_script(prog_name=program, complete_var=COMPLETE_VARIABLE, shell=shell.value))
    return 0
