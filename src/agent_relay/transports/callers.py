"""The agent whose terminal a process runs in, found by its ancestors.

A wrapper tells which program it runs, over the connection that holds the agent's name; its own process the kernel knows. A
process is inside that agent if one of its ancestors is the program or the wrapper, or is at the program's terminal, or was
started with the token that only the program was given. That last sign is the process's own, and can only speak against it.

The daemon keeps this in a file: right after a restart, before the wrappers are back, callers are known all the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from agent_relay.ports.callers import OWNER, VIA_SOCKET, Caller
from agent_relay.private_files import replace_private
from agent_relay.protocol.places import ENV_NAME, ENV_SOCKET, ENV_TOKEN
from agent_relay.transports.process_table import Process, environment_of, is_tmux, look_at

_MOST_ANCESTORS = 256  # deeper than any real tree; a process cannot hide by being deep: then it is nobody's we know of


class KnownProcess(Struct, frozen=True):
    """A process that is an agent's."""

    agent: str
    pid: int
    started: str
    is_wrapper: bool


class Callers:
    """`path`: where seats are kept; `socket`: ours, as it stands in the environment of agents."""

    def __init__(self, path: str, socket: str) -> None:
        self._path = path
        self._socket = socket
        self._seats = _load(path)

    def seat(self, agent: str, wrapper: Process, program_pid: int | None) -> None:
        program = None if program_pid is None else look_at(program_pid)
        found = [KnownProcess(agent, wrapper.pid, wrapper.started, is_wrapper=True)]
        if program is not None:
            found.append(KnownProcess(agent, program.pid, program.started, is_wrapper=False))
            server = look_at(program.parent) if is_tmux(program.parent) else None
            if server is not None:  # nothing runs in our tmux but agents, and what they have it run
                found.append(KnownProcess(agent, server.pid, server.started, is_wrapper=False))
        kept = [seat for seat in self._seats if seat not in found and _is_there(seat)]
        if (seats := [*kept, *found]) != self._seats:
            self._seats = seats
            with contextlib.suppress(OSError):
                replace_private(self._path, msgspec.json.encode(seats))

    def trace(self, caller: Process | None, via: str = VIA_SOCKET) -> Caller:
        """`caller` as it was when it connected."""
        if caller is None or (now := look_at(caller.pid)) is None or now.started != caller.started:
            return Caller(via=via, is_lost=True)
        seats = {(seat.pid, seat.started): seat for seat in self._seats}
        own = seats.get((now.pid, now.started))
        if own is not None and own.is_wrapper:
            return OWNER  # the wrapper itself: it speaks for its agent by the name it holds
        terminals = {
            process.terminal: seat.agent
            for seat in self._seats
            if not seat.is_wrapper and (process := look_at(seat.pid)) is not None and process.started == seat.started
        }
        for process in _ancestry(now):
            seat = seats.get((process.pid, process.started))
            agent = seat.agent if seat is not None else terminals.get(process.terminal) if process.terminal else None
            agent = agent or self._confessed(process)
            if agent is not None:
                return Caller(agent, via)
        return Caller(via=via)

    def _confessed(self, process: Process) -> str | None:
        environment = environment_of(process.pid)
        is_ours = ENV_TOKEN in environment and environment.get(ENV_SOCKET) == self._socket
        return environment.get(ENV_NAME) or None if is_ours else None


def _ancestry(process: Process) -> Iterator[Process]:
    """From the process upwards; what the daemon started, and whatever started the daemon, is the owner's."""
    for _ in range(_MOST_ANCESTORS):
        if process.pid in {os.getpid(), 1}:
            return
        yield process
        parent = look_at(process.parent)
        if parent is None:
            return
        process = parent


def _is_there(seat: KnownProcess) -> bool:
    process = look_at(seat.pid)
    return process is not None and process.started == seat.started


def _load(path: str) -> list[KnownProcess]:
    try:
        with open(path, "rb") as file:
            return [seat for seat in msgspec.json.decode(file.read(), type=list[KnownProcess]) if _is_there(seat)]
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return []
