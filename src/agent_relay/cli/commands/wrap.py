"""`wrap`: runs an agent's CLI under the relay. `agent-relay -n Alice claude` is the short form."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import subprocess
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Socket, StateDir, choose_doors, find_place, is_strict, read_sandbox
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.protocol.errors import RelayError

if TYPE_CHECKING:
    from agent_relay.cli.wrapper.process import WrapOptions
    from agent_relay.cli.wrapper.revival import WrapperStart
    from agent_relay.sdk.locate import Place
    from agent_relay.terminal.backends.tmux_server import TmuxServer

_END_S = 30.0  # after the session is gone, for the wrapper to end
_LOOK_S = 0.1
_SHOWN_LINES = 20
_NOT_READ = "Standard input is not read with --detach. To send the agent text: agent-relay send NAME -"
_STOP_S = 5.0
_EARLY_S = 10.0  # a program that ends so soon has shown what it had to say for a moment only


def wrap(
    command: Annotated[list[str], typer.Argument(metavar="CMD...", help="The program and its arguments.", show_default=False)],
    name: Annotated[
        str | None, typer.Option("--name", "-n", metavar="NAME", help="The agent's name; by default a free one.")
    ] = None,
    backend: Annotated[
        str, typer.Option("--backend", metavar="auto|tmux|pty", help="Where it runs; auto is tmux if installed, else pty.")
    ] = "auto",
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="The prefix of a line that is a message.")] = "->relay:",
    strict_prefix: Annotated[
        bool,
        typer.Option(
            "--strict-prefix", help="Ignore commands on its screen without the run's nonce, which it is told at the start."
        ),
    ] = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Run it in the background.")] = False,
    acp: Annotated[
        bool, typer.Option("--acp", help="Run it by the Agent Client Protocol, in a console of the relay's; see docs/acp.md.")
    ] = False,
    no_intro: Annotated[bool, typer.Option("--no-intro", help="Do not tell the agent how to send messages.")] = False,
    status: Annotated[
        bool, typer.Option("--status/--no-status", help="A status bar in its tmux, and a title for your window.")
    ] = False,
    cli: Annotated[
        str | None, typer.Option("--cli", metavar="CLI", help="Use this CLI's profile, e.g. claude, or one of your own.")
    ] = None,
    prompt: Annotated[
        list[str] | None,
        typer.Option("--prompt", metavar="REGEX", help="Its prompt: a row that shows it is ready. May be repeated."),
    ] = None,
    busy: Annotated[list[str] | None, typer.Option("--busy", metavar="REGEX", help="A row that shows while it works.")] = None,
    dialog: Annotated[
        list[str] | None, typer.Option("--dialog", metavar="REGEX", help="A row that shows while a dialog is open.")
    ] = None,
    doors: Annotated[
        str | None,
        typer.Option(
            "--doors",
            metavar="probe|known|off",
            help="Better ways in than typing: those that pass their probe, only those of tested versions, or none.",
        ),
    ] = None,
    no_doors: Annotated[bool, typer.Option("--no-doors", help="Type every message; the same as --doors off.")] = False,
    try_doors: Annotated[bool, typer.Option("--try-doors", help="The same as --doors probe, now the default.")] = False,
    codex_hooks: Annotated[
        bool,
        typer.Option(
            "--codex-hooks",
            help="Have Codex ask you to approve the relay's hooks if they would be used. Once is enough.",
        ),
    ] = False,
    record: Annotated[
        str | None, typer.Option("--record", metavar="FILE", help="Record its terminal, for `agent-relay replay`.")
    ] = None,
    sandbox: Annotated[
        bool,
        typer.Option("--sandbox", help="In a sandbox (bubblewrap, Linux), without access to the relay's files."),
    ] = False,
    sandbox_network: Annotated[
        str | None, typer.Option("--sandbox-network", metavar="on|off", help="Network access in the sandbox; by default on.")
    ] = None,
    sandbox_home: Annotated[
        str | None,
        typer.Option("--sandbox-home", metavar="ro|rw|none|PATHS", help="Access to your home in the sandbox; by default ro."),
    ] = None,
    ready: Annotated[int | None, typer.Option("--ready-descriptor", hidden=True)] = None,
    session: Annotated[str | None, typer.Option("--session", hidden=True)] = None,
    end_file: Annotated[str | None, typer.Option("--end-file", hidden=True)] = None,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Run an agent's CLI under the relay; `agent-relay -n Alice claude` is the short form.

    Without `wrap` and a name, only CLIs that the relay knows are run: `agent-relay claude`. Starts the daemon if needed. When
    you detach (Ctrl-b d; inside your own tmux usually Ctrl-b Ctrl-b d), the agent keeps running; otherwise this exits with the
    program's status.
    """
    from msgspec.structs import replace

    from agent_relay.cli.commands.up import start
    from agent_relay.cli.wrapper.piped_input import has_input, is_piped
    from agent_relay.cli.wrapper.process import LookOptions, WrapOptions, find_acp_words, find_profile
    from agent_relay.daemon.secret_variable import forget_api_token
    from agent_relay.protocol.names import check_agent_name
    from agent_relay.terminal.agent.launch import WrapFailed, check_command, is_terminal_error, pick_backend
    from agent_relay.terminal.backends.choice import Backend
    from agent_relay.terminal.backends.program import check_program
    from agent_relay.terminal.doors.versions import OFF

    place = find_place(socket, state_dir)
    try:
        check_command(command)
        check_program(command, os.getcwd(), os.environ)
        if name is not None:
            check_agent_name(name)
        recording = os.path.abspath(record) if record else None
        ways = choose_doors(place, doors, is_off=no_doors, is_tried=try_doors)
        options = WrapOptions(
            command, name, pick_backend(backend), prefix, not no_intro, cli, recording, ways, codex_hooks, session, end_file,
            read_sandbox(place, sandbox_network, sandbox_home, wanted=sandbox), strict_prefix or is_strict(place),
            LookOptions(tuple(prompt or ()), tuple(busy or ()), tuple(dialog or ())), has_status=status, is_acp=acp,
        )  # fmt: skip
        if acp and (no_doors or doors == OFF):
            raise WrapFailed("With --acp, nothing is typed: leave out --no-doors and --doors off.")
        if acp:
            find_acp_words(place, options)
        notes: list[str] = []
        find_profile(place, options, notes)
    except Exception as error:
        if not is_terminal_error(error):
            raise
        if ready is not None:
            os.write(ready, json.dumps({"sentence": str(error)}).encode())
        raise Failure(str(error)) from None
    if ready is not None:
        forget_api_token()
        return _be_wrapper(place, options, ready)
    for note in notes:
        sys.stderr.write(f"agent-relay: {clean_line(note)}\n")
    pid, was_up = start(place, {})
    own_daemon = None if was_up else pid
    forget_api_token()  # the daemon has it; no agent is to find it in ours
    is_person_there = sys.stdin.isatty() and sys.stdout.isatty()
    if detach or (is_person_there and options.choice.backend is Backend.TMUX):
        if has_input():
            sys.stderr.write(f"agent-relay: {_NOT_READ}\n")
        return _run_apart(place, options, own_daemon, detach=detach)
    return _run_here(place, replace(options, has_input=is_piped()), own_daemon)


