"""A wrapped agent as other commands find it: its files, and the tmux session it may run in."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent_relay.cli.failures import Failure
from agent_relay.cli.formats import join_names
from agent_relay.cli.safe_text import clean_line

if TYPE_CHECKING:
    from agent_relay.cli.screen import Screen
    from agent_relay.sdk.locate import Place
    from agent_relay.terminal.backends.tmux_server import TmuxServer


_MOST_NAMED = 10  # what fits into an error


def find_running(place: Place, name: str) -> tuple[str, TmuxServer | None]:
    """The agent's name as its files spell it, and the tmux it runs in, if it does. Raises Failure where nobody has that name."""
    from agent_relay.cli.names_on_disk import read_names
    from agent_relay.protocol.names import check_agent_name, fold_name
    from agent_relay.terminal.agent.attachment import is_running
    from agent_relay.terminal.agent.launch import TEAM_FOLDER, WrapFailed, pick_backend, tmux_server

    check_agent_name(name)
    folder = os.path.join(place.state_dir, TEAM_FOLDER)
    wrapped = os.listdir(folder) if os.path.isdir(folder) else []
    known = read_names(place.state_dir)
    agent = next((entry for entry in (*wrapped, *known) if fold_name(entry) == fold_name(name)), None)
    try:
        server = tmux_server(pick_backend("tmux"), place.state_dir, place.project_id)
    except WrapFailed:
        server = None
    if agent is None:
        raise _unknown(name, known)
    return agent, server if server is not None and is_running(server, agent) else None


def _unknown(name: str, known: list[str]) -> Failure:
    from agent_relay.protocol.errors import ErrorCode
    from agent_relay.protocol.names import did_you_mean

    near = did_you_mean(name, known)
    if not known:
        hint = "No agent has connected to this project yet; `agent-relay projects` lists your projects."
    elif near:
        hint = f"Did you mean {join_names(near, 'or')}?"
    elif len(known) > _MOST_NAMED:
        hint = f"There are {len(known)} others; `agent-relay agents --all` lists them."
    else:
        hint = f"The project's agents: {', '.join(known)}."
    details = {"did_you_mean": near} if near else {}
    return Failure(f"There is no agent {clean_line(name)}. {hint}", code=ErrorCode.AGENT_NOT_FOUND.value, details=details)


def show_nesting(screen: Screen, server: TmuxServer, agent: str) -> str:
    """Inside the person's own tmux: says which keys leave the agent's, here and (what is returned) where they then look."""
    from agent_relay.cli.nested_tmux import find_detach_keys, is_nested, make_note

    if not is_nested():
        return ""
    keys = find_detach_keys(server.tmux.path)
    screen.line((make_note(clean_line(agent), keys), "yellow"))
    screen.flush()
    return f"To leave {agent} running: {keys}"


def give_terminal(server: TmuxServer, agent: str, *, read_only: bool) -> None:
    from agent_relay.cli.screen import Screen
    from agent_relay.terminal.agent import attachment as attaching

    said = attaching.attach(server, agent, read_only=read_only, note=show_nesting(Screen(), server, agent))
    if said:
        raise Failure(clean_line(f"tmux: {said}"))
