"""`result`: what came of a task that an agent was asked to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from agent_relay.cli.failures import USAGE, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.wrapper.outbox_commands import ask_through, own_outbox
from agent_relay.protocol.short_ids import short_id

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place


def result(
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's id, as it stands in the task.", show_default=False)],
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="The result; - reads it from standard input.")] = None,
    error: Annotated[
        str | None, typer.Option("--error", metavar="TEXT", help="Why there is no result, instead of a result.")
    ] = None,
    json_value: Annotated[bool, typer.Option("--json-value", help="Check that the result is JSON before it is sent.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Give the result of a task to whoever asked for it; only the first one counts.

    Inside a wrapped agent it is that agent's result, elsewhere yours.
    """
    from agent_relay.cli.commands.send import read_body

    if (value is None) == (error is None):
        raise Failure("Give either the result or --error: `agent-relay result TASK VALUE`, or `--error TEXT`.", USAGE)
    body = read_body(value if value is not None else error or "")
    if json_value and error is None:
        _check_json(body)
    place = find_place(socket, state_dir)
    outbox = own_outbox(None, place.socket)
    if outbox is not None:
        kind = "error" if error is not None else None
        message_id = str(ask_through(outbox, kind="result", thread=task, type=kind, body=body)["message_id"])
    else:
        message_id = _send(place, task, body, is_error=error is not None)
    screen = Screen()
    if as_json:
        screen.json({"task": task, "message_id": message_id, "stage": "stored"})
    else:
        screen.line(("stored", "bold green"), f"  {short_id(message_id)}  the result of {clean_line(task)}")
    return 0


def _check_json(text: str) -> None:
    import msgspec

    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Failure(clean_line(f"The result is not JSON: {error}. Nothing was sent."), USAGE) from None


def _send(place: Place, task: str, body: str, *, is_error: bool) -> str:
    from agent_relay.cli.project.link import connect_as, run

    async def do() -> Any:
        relay = await connect_as(place, None, max_inflight=1)
        try:
            return (await relay.result(task, body, body if is_error else None)).message_id
        finally:
            await relay.close(2.0)

    return str(run(do()))
