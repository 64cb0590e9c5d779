"""`logs`: what a wrapped agent's terminal showed."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.interrupts import ending_in_order
from agent_relay.cli.options import AgentName, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_block

if TYPE_CHECKING:
    from agent_relay.terminal.recordings.screen_log import LogReader, LogUpdate

_POLL_S = 0.2  # looks at the times of one file; nothing is read while they stay
_MOST_LINES = 10_000  # of another host's terminal, as the API has it
_STILL_S = 1.0  # for so long a screen stays as it is before it is shown; a spinner never does


def logs(
    name: AgentName,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep showing new output until Ctrl-C or until the agent ends.")
    ] = False,
    lines: Annotated[int | None, typer.Option("--lines", min=1, metavar="N", help="Show only the last N lines.")] = None,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Show a wrapped agent's terminal output: what scrolled off, then its screen.

    With --follow in a terminal, an agent in tmux is shown live and read-only. Otherwise lines are printed as they scroll
    off, and those on the screen once it has not changed for a second. Of an agent on another host of the cluster, the last
    10,000 lines are shown, without --follow.
    """
    from agent_relay.cli.project.http_server import read_output
    from agent_relay.cli.project.link import run
    from agent_relay.cli.wrapper.wrapped_agent import OnOtherHost, find_running, give_terminal
    from agent_relay.terminal.agent.launch import Home
    from agent_relay.terminal.recordings.screen_log import LogReader

    place = find_place(socket, state_dir)
    try:
        agent, server = find_running(place, name)
    except OnOtherHost as other:
        if follow:
            raise
        _print(read_output(place.state_dir, other.agent, min(lines or _MOST_LINES, _MOST_LINES)))
        return 0
    if follow and server is not None and sys.stdin.isatty() and sys.stdout.isatty():
        give_terminal(server, agent, read_only=True)
        return 0
    folder = Home(place.state_dir, agent).team
    reader = LogReader(folder)
    with ending_in_order(), contextlib.closing(reader):
        news = reader.poll()
        if news is None:
            raise Failure(f"There are no logs of {agent}; only agents that the relay runs have logs.")
        shown = news.scrolled + news.rows
        _print(shown[-lines:] if lines else shown)
        if follow:
            sys.stderr.write(f"{run(_follow(folder, reader, news, agent))}\n")
    return 0


async def _follow(folder: str, reader: LogReader, news: LogUpdate, agent: str) -> str:
    """Returns why there is nothing more to follow."""
    from agent_relay.terminal.recordings.screen_log import LogFollower, is_being_written

    follower = LogFollower()
    follower.take([], news.rows, is_still=True)
    rows, is_over, changed_s, is_shown = news.rows, news.is_over, 0.0, True
    while not is_over:
        await asyncio.sleep(_POLL_S)
        is_over = not is_being_written(folder)  # before the last look: what is there by then is all there will be
        found = reader.poll()
        if found is not None:
            rows, changed_s, is_shown = found.rows, time.monotonic(), False
            _print(follower.take(found.scrolled, rows, is_still=False))
            news = found
            is_over = is_over or found.is_over
        if not is_shown and (is_over or time.monotonic() - changed_s >= _STILL_S):
            is_shown = True
            _print(follower.take([], rows, is_still=True))
    return f"{agent} has ended." if news.is_over else f"The logs of {agent} end here: its wrapper is gone."


def _print(lines: list[str]) -> None:
    if lines:
        sys.stdout.write("".join(f"{clean_block(line)}\n" for line in lines))
        sys.stdout.flush()
