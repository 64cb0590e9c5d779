"""`bridge`: joins agents of the project to a remote ARC relay, for as long as it runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import OK, USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.bridge.notices import Counts, Notice
    from agent_relay.bridge.plan import Plan
    from agent_relay.sdk.locate import Place

CONFIG = os.path.join(".agent-relay", "bridge.toml")
_STYLES = {"joined": "bold green", "back": "green", "lost": "yellow", "refused": "red", "waiting": "yellow", "warning": "yellow"}


def bridge(
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="The remote relay, such as wss://relay.example.com/arc.")
    ] = None,
    joined: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="NAME=ID", help="Bridge this agent, under that id at the remote relay; may be repeated."),
    ] = None,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="ID[=NAME]", help="A remote agent that can be written to at once, and its name here."),
    ] = None,
    broadcasts: Annotated[bool, typer.Option("--broadcasts", help="Also pass on remote broadcasts.")] = False,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help=f"Read all of this from a file; by default {CONFIG}.")
    ] = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Connect agents of this project to a remote ARC relay, until Ctrl-C.

    Only agents listed with --map are connected. Each needs an id at the remote relay: agent-relay arc register ID --url URL.
    Whoever writes to it from there becomes an agent of this project and can be answered like any other. A message is
    acknowledged on one side once the other side has it, and none is doubled; you can stop and restart the bridge at any
    time. With --json: one object per line.
    """
    from agent_relay.cli.arc.identity import run_arc

    place = find_place(socket, state_dir)
    plan = _read_plan(place, url, joined or [], peers or [], config, broadcasts=broadcasts)
    tokens = _find_tokens(place, plan)
    screen = Screen()
    counts = run_arc(_run(place, plan, tokens, screen, as_json=as_json))
    summary = {"sent": counts.sent, "received": counts.received, "refused": counts.refused}
    if as_json:
        screen.json_line({"what": "ended", **summary})
    else:
        screen.line("ended  ", ", ".join(f"{number} {word}" for word, number in summary.items()))
    return OK


async def _run(place: Place, plan: Plan, tokens: dict[str, str], screen: Screen, *, as_json: bool) -> Counts:
    import asyncio
    import signal

    from agent_relay.bridge.bridge import Bridge

    def show(notice: Notice) -> None:
        if as_json:
            screen.json_line({"what": notice.what, "text": notice.text, **notice.details})
        else:
            screen.line((f"{notice.what:<9}", _STYLES.get(notice.what, "dim")), clean_line(notice.text))
        screen.flush()

    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    running = Bridge(plan, tokens, socket=place.socket, state_dir=place.state_dir, listener=show)
    await running.run(stop)
    return running.counts


def _read_plan(
    place: Place, url: str | None, joined: list[str], peers: list[str], config: str | None, *, broadcasts: bool
) -> Plan:  # fmt: skip
    from agent_relay.bridge.plan import make_plan, read_pairs, read_plan
    from agent_relay.protocol.errors import RelayError

    path = config or os.path.join(place.root, CONFIG)
    try:
        if not joined and (config is not None or os.path.exists(path)):
            with open(path, encoding="utf-8") as file:
                return read_plan(file.read(), os.path.basename(path))
        if url is None:
            raise Failure("Give the remote relay with --url, and the agents with --map.", USAGE)
        return make_plan(url, read_pairs(joined, "--map"), read_pairs(peers, "--peer"), broadcasts=broadcasts)
    except RelayError as error:
        raise Failure(clean_line(error.message), USAGE) from None


def _find_tokens(place: Place, plan: Plan) -> dict[str, str]:
    from agent_relay.arc.errors import ArcError
    from agent_relay.arc.token_file import TokenFile
    from agent_relay.cli.arc.identity import explain_arc

    try:
        kept = {one.agent_id: one.token for one in TokenFile(place.state_dir).find(plan.url)}
    except ArcError as error:
        raise explain_arc(error) from None
    if missing := [remote for remote in plan.joined.values() if remote not in kept]:
        command = f"agent-relay arc register {missing[0]} --url {plan.url}"
        raise Failure(clean_line(f"No saved token of {missing[0]}. Register it with: {command}"))
    return kept
