"""`replay`: what the relay would have done with a recording or a session file."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_block, clean_line
from agent_relay.cli.output.screen import Part, Screen


def replay(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An asciicast v2 recording, or a CLI's session file.")],
    cli: Annotated[str | None, typer.Option("--cli", metavar="CLI", help="The recorded CLI, if the file does not say.")] = None,
    source: Annotated[str | None, typer.Option("--source", metavar="screen|transcript", help="Treat FILE as this kind.")] = None,
    chunk: Annotated[
        int | None,
        typer.Option("--chunk", min=1, metavar="N", help="Feed a recording N bytes at a time; the result is the same."),
    ] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Run a recording through the code that watches live agents, and print what it would have done.

    Sends nothing and needs no daemon. With --json: one object per line.
    """
    from agent_relay.cli.wrapper.profile_shelf import load_shelf
    from agent_relay.terminal.recordings import replay as player

    place = find_place(socket, state_dir)
    screen = Screen()
    try:
        for line in player.replay(file, cli, source, chunk, load_shelf(place.root, place.home).profiles):
            if as_json:
                screen.json_line(line)
            else:
                _show(screen, line)
    except player.ReplayError as error:
        raise Failure(clean_line(str(error))) from None
    return 0


def _show(screen: Screen, line: dict[str, Any]) -> None:
    rest = dict(line)
    t, kind = rest.pop("t"), rest.pop("kind")
    head: list[Part] = [(f"{t:9.3f}", "dim"), "  ", (f"{kind:<10}", "bold"), "  "]
    if kind == "message":
        screen.line(*head, "to ", (clean_line(str(rest["to"])), "bold cyan"), f"  ({rest['source']})")
        screen.block(clean_block(str(rest["body"])))
    elif kind == "state":
        screen.line(*head, str(rest["state"]))
    else:
        facts = [f"{name}={value}" for name, value in rest.items() if value not in (None, "", [])]
        screen.line(*head, clean_line("  ".join(facts)))
