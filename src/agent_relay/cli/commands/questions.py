"""`questions`: what agents ask people, and answering."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.options import Json, Socket, StateDir, agent_option, find_place, inherit
from agent_relay.cli.output.safe_text import reveal_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.project import open_requests
from agent_relay.protocol.requests import QUESTION

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place

questions = typer.Typer(rich_markup_mode=None, add_completion=False, subcommand_metavar="[list|answer]")
AgentName = Annotated[str | None, agent_option("--agent", "Only this agent's.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Keep showing questions as they come and go, until Ctrl-C.")]


@questions.callback(invoke_without_command=True)
def root(
    context: typer.Context, agent: AgentName = None, follow: Follow = False, as_json: Json = False, socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """Show agents' questions to people, and answer them."""
    if context.invoked_subcommand is not None:
        context.obj = (socket, state_dir, as_json, agent)
        return 0
    return _list(find_place(socket, state_dir), agent, follow=follow, as_json=as_json)


@questions.command("list", epilog="\b\nExamples:\n  agent-relay questions list\n  agent-relay questions list -f")
def list_questions(
    context: typer.Context, agent: AgentName = None, follow: Follow = False, as_json: Json = False, socket: Socket = None,
    state_dir: StateDir = None,
) -> int:  # fmt: skip
    """List open questions, oldest first; the same as `questions` alone."""
    socket, state_dir, as_json, outer = inherit(context, socket, state_dir, as_json)
    return _list(find_place(socket, state_dir), agent or outer, follow=follow, as_json=as_json)


@questions.command("answer", epilog="\b\nExample:\n  agent-relay questions answer 3f9c2a11 blue")
def answer(
    context: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The question's id, or its first characters.", show_default=False)],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="One of its options, or your own words.", show_default=False)],
    agent: AgentName = None,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Answer a question."""
    if not text:
        raise typer.BadParameter("give an answer.", param_hint="TEXT")
    socket, state_dir, as_json, outer = inherit(context, socket, state_dir, as_json)
    done = open_requests.answer(find_place(socket, state_dir), QUESTION, id_, agent or outer, "answer", text)
    screen = Screen()
    if as_json:
        screen.json({"agent": done.agent, "id": done.request.id, "command": "answer"})
    else:
        screen.line(("answered", "bold green"), "  ", reveal_line(open_requests.summarize(done)))
    return 0


def _list(place: Place, agent: str | None, *, follow: bool, as_json: bool) -> int:
    if follow:
        return open_requests.follow(place, QUESTION, agent, as_json=as_json)
    return open_requests.list_all(place, QUESTION, agent, "There are no open questions.", as_json=as_json)