# --- in this process ------------------------------------------------------------------------------------------------------


def _run_here(place: Place, options: WrapOptions, own_daemon: int | None) -> int:
    from agent_relay.cli.output.formats import now_ms
    from agent_relay.cli.project.link import run
    from agent_relay.cli.wrapper.process import run_wrapper

    began_ms, has_begun = now_ms(), False

    def say(name: str) -> None:
        nonlocal has_begun
        has_begun = True
        if not sys.stdout.isatty() or options.has_input:
            sys.stderr.write(f"{name} runs {clean_line(options.argv[0])} ({options.choice.backend.value}).\n")

    try:
        return run(run_wrapper(place, options, say, partial(_start_of, place, options)))
    except Exception as error:
        if not has_begun:
            clear_up(place, os.getpid(), began_ms, own_daemon)
        raise _explain(error) from error


def _explain(error: Exception) -> Exception:
    from agent_relay.terminal.agent.launch import is_terminal_error

    return Failure(clean_line(str(error))) if is_terminal_error(error) else error


# --- in a process of its own ----------------------------------------------------------------------------------------------


def _be_wrapper(place: Place, options: WrapOptions, ready: int) -> int:
    """Tells whoever started us how the start went."""
    from agent_relay.cli.failures import explain_failure
    from agent_relay.cli.project.link import run
    from agent_relay.cli.wrapper.process import run_wrapper

    told = False

    def tell(**facts: object) -> None:
        nonlocal told
        if not told:
            told = True
            with contextlib.suppress(BrokenPipeError):  # whoever started us is gone, and we go on
                os.write(ready, json.dumps(facts).encode())
            os.close(ready)

    try:
        return run(run_wrapper(place, options, lambda name: tell(name=name), partial(_start_of, place, options)))
    except Exception as error:
        logging.getLogger("agent_relay").exception("the wrapper ends")
        failure = explain_failure(_explain(error))
        tell(sentence=failure.sentence, status=failure.status)
        return failure.status


def _run_apart(place: Place, options: WrapOptions, own_daemon: int | None, *, detach: bool) -> int:
    from agent_relay.cli.wrapper.revival import WrapperKeeper

    process, name = _start_wrapper(place, options, own_daemon)
    screen = Screen()
    if detach:
        screen.line((f"{name} is running", "bold green"), f"  pid {process.pid}")
        screen.line(("see it", "dim"), f"  agent-relay attach {name}, agent-relay logs {name}")
        return 0
    from agent_relay.cli.wrapper.wrapped_agent import show_nesting
    from agent_relay.terminal.agent.attachment import attach, running_session
    from agent_relay.terminal.agent.launch import tmux_server

    server = tmux_server(options.choice, place.state_dir, place.project_id)
    session = running_session(server, name)
    keeper, began = WrapperKeeper(place, server, name, process), time.monotonic()
    while True:
        said = attach(server, name, note=show_nesting(screen, server, name))
        before, session = session, _wait_for_session(keeper.process, server, name)
        if not session:
            break
        if session == before:
            if said:
                screen.line(("tmux", "bold red"), f"  {clean_line(said)}")
            screen.line(f"{name} keeps running; to see it again: agent-relay attach {name}")
            return 0
        screen.line(f"{name} ended at once; starting it again without the relay's additions.")
    try:
        status = keeper.process.wait(_END_S)
    except subprocess.TimeoutExpired:
        raise Failure(
            f"{name} has ended, but its wrapper (pid {keeper.process.pid}) has not; see its log: {_log_of(place, name)}."
        ) from None
    if status or time.monotonic() - began < _EARLY_S:
        _show_last_screen(screen, place, name)
    return status


