"""`restart`: a new daemon under the same agents, started as the one before it, with what is given now on top."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from agent_relay.cli.commands.up import prepare, read_settings, show_up, start, with_settings
from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place


@with_settings
def restart(
    no_http: Annotated[bool, typer.Option("--no-http", help="Start without the HTTP server.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait for a clean stop.")
    ] = 5.0,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
    **settings: str | bool | None,
) -> int:
    """Restart the project's daemon with its previous flags, plus those given now.

    Agents keep running and reconnect; messages sent meanwhile arrive. If no daemon is running, one is started. To drop a flag:
    agent-relay down, then up.
    """
    from agent_relay.cli.commands.down import find_daemon, stop
    from agent_relay.cli.project.daemon_process import remove_leftovers
    from agent_relay.daemon.project_record import ProjectRecord, read_record

    place = find_place(socket, state_dir)
    record = read_record(place.state_dir) or ProjectRecord()
    for name, value in record.variables.items():
        os.environ.setdefault(name, value)
    chosen = read_settings(settings, no_http=no_http)
    flags = record.flags | chosen
    prepare(place, flags)  # what is wrong with them is told before anything is stopped
    pid = find_daemon(place)
    if pid is not None:
        stop(pid, timeout)
    remove_leftovers(place.socket, place.state_dir)
    try:
        pid, _ = start(place, flags)
    except Failure as error:
        raise _explain(error, was_running=pid is not None, has_new=bool(chosen)) from None
    show_up(place, pid, flags, as_json=as_json, word="restarted")
    return 0


def _explain(error: Failure, *, was_running: bool, has_new: bool) -> Failure:
    stopped = "The daemon was stopped, and the new one" if was_running else "The daemon"
    again = (
        "`agent-relay restart` starts it with the flags it had before" if has_new else "Fix that, then run: agent-relay restart"
    )
    return Failure(
        f"{stopped} could not start: {error.sentence} {again}. Running agents keep trying to reconnect, and no accepted "
        "message is lost.", error.status,
    )  # fmt: skip
