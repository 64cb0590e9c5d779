"""The wrappers that run in a project, whether there is a daemon or not: seen by the locks they hold, and stopped."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from typing import NamedTuple

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.places import SEATS_FILE, TEAM_FOLDER
from agent_relay.sdk.locate import Place

_STOP_S = 30.0  # a program's grace, its wrapper's goodbye; a busy machine
_POLL_S = 0.05
_ENDED = {ErrorCode.AGENT_NOT_FOUND, ErrorCode.AGENT_OFFLINE}  # just before it could be asked


class RunningWrapper(NamedTuple):
    name: str  # of its agent
    pid: int | None = None  # None: it was never connected
    started: str = ""  # tells the process from a later one with the same number


def find_wrappers(state_dir: str) -> list[RunningWrapper]:
    from agent_relay.terminal.recordings.screen_log import is_being_written

    folder = os.path.join(state_dir, TEAM_FOLDER)
    try:
        names = sorted(os.listdir(folder), key=str.lower)
    except OSError:
        return []
    seats = _read_seats(state_dir)
    return [seats.get(name, RunningWrapper(name)) for name in names if is_being_written(os.path.join(folder, name))]


def _read_seats(state_dir: str) -> dict[str, RunningWrapper]:
    """The process of each agent's wrapper, as the daemon wrote down."""
    try:
        with open(os.path.join(state_dir, SEATS_FILE), encoding="utf-8") as file:
            seats = [seat for seat in json.load(file) if seat["is_wrapper"]]
        return {str(seat["agent"]): RunningWrapper(str(seat["agent"]), int(seat["pid"]), str(seat["started"])) for seat in seats}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def stop_wrappers(place: Place, *, has_daemon: bool) -> list[str]:
    """Asks every agent that the relay runs to end, and returns their names when they have. Raises Failure where one goes on."""
    from agent_relay.cli.project.link import run

    return run(_stop(place, has_daemon))


async def _stop(place: Place, has_daemon: bool) -> list[str]:
    found = find_wrappers(place.state_dir)
    reached = await _ask(place) if has_daemon else set()
    _signal([wrapper for wrapper in found if wrapper.name not in reached])
    deadline = time.monotonic() + _STOP_S
    while (left := find_wrappers(place.state_dir)) and time.monotonic() < deadline:  # noqa: ASYNC110 - locks of files
        await asyncio.sleep(_POLL_S)
    if left:
        said = ", ".join(f"{clean_line(wrapper.name)} (pid {wrapper.pid or 'not known'})" for wrapper in left)
        raise Failure(
            f"The daemon was not stopped, because these agents did not end within {_STOP_S:g} s: {said}. See what one waits for "
            "with `agent-relay attach NAME`, or end its process with `kill PID`; then run this again."
        )
    return [wrapper.name for wrapper in found]


async def _ask(place: Place) -> set[str]:
    """Through the daemon, as `agent-relay stop` does; only those of this host."""
    from agent_relay.cli.project.cluster_file import read_cluster
    from agent_relay.cli.project.link import observe

    cluster = read_cluster(place.state_dir)
    here = "" if cluster is None else cluster.host
    async with observe(place) as relay:
        running = [agent for agent in (await relay.agents()).agents if agent.connected and agent.raw.get("takes_control")]
        found = [agent for agent in running if agent.host == here]
        for agent in found:
            try:
                await relay.control(agent.name, "stop")
            except RelayError as error:
                if error.code not in _ENDED:
                    raise
        return {agent.name for agent in found}


def _signal(wrappers: list[RunningWrapper]) -> None:
    from agent_relay.daemon.processes import send_signal

    for wrapper in wrappers:
        if wrapper.pid is not None:
            send_signal(wrapper.pid, wrapper.started, signal.SIGTERM)