def _wait_for_session(process: subprocess.Popen[bytes], server: TmuxServer, name: str) -> str:
    """The session that its program runs in; empty once the wrapper has ended, or does not start the program again."""
    from agent_relay.terminal.agent.attachment import running_session

    deadline = time.monotonic() + _END_S
    while time.monotonic() < deadline:
        if session := running_session(server, name):
            return session
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LOOK_S)
            return ""
    return ""


def _log_of(place: Place, name: str) -> str:
    from agent_relay.cli.wrapper.process import LOG_FILE
    from agent_relay.terminal.agent.launch import Home

    return os.path.join(Home(place.state_dir, name).team, LOG_FILE)


def spell_out(place: Place, options: WrapOptions) -> list[str]:
    """The words after the program's name that make a wrapper with these options."""
    return [
        "wrap", f"--backend={options.choice.backend.value}",
        f"--prefix={options.prefix}", f"--socket={place.socket}", f"--state-dir={place.state_dir}",
        *([f"--name={options.name}"] if options.name else []), *([f"--cli={options.cli}"] if options.cli else []),
        *([f"--record={options.record}"] if options.record else []),
        *(["--acp"] if options.is_acp else [f"--doors={options.doors}"]),
        *([f"--session={options.session}"] if options.session else []),
        *([f"--end-file={options.end_file}"] if options.end_file else []),
        *(["--codex-hooks"] if options.asks_for_hooks else []),
        *(["--strict-prefix"] if options.is_strict else []), *([] if options.has_introduction else ["--no-intro"]),
        *(["--status"] if options.has_status else []),
        *options.looks.words, *([] if options.sandbox is None else options.sandbox.words), "--", *options.argv,
    ]  # fmt: skip


def _start_of(place: Place, options: WrapOptions, name: str) -> WrapperStart:
    """The start of another wrapper for the same program; a recording that was begun is not overwritten."""
    from msgspec.structs import replace

    from agent_relay.cli.wrapper.revival import WrapperStart

    return WrapperStart(tuple(spell_out(place, replace(options, name=name, record=None))), os.getcwd())


def _start_wrapper(place: Place, options: WrapOptions, own_daemon: int | None) -> tuple[subprocess.Popen[bytes], str]:
    from agent_relay.cli.output.formats import now_ms
    from agent_relay.cli.wrapper.revival import NotStarted, WrapperStart, start_wrapper

    began_ms = now_ms()
    try:
        return start_wrapper(WrapperStart(tuple(spell_out(place, options)), os.getcwd()))
    except NotStarted as error:
        clear_up(place, error.pid, began_ms, own_daemon)
        raise Failure(error.sentence, error.status) from None


def _show_last_screen(screen: Screen, place: Place, name: str) -> None:
    """The session is gone with all it showed; why the program failed is often there."""
    from agent_relay.terminal.agent.launch import Home
    from agent_relay.terminal.recordings.screen_log import SCREEN_FILE

    try:
        with open(os.path.join(Home(place.state_dir, name).team, SCREEN_FILE), encoding="utf-8", errors="replace") as file:
            lines = file.read().rstrip().splitlines()[-_SHOWN_LINES:]
    except OSError:
        return
    screen.block(clean_block("\n".join(lines)))


def clear_up(place: Place, wrapper_pid: int, began_ms: int, own_daemon: int | None) -> None:
    """After an agent that never ran: the name it took and the daemon that was started for it (its pid: `own_daemon`) go again.
    Fails quietly: there is a better reason to tell."""
    from agent_relay.cli.commands.down import stop
    from agent_relay.cli.project.link import run

    with contextlib.suppress(RelayError, Failure, OSError):
        is_used = run(_remove_name(place, wrapper_pid, began_ms))
        if own_daemon is not None and not is_used:
            stop(own_daemon, _STOP_S)


async def _remove_name(place: Place, wrapper_pid: int, began_ms: int) -> bool:
    """Whether somebody else uses the daemon."""
    from agent_relay.cli.project.link import observe

    async with observe(place) as relay:
        agents = (await relay.agents()).agents
        for agent in agents:
            is_its = agent.meta.get("pid") == wrapper_pid and agent.registered_at >= began_ms
            if is_its and not agent.connected and not agent.queue_depth:
                await relay.remove(agent.name)
        return any(agent.connected for agent in agents)
