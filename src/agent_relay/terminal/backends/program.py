"""Checks of a program before it is run."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence

from agent_relay.protocol.clis import INSTALLERS
from agent_relay.protocol.names import is_name, show
from agent_relay.terminal.backends.terminal import ProgramMissing, TerminalError


def check_program(argv: Sequence[str], cwd: str, environment: Mapping[str, str]) -> None:
    """Raises with a reason people understand, where the system would only say that something does not exist."""
    if not argv or not argv[0]:
        raise TerminalError("There is no program to run.")
    if any("\0" in argument for argument in argv):
        raise TerminalError("An argument contains a NUL character, which programs cannot take.")
    if not os.path.isdir(cwd):
        raise TerminalError(f"The folder {cwd} does not exist.")
    program = argv[0]
    # As the program itself will be looked for: a path counts from its folder, a name from the PATH it is given.
    found = shutil.which(os.path.join(cwd, program) if "/" in program else program, path=environment.get("PATH", os.defpath))
    if found is None:
        raise ProgramMissing(_missing(program))


def _missing(program: str) -> str:
    if "/" in program:
        return f"{show(program, 200)} is not an executable file."
    shown = program if is_name(program) else show(program, 200)
    installer = INSTALLERS.get(program)
    return f"{shown} is not on PATH. " + (f"Install it with: {installer}" if installer else "Install it, or give its full path.")
