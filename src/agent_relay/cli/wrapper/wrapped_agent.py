"""A wrapped agent as other commands find it: its files, and the tmux session it may run in."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_relay.cli.failures import Failure
from agent_relay.cli.output.formats import join_names
from agent_relay.cli.output.safe_text import clean_line

if TYPE_CHECKING:
    from agent_relay.cli.output.screen import Screen
    from agent_relay.sdk.locate import Place
    from agent_relay.terminal.backends.tmux_server import TmuxServer

_MOST_NAMED = 10  # what fits into an error
_ANSWER_S = 2.0
_OWN = "C-b"  # of our tmux, which reads no configuration
PLAIN = "Ctrl-b d"
_TWICE = "Ctrl-b Ctrl-b d"  # the outer one takes the first, and hands the second on


class OnOtherHost(Failure):
    """Its terminal and files are on that host of the cluster."""

    def __init__(self, agent: str, host: str) -> None:
        super().__init__(
            f"{clean_line(agent)} runs on host {clean_line(host)}; run this there, or see its terminal with "
            f"`agent-relay logs {clean_line(agent)}` or on the page: agent-relay open"
        )
        self.agent = agent


def find_running(place: Place, name: str) -> tuple[str, TmuxServer | None]:
    """The agent's name as its files spell it, and the tmux it runs in, if it does. Raises OnOtherHost, and Failure where nobody
    has that name."""
    from agent_relay.cli.project.agents_file import read_names
    from agent_relay.protocol.names import check_agent_name, fold_name
    from agent_relay.terminal.agent.attachment import is_running
    from agent_relay.terminal.agent.launch import TEAM_FOLDER, WrapFailed, pick_backend, tmux_server

    check_agent_name(name)
    folder = os.path.join(place.state_dir, TEAM_FOLDER)
    wrapped = os.listdir(folder) if os.path.isdir(folder) else []
    if all(fold_name(entry) != fold_name(name) for entry in wrapped):
        _check_host(place, name)
    known = read_names(place.state_dir)
    agent = next((entry for entry in (*wrapped, *known) if fold_name(entry) == fold_name(name)), None)
    try:
        server = tmux_server(pick_backend("tmux"), place.state_dir, place.project_id)
    except WrapFailed:
        server = None
    if agent is None:
        raise _unknown(name, known)
    return agent, server if server is not None and is_running(server, agent) else None


def _check_host(place: Place, name: str) -> None:
    """Raises OnOtherHost."""
    from agent_relay.cli.project.cluster_file import read_cluster
    from agent_relay.cli.project.link import ask_agents, run
    from agent_relay.protocol.errors import RelayError

    cluster = read_cluster(place.state_dir)
    if cluster is None:
        return
    try:
        agent = run(ask_agents(place)).find(name)
    except RelayError:
        return  # cut off: what is here is all there is
    if agent is not None and agent.host and agent.host != cluster.host:
        raise OnOtherHost(agent.name, agent.host)


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


# --- its tmux inside the person's own: the outer one is only asked for its prefix -------------------------------------


def show_nesting(screen: Screen, server: TmuxServer, agent: str) -> str:
    """Inside the person's own tmux: says which keys leave the agent's, here and (what is returned) where they then look."""
    if not is_nested():
        return ""
    keys = find_detach_keys(server.tmux.path)
    screen.line((make_note(clean_line(agent), keys), "yellow"))
    screen.flush()
    return f"To leave {agent} running: {keys}"


def is_nested(environ: Mapping[str, str] = os.environ) -> bool:
    return bool(environ.get("TMUX"))


def find_detach_keys(tmux_path: str, environ: Mapping[str, str] = os.environ) -> str:
    if not is_nested(environ):
        return PLAIN
    prefix = _ask_prefix(tmux_path, environ["TMUX"].partition(",")[0])
    if prefix == _OWN:
        return _TWICE
    return PLAIN if prefix else f"{_TWICE} (or {PLAIN}, if your own tmux has another prefix)"


def make_note(agent: str, keys: str) -> str:
    return (
        f"{agent} runs in its own tmux, inside yours. To leave {agent} running: {keys}. To run an agent directly in your pane: "
        "--backend pty"
    )


def _ask_prefix(tmux_path: str, socket: str) -> str:
    """Nothing where it does not say, or is not ours: a server can have its clients run commands."""
    try:
        if os.stat(socket).st_uid != os.geteuid():
            return ""
        command = [tmux_path, "-S", socket, "show-options", "-gv", "prefix"]
        said = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWER_S, check=False)  # noqa: S603
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.decode("utf-8", "replace").strip() if said.returncode == 0 else ""


def give_terminal(server: TmuxServer, agent: str, *, read_only: bool) -> None:
    from agent_relay.cli.output.screen import Screen
    from agent_relay.terminal.agent import attachment as attaching

    said = attaching.attach(server, agent, read_only=read_only, note=show_nesting(Screen(), server, agent))
    if said:
        raise Failure(clean_line(f"tmux: {said}"))
