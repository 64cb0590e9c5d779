"""`permissions`: what agents ask to be allowed, and deciding on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.options import Json, Socket, StateDir, agent_option, find_place, inherit
from agent_relay.cli.output.safe_text import reveal_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.project import open_requests
from agent_relay.protocol.requests import PERMISSION

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place

permissions = typer.Typer(rich_markup_mode=None, add_completion=False, subcommand_metavar="[list|approve|deny]")
AgentName = Annotated[str | None, agent_option("--agent", "Only this agent's.")]
Watch = Annotated[
    bool, typer.Option("--follow", "--watch", "-f", help="Keep showing requests as they come and go, until Ctrl-C.")
]
Id = Annotated[str, typer.Argument(metavar="ID", help="The request's id, or its first characters.", show_default=False)]


@permissions.callback(invoke_without_command=True)
def root(
    context: typer.Context, agent: AgentName = None, watch: Watch = False, as_json: Json = False, socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """Show agents' permission requests, and approve or deny them.

    The first answer counts, whether given here, over HTTP, or at the agent's own terminal.
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
    """List open requests, oldest first; the same as `permissions` alone."""
    socket, state_dir, as_json, outer = inherit(context, socket, state_dir, as_json)
    return _list(find_place(socket, state_dir), agent or outer, watch=watch, as_json=as_json)


@permissions.command("approve", epilog="\b\nExample:\n  agent-relay permissions approve 3f9c2a11")
def approve(
    context: typer.Context, id_: Id, agent: AgentName = None, as_json: Json = False, socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """Approve a request, this once."""
    return _decide(context, id_, agent, "approve", None, as_json, socket, state_dir)


@permissions.command("deny", epilog="\b\nExample:\n  agent-relay permissions deny 3f9c2a11 --reason 'Ask me first.'")
def deny(
    context: typer.Context,
    id_: Id,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="The reason, shown to the agent.")] = None,
    agent: AgentName = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Deny a request."""
    return _decide(context, id_, agent, "deny", reason, as_json, socket, state_dir)


def _decide(
    context: typer.Context, id_: str, agent: str | None, command: str, text: str | None, as_json: bool, socket: str | None,
    state_dir: str | None,
) -> int:  # fmt: skip
    socket, state_dir, as_json, outer = inherit(context, socket, state_dir, as_json)
    done = open_requests.answer(find_place(socket, state_dir), PERMISSION, id_, agent or outer, command, text)
    screen = Screen()
    if as_json:
        screen.json({"agent": done.agent, "id": done.request.id, "command": command})
    else:
        word, style = ("approved", "bold green") if command == "approve" else ("denied", "bold red")
        screen.line((word, style), "  ", reveal_line(open_requests.summarize(done)))
    return 0


def _list(place: Place, agent: str | None, *, watch: bool, as_json: bool) -> int:
    if watch:
        return open_requests.follow(place, PERMISSION, agent, as_json=as_json)
    return open_requests.list_all(place, PERMISSION, agent, "There are no open permission requests.", as_json=as_json)
