"""`forget`: everything that is kept of one agent goes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import AgentName, Json, Socket, StateDir, find_place
from agent_relay.cli.output.formats import count
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.project.cluster_file import read_cluster
from agent_relay.protocol.hosts import LOG_DAYS
from agent_relay.sdk.locate import Place


def forget(
    name: AgentName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Erase everything kept about an agent: messages from it and to it alone, its events, inbox, outbox, screens, sessions.

    This cannot be undone; save a copy first with `agent-relay export NAME`. The agent must not be running. Undelivered
    messages from it will never arrive; you see how many before you confirm. Messages with several recipients stay, without
    its name, and so do the cost figures. With --json, which needs --yes: {"name", "undelivered_from", "undelivered_to",
    "messages", "events", "files"}, and in a cluster "log_days": for so long the log in NATS keeps the messages.
    """
    from agent_relay.cli.project.link import run

    place = find_place(socket, state_dir)
    screen = Screen()
    if not yes:
        _ask(run(_count(place, name)), name, screen, as_json=as_json)
    erased = run(_forget(place, name))
    is_clustered = read_cluster(place.state_dir) is not None
    if as_json:
        screen.json({"name": name} | erased | ({"log_days": LOG_DAYS} if is_clustered else {}))
        return 0
    if not any(erased.values()):
        screen.line((f"Nothing is stored about {clean_line(name)}.", "dim"))
        return 0
    said = [count(erased[f"{what}s"], what) for what in ("message", "event", "file")]
    screen.line((f"{clean_line(name)} is forgotten", "bold green"), f": {said[0]}, {said[1]} and {said[2]} erased.")
    if is_clustered:
        screen.line((f"The cluster's log in NATS keeps the messages until they are {LOG_DAYS} days old.", "dim"))
    return 0


def _ask(waiting: dict[str, int], name: str, screen: Screen, *, as_json: bool) -> None:
    if as_json or not sys.stdin.isatty():
        raise Failure(
            f"Cannot ask for confirmation here. To erase everything about {clean_line(name)}, run: "
            f"agent-relay forget {clean_line(name)} --yes"
        )
    if waiting["undelivered_from"]:
        said = f"{count(waiting['undelivered_from'], 'message')} from {clean_line(name)} will never be delivered."
        screen.line((said, "yellow"))
    if waiting["undelivered_to"]:
        screen.line((f"{count(waiting['undelivered_to'], 'message')} to {clean_line(name)} will never be delivered.", "yellow"))
    if not typer.confirm(f"Erase everything about {clean_line(name)}? This cannot be undone."):
        raise Failure("Nothing was erased.")


async def _count(place: Place, name: str) -> dict[str, int]:
    from agent_relay.cli.project.link import observe

    async with observe(place) as relay:
        return await relay.count_data(name)


async def _forget(place: Place, name: str) -> dict[str, int]:
    from agent_relay.cli.project.link import observe

    async with observe(place) as relay:
        return await relay.forget(name)
