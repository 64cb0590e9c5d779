"""`down`: asks the daemon to stop, waits until it has, and insists where it does not."""

from __future__ import annotations

import os
import pwd
import signal
from typing import Annotated

import typer

from agent_relay.cli.failures import NOT_RUNNING, Failure
from agent_relay.cli.options import Json, Socket, StateDir, find_place
from agent_relay.cli.output.formats import join_names
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen
from agent_relay.sdk.locate import Place

_KNOCK_S = 2.0
_INSIST_S = 1.0
_KILL_S = 5.0


def down(
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0, help="How long to wait for a clean stop.")
    ] = 5.0,
    stop_all: Annotated[bool, typer.Option("--all", "-a", help="Stop its agents first.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Stop the project's daemon. Messages it accepted stay stored.

    Wrapped agents keep running and reconnect to the next daemon; --all stops them first.
    """
    from agent_relay.cli.project.daemon_process import remove_leftovers
    from agent_relay.cli.wrapper.wrappers import find_wrappers, stop_wrappers

    place = find_place(socket, state_dir)
    screen = Screen()
    pid = find_daemon(place)
    ended = stop_wrappers(place, has_daemon=pid is not None) if stop_all else []
    how = stop(pid, timeout) if pid is not None else None
    removed = remove_leftovers(place.socket, place.state_dir)  # a killed one could not tidy up itself
    left = [wrapper.name for wrapper in find_wrappers(place.state_dir)]
    if as_json:
        fields = {"stopped": pid is not None, "pid": pid, "how": how, "removed": removed}
        screen.json(fields | {"stopped_agents": ended, "still_running": left})
        return 0 if pid is not None or ended else NOT_RUNNING
    if ended:
        screen.line(("stopped", "bold"), f"  {_join(ended)}")
    if pid is not None:
        screen.line(("down", "bold"), f"  pid {pid} {how}")
    else:
        screen.line("not running", " (removed what a killed daemon left behind)" if removed else "")
    if left:
        goes_on = f"{_join(left)} {'is' if len(left) == 1 else 'are'} still running"
        screen.line((goes_on, "yellow"), " and will reconnect to the next daemon. To stop agents too: agent-relay down --all")
    return 0 if pid is not None or ended else NOT_RUNNING


def _join(names: list[str]) -> str:
    return join_names([clean_line(name) for name in names])


def find_daemon(place: Place) -> int | None:
    """The pid of the daemon at the socket, or of one that holds the state directory without answering."""
    from agent_relay.cli.project.daemon_process import Answer, knock, locked_pid

    found = knock(place.socket, _KNOCK_S)
    holder = locked_pid(place.state_dir)
    match found.answer:
        case Answer.RELAY:
            pid = found.pid or holder
            if pid is None:
                raise Failure(f"The daemon at {place.socket} does not report its process id; stop it where it was started.")
            return pid
        case Answer.NOBODY:
            return holder  # starting, or on its way out
        case Answer.SILENCE if holder is not None and found.pid in {None, holder}:
            return holder  # hangs: it is ours by its lock
        case _:
            raise Failure(found.why or f"Something listens at {place.socket}, but it is not your daemon; nothing was stopped.")


def stop(pid: int, timeout_s: float) -> str:
    """The way it ended: by itself, when asked twice, or killed."""
    from agent_relay.cli.project.daemon_process import Process

    try:
        process = Process(pid)
    except ProcessLookupError:
        return "had just stopped"
    try:
        process.send(signal.SIGTERM)
        if process.wait(timeout_s):
            return "stopped"
        process.send(signal.SIGTERM)
        if process.wait(_INSIST_S):
            return f"did not stop within {timeout_s:g} s and was told to stop at once"
        process.send(signal.SIGKILL)
        if process.wait(_KILL_S):
            return f"did not stop within {timeout_s:g} s and was killed"
    except PermissionError:
        raise Failure(f"The daemon (pid {pid}) belongs to {_owner_of(pid)}; only that user can stop it.") from None
    finally:
        process.close()
    raise Failure(f"The daemon (pid {pid}) could not be stopped, not even by killing it.")


def _owner_of(pid: int) -> str:
    try:
        return pwd.getpwuid(os.stat(f"/proc/{pid}").st_uid).pw_name
    except (OSError, KeyError):
        return "another user"
