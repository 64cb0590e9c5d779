"""`dead-letters`: what could not be delivered in time, and sending it once more."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place, inherit
from agent_relay.cli.output.formats import count, format_time, now_ms
from agent_relay.cli.output.message_view import show_heading, show_text
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.protocol.short_ids import read_short_id, short_id, stands_for
from agent_relay.sdk.locate import Place

_MOST = 1000

dead_letters = typer.Typer(rich_markup_mode=None, add_completion=False, subcommand_metavar="[list|retry]")
Limit = Annotated[int, typer.Option("--limit", min=1, max=_MOST, metavar="N", help="Show at most this many.")]


@dead_letters.callback(invoke_without_command=True)
def root(
    context: typer.Context, limit: Limit = 50, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:
    """Show messages that could not be delivered in time, or send them again."""
    if context.invoked_subcommand is not None:
        context.obj = (socket, state_dir, as_json)
        return 0
    return _list(limit, find_place(socket, state_dir), as_json=as_json)


@dead_letters.command("list", epilog="\b\nExample:\n  agent-relay dead-letters list")
def list_letters(
    context: typer.Context, limit: Limit = 50, as_json: Json = False, socket: Socket = None, state_dir: StateDir = None
) -> int:
    """List dead letters; the same as `dead-letters` alone."""
    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    return _list(limit, find_place(socket, state_dir), as_json=as_json)


@dead_letters.command(
    "retry",
    epilog="\b\nExamples:\n  agent-relay dead-letters retry 3f9c2a11\n  agent-relay dead-letters retry --all",
)
def retry(
    context: typer.Context,
    message_id: Annotated[str | None, typer.Argument(metavar="ID", help="The message's id.", show_default=False)] = None,
    every: Annotated[bool, typer.Option("--all", help="Retry every dead letter.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Send one dead letter, or all, again: each becomes a new message with a new lifetime."""
    from agent_relay.cli.project.link import run

    if every == (message_id is not None):
        raise typer.BadParameter("give a message id, or --all.", param_hint="ID")
    socket, state_dir, as_json, _ = inherit(context, socket, state_dir, as_json)
    place = find_place(socket, state_dir)
    retried, refused = run(_retry(place, message_id))
    screen = Screen()
    if as_json:
        screen.json({"retried": retried, "refused": refused})
    else:
        for one in retried:
            screen.line(("sent again", "bold green"), "  ", short_id(one["message_id"]), "  as ", short_id(one["new_message_id"]))
        if not retried and not refused:
            screen.line(("There are no dead letters.", "dim"))
    if refused:
        raise Failure(f"{count(len(refused), 'dead letter')} could not be sent again: {clean_line(refused[0]['message'])}")
    return 0


def _list(limit: int, place: Place, *, as_json: bool) -> int:
    from agent_relay.cli.project.link import observe, run

    async def ask() -> list[dict[str, Any]]:
        async with observe(place) as relay:
            return (await relay.dead_letters(limit)).messages

    letters = run(ask())
    screen = Screen()
    if as_json:
        screen.json({"dead_letters": letters, "next_cursor": None})
        return 0
    for letter in letters:
        dead = letter.get("dead") or {}
        at = format_time(int(dead.get("at") or 0), now_ms())
        show_heading(screen, letter, "  ", (clean_line(f"{dead.get('code')} for {dead.get('to')} at {at}"), "red"))
        show_text(screen, letter, whole=False)
    if not letters:
        screen.line(("There are no dead letters.", "dim"))
    return 0


async def _retry(place: Place, message_id: str | None) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    from agent_relay.cli.project.link import observe
    from agent_relay.protocol.errors import RelayError
    from agent_relay.sdk.errors import ConnectionLost

    retried: list[dict[str, str]] = []
    refused: list[dict[str, str]] = []
    async with observe(place) as relay:
        if message_id is not None:
            known = [str(letter["message_id"]) for letter in (await relay.dead_letters(_MOST)).messages]
            message_id = next((id_ for id_ in known if stands_for(read_short_id(message_id) or "-", id_)), message_id)
            return [{"message_id": message_id, "new_message_id": await relay.retry_dead_letter(message_id)}], []
        letters = await relay.dead_letters(_MOST)
        for id_ in dict.fromkeys(str(letter["message_id"]) for letter in letters.messages):
            try:
                retried.append({"message_id": id_, "new_message_id": await relay.retry_dead_letter(id_)})
            except ConnectionLost:
                raise
            except RelayError as error:
                refused.append({"message_id": id_, "code": error.code.value, "message": error.message})
    return retried, refused
