"""`record`: what a wrapped agent's terminal shows, as a file that `replay` plays."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import time
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import AgentName, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place
    from agent_relay.terminal.backends.tmux_drawing import PaneView
    from agent_relay.terminal.backends.tmux_server import TmuxServer
    from agent_relay.terminal.recordings.recorder import TerminalRecorder


def record(
    name: AgentName,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Output file; by default NAME and the time, in this folder."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option("--seconds", min=0.1, metavar="S", help="Stop after this many seconds.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    cli: Annotated[str | None, typer.Option("--cli", metavar="CLI", help="The CLI, if the relay does not know it.")] = None,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Record a running agent's terminal as an asciicast v2 file, until Ctrl-C or until the agent ends.

    The recording starts with the current screen. It contains everything the screen shows, including secrets: check it
    before you share it. Typed text is not recorded unless the agent shows it. A running agent can only be recorded in tmux;
    `agent-relay wrap --record FILE` records from the start with any backend.
    """
    from agent_relay.cli.project.link import run
    from agent_relay.cli.wrapper.wrapped_agent import find_running
    from agent_relay.terminal.agent.launch import is_terminal_error

    place = find_place(socket, state_dir)
    agent, server = find_running(place, name)
    if server is None:
        raise Failure(
            f"{agent} does not run in tmux, so it cannot be recorded from outside. "
            f"To record it from the start, run: agent-relay wrap -n {agent} --record FILE ..."
        )
    try:
        return run(_record(place, server, agent, output, seconds, cli, force=force))
    except Exception as error:
        if is_terminal_error(error):
            raise Failure(clean_line(str(error))) from None
        raise


async def _record(
    place: Place, server: TmuxServer, agent: str, output: str | None, seconds: float | None, cli: str | None, *, force: bool
) -> int:
    from agent_relay.terminal.recordings.recorder import CAST_SUFFIX, TerminalRecorder
    from agent_relay.terminal.recordings.tmux_recording import PaneRecording

    path = output or time.strftime(f"{agent}-%Y%m%d-%H%M%S{CAST_SUFFIX}")
    cli = cli or await _ask_cli(place, agent)
    pane = await server.find_pane(agent)
    if pane is None:
        raise Failure(f"{agent} has just ended.")
    screen = Screen()
    made: list[TerminalRecorder] = []

    def make(sight: PaneView) -> TerminalRecorder:
        try:
            recorder = TerminalRecorder(path, sight.columns, sight.rows, title=cli, term=sight.term, is_replacing=force)
        except FileExistsError:
            raise Failure(f"{clean_line(path)} already exists; overwrite it with --force.") from None
        made.append(recorder)
        screen.line((f"Recording {agent}", "bold green"), f"  to {clean_line(path)}; press Ctrl-C to stop.")
        screen.flush()
        return recorder

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # tmux would hold the agent back while a listener sleeps
    try:
        end = await PaneRecording(server, pane).run(make, stopping, seconds)
    finally:
        for recorder in made:
            recorder.close()
    from agent_relay.cli.wrapper.profile_shelf import load_shelf
    from agent_relay.terminal.profiles.profile import profile_for

    profile = profile_for(cli, load_shelf(place.root, place.home).profiles).name
    _tell(screen, agent, made[0], profile, end.name)
    return 1 if made[0].failure else 0


def _tell(screen: Screen, agent: str, recorder: TerminalRecorder, profile: str, end: str) -> None:
    if end != "STOPPED":
        rest = "" if end == "PROGRAM" else " Its session is gone; the last moment may be missing."
        screen.line(f"{agent} has ended.{rest}")
    if recorder.failure:
        screen.line(("The recording ends early", "bold red"), f"  {clean_line(recorder.failure)}")
    screen.line(("recorded", "dim"), f"  {recorder.seconds:.1f} s, {recorder.size_bytes:,} bytes")
    command = f"agent-relay replay {shlex.quote(recorder.path)} --cli {profile}"
    screen.line(("replay it", "dim"), f"  {clean_line(command)}")


async def _ask_cli(place: Place, agent: str) -> str:
    """The CLI that the daemon was told of when the agent joined; a recording does not fail because nobody can say."""
    from agent_relay.cli.project.link import observe
    from agent_relay.protocol.errors import RelayError

    with contextlib.suppress(RelayError, OSError):
        async with observe(place) as relay:
            found = (await relay.agents()).find(agent)
            return os.path.basename(found.cli or "") if found is not None else ""
    return ""
