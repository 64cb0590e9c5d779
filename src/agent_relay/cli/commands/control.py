"""`pause`, `resume`, `interrupt`, `stop`, `input`: commands to an agent that the relay runs."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.options import AgentName, Json, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen


def pause(name: AgentName, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Hold messages to an agent until you resume it.

    They wait in order. The agent continues with what it is doing now.
    """
    return _control(name, "pause", "Asked {} to pause.", as_json, socket, state_dir)


def resume(name: AgentName, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Deliver messages to a paused agent again."""
    return _control(name, "resume", "Asked {} to resume.", as_json, socket, state_dir)


def interrupt(name: AgentName, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Stop what an agent is doing, as a person at its keyboard would. Its program keeps running."""
    return _control(name, "interrupt", "Interrupted {}.", as_json, socket, state_dir)


def stop(name: AgentName, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Stop an agent's program. Messages to it wait until it runs again."""
    return _control(name, "stop", "Asked {} to stop.", as_json, socket, state_dir)


def type_in(
    name: AgentName,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to type; - reads standard input.")],
    no_enter: Annotated[bool, typer.Option("--no-enter", help="Do not press Enter afterwards.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Type into an agent's terminal, as a person at its keyboard would, and press Enter.

    The text is typed at once, whatever the agent is doing, even into a dialog. Use `send` for reliable delivery.
    """
    typed = read_typed(text, press_enter=not no_enter)
    return _control(name, "input", "Typed to {}.", as_json, socket, state_dir, typed)


def read_typed(text: str, *, press_enter: bool) -> str:
    """The text as the terminal gets it, where the end of a line is Enter."""
    from agent_relay.cli.commands.send import read_body

    if not text:
        raise Failure("The text to type is empty.", USAGE)
    typed = read_body(text)
    return typed + "\n" if press_enter and not typed.endswith("\n") else typed


def _control(
    name: str, command: str, done: str, as_json: bool, socket: str | None, state_dir: str | None, text: str | None = None
) -> int:
    from agent_relay.cli.project.link import observe, run

    place = find_place(socket, state_dir)

    async def ask() -> str:
        async with observe(place) as relay:
            return await relay.control(name, command, text)

    agent = run(ask())
    screen = Screen()
    if as_json:
        screen.json({"agent": agent, "command": command, "stage": "controlled"})
    else:
        screen.line(done.format(clean_line(agent)))
    return 0
