"""`rm` and `prune`: names that are not needed any more go off the lists. What was said stays; `forget` erases it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Json, Socket, StateDir, complete_names, find_place, read_duration_ms
from agent_relay.cli.output.formats import count, format_span
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient
    from agent_relay.sdk.locate import Place
    from agent_relay.sdk.views import AgentInfo

_WEEK = "7d"
_ARC = "arc"  # such a name belongs to whoever registered it


def rm(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Agents that are not running.", autocompletion=complete_names)
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask, even if messages wait for them.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Remove offline agents from the lists. Their messages, events and logs stay; `agent-relay forget` erases those.

    Messages waiting for them become dead letters, and their senders are told; you are asked first, unless you give --yes.
    Other agents can then use their names.
    """
    from agent_relay.cli.project.link import run

    place = find_place(socket, state_dir)
    wanted = list(dict.fromkeys(names))
    waiting = {name: found for name, found in run(_count(place, wanted)).items() if found}
    if waiting and not yes:
        _ask(waiting, as_json=as_json)
    removed = run(_remove(place, wanted))
    screen = Screen()
    if as_json:
        screen.json({"removed": removed})
        return 0
    for each in removed:
        letters = each["dead_letters"]
        said = f"; {count(letters, 'message')} to it {'is' if letters == 1 else 'are'} dead letters now" if letters else ""
        screen.line((f"{clean_line(each['name'])} is removed", "bold green"), said)
    return 0


def prune(
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="TIME", help="Offline for at least this long, e.g. 12h or 30d.")
    ] = _WEEK,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show who would be removed.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Remove agents that have been offline for a week from the lists. Their messages stay.

    Agents with waiting messages are kept; `agent-relay rm NAME` removes those.
    """
    from agent_relay.cli.output.formats import now_ms
    from agent_relay.cli.project.link import ask_agents, run

    place = find_place(socket, state_dir)
    before_ms = now_ms() - read_duration_ms(older_than, "--older-than")
    away = [agent for agent in run(ask_agents(place)).agents if not agent.connected and agent.last_seen_at <= before_ms]
    kept = [agent for agent in away if _waits(agent)]
    going = [agent for agent in away if not _waits(agent) and agent.cli != _ARC]
    if not dry_run and going:
        run(_remove(place, [agent.name for agent in going]))
    screen = Screen()
    if as_json:
        gone = [agent.name for agent in going]
        screen.json({"removed": [] if dry_run else gone, "would_remove": gone if dry_run else [],
                     "kept": [{"name": agent.name, "waiting": _waits(agent)} for agent in kept]})  # fmt: skip
        return 0
    word = "would be removed" if dry_run else "is removed"
    for agent in going:
        screen.line((clean_line(agent.name), "bold"), f" {word}; last seen {format_span(now_ms() - agent.last_seen_at)} ago")
    for agent in kept:
        name = clean_line(agent.name)
        screen.line(
            (f"{name} stays", "yellow"),
            f": it has {count(_waits(agent), 'waiting message')}; to remove it: agent-relay rm {name}",
        )
    if not away:
        screen.line(f"Nobody has been offline for {clean_line(older_than)}.")
    return 0


def _waits(agent: AgentInfo) -> int:
    return agent.queue_depth + agent.inflight


def _ask(waiting: dict[str, int], *, as_json: bool) -> None:
    said = ", ".join(f"{count(number, 'message')} for {clean_line(name)}" for name, number in waiting.items())
    if as_json or not sys.stdin.isatty():
        raise Failure(f"Nothing was removed: {said} would become dead letters. To remove anyway, add --yes.")
    if not typer.confirm(f"{said} would become dead letters. Remove anyway?"):
        raise Failure("Nothing was removed.")


async def _count(place: Place, names: list[str]) -> dict[str, int]:
    """The number of messages that wait for each. Fails before anything is done where one is not known."""
    from agent_relay.cli.project.link import observe

    async with observe(place) as relay:
        view = await relay.agents()
        for name in names:
            agent = view.find(name)
            if agent is not None and agent.connected:
                shown = clean_line(agent.name)
                raise Failure(f"{shown} is running, so it cannot be removed. Stop it first: agent-relay stop {shown}")
        return {name: (await relay.count_data(name))["undelivered_to"] for name in names}


async def _remove(place: Place, names: list[str]) -> list[dict[str, Any]]:
    from agent_relay.cli.project.link import observe

    async with observe(place) as relay:
        return [await _remove_one(relay, name) for name in names]


async def _remove_one(relay: RelayClient, name: str) -> dict[str, Any]:
    return {"name": name, "dead_letters": await relay.remove(name)}
