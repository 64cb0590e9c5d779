"""`permissions`: what agents ask to be allowed, and deciding on it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli import open_requests
from agent_relay.cli.options import Json, Socket, StateDir, agent_option, find_place, inherit
from agent_relay.cli.safe_text import clean_line, reveal_line
from agent_relay.cli.screen import Screen

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place

KIND = "permission"
_LOOK_AGAIN_S = 0.5

permissions = typer.Typer(rich_markup_mode=None, add_completion=False, subcommand_metavar="[list|approve|deny]")
AgentName = Annotated[str | None, agent_option("--agent", "Only this agent's.")]
Watch = Annotated[bool, typer.Option("--watch", "-f", help="Go on, and show each as it comes and goes.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="The permission's id, or the beginning of it.", show_default=False)]


@permissions.callback(invoke_without_command=True)
def root(
    context: typer.Context, agent: AgentName = None, watch: Watch = False, as_json: Json = False, socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """Show what agents ask to be allowed, and approve or deny it.

    The first answer counts, wherever it is given: here, over the network, or at the agent's own terminal.
    """
    if context.invoked_subcommand is not None:
        context.obj = (socket, state_dir, as_json, agent)
        return 0
    return _list(find_place(socket, state_dir), agent, watch=watch, as_json=as_json)


@permissions.command("list", epilog="\b\nExamples:\n  agent-relay permissions list\n  agent-relay permissions list -f")
def list_permissions(
    context: typer.Context, agent: AgentName = None, watch: Watch = False, as_json: Json = False, socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """List them, the oldest first; the same as `permissions` alone."""
    socket, state_dir, as_json, outer = inherit(context, socket, state_dir, as_json)
    return _list(find_place(socket, state_dir), agent or outer, watch=watch, as_json=as_json)


@permissions.command("approve", epilog="\b\nExample:\n  agent-relay permissions approve 3f9c2a11")
def approve(
    context: typer.Context, id_: Id, agent: AgentName = None, as_json: Json = False, socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """Allow it, this once."""
    return _decide(context, id_, agent, "approve", None, as_json, socket, state_dir)


@permissions.command("deny", epilog="\b\nExample:\n  agent-relay permissions deny 3f9c2a11 --reason 'Ask me first.'")
def deny(
    context: typer.Context,
    id_: Id,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the agent to read.")] = None,
    agent: AgentName = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Refuse it."""
    return _decide(context, id_, agent, "deny", reason, as_json, socket, state_dir)


def _decide(
    context: typer.Context, id_: str, agent: str | None, command: str, text: str | None, as_json: bool, socket: str | None,
    state_dir: str | None,
) -> int:  # fmt: skip
    socket, state_dir, as_json, outer = inherit(context, socket, state_dir, as_json)
    done = open_requests.answer(find_place(socket, state_dir), KIND, id_, agent or outer, command, text)
    screen = Screen()
    if as_json:
        screen.json({"agent": done.get("agent"), "id": done.get("id"), "command": command})
    else:
        word, style = ("approved", "bold green") if command == "approve" else ("denied", "bold red")
        what = str(done.get("command") or done.get("file") or done.get("description") or "")
        screen.line((word, style), "  ", reveal_line(f"{done.get('agent')}: {what}"))
    return 0


def _list(place: Place, agent: str | None, *, watch: bool, as_json: bool) -> int:
    if watch:
        from agent_relay.cli.link import run

        run(_watch(Screen(), place, agent, as_json=as_json))
        return 0
    return open_requests.list_all(place, KIND, agent, "Nobody asks for a permission.", as_json=as_json)


async def _watch(screen: Screen, place: Place, agent: str | None, *, as_json: bool) -> None:
    """Until the daemon goes, or somebody interrupts it."""
    from agent_relay.cli.link import observe

    seen: dict[tuple[str, str], open_requests.Open] = {}
    async with observe(place) as relay:
        while True:
            found = {(str(each["agent"]), str(each["id"])): each for each in await open_requests.fetch(relay, KIND, agent)}
            new = [each for key, each in found.items() if key not in seen]
            over = [each for key, each in seen.items() if key not in found]
            if as_json:
                for change, requests in (("requested", new), ("over", over)):
                    for each in requests:
                        screen.json_line({"change": change, "permission": each})
            else:
                open_requests.show(screen, new, list(found.values()))
                for each in over:
                    screen.line((clean_line(f"{each['agent']}: {str(each['id'])[:8]} is decided"), "dim"))
            screen.flush()
            seen = found
            await asyncio.sleep(_LOOK_AGAIN_S)
