"""`logs`: what a wrapped agent's terminal showed."""

from __future__ import annotations

import os
import sys
import time
from typing import Annotated

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.names_on_disk import complete_names
from agent_relay.cli.options import Socket, StateDir, find_place
from agent_relay.cli.safe_text import clean_block

_POLL_S = 0.2


def logs(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The agent's name.", autocompletion=complete_names)],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on and show what comes, until Ctrl-C.")] = False,
    lines: Annotated[int | None, typer.Option("--lines", min=1, metavar="N", help="Only the last N lines.")] = None,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Show what a wrapped agent's terminal showed: what scrolled off, then its screen.

    With --follow, in a terminal, an agent in tmux is shown live and nothing that is typed reaches it.
    """
    from agent_relay.cli.wrapped_agent import find_running, give_terminal, log_paths

    place = find_place(socket, state_dir)
    agent, server = find_running(place, name)
    if follow and server is not None and sys.stdin.isatty() and sys.stdout.isatty():
        give_terminal(server, agent, read_only=True)
        return 0
    history, now = log_paths(place, agent)
    shown = _read(history) + _read(now)
    if not shown and not os.path.exists(now):
        raise Failure(f"Nothing of {agent} was recorded here; only agents that the relay runs have logs.")
    kept = shown.splitlines()[-lines:] if lines else shown.splitlines()
    _print("\n".join(kept))
    if follow:
        _follow(history, now)
    return 0


def _follow(history: str, now: str) -> None:
    """Lines as they scroll off; what stands on the screen is shown when it has been still for a moment."""
    known = _read(history)
    screen = _read(now).splitlines()
    while True:
        time.sleep(_POLL_S)
        grown, current = _read(history), _read(now).splitlines()
        new = grown[len(known) :].splitlines() if grown.startswith(known) else grown.splitlines()
        fresh = [line for line in new + current if line.strip() and line not in screen]
        if fresh:
            _print("\n".join(fresh))
        known, screen = grown, new + current


def _print(text: str) -> None:
    sys.stdout.write(f"{clean_block(text)}\n")
    sys.stdout.flush()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
