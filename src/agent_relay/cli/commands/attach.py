"""`attach`: a wrapped agent in the person's own terminal."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import AgentName, Socket, StateDir, find_place

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place

_READ_S = 3.0  # for a sentence to be read


def attach(
    name: AgentName,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Show a wrapped agent in this terminal and type to it. Press Ctrl-b d to detach; it keeps running.

    Inside your own tmux it is usually Ctrl-b Ctrl-b d. Only agents that run in tmux can be attached to.
    A wrapper that has died is started again.
    """
    from agent_relay.cli.wrapper.wrapped_agent import find_running, give_terminal
    from agent_relay.cli.wrapper.wrappers import find_wrappers

    place = find_place(socket, state_dir)
    agent, server = find_running(place, name)
    if server is None and all(wrapper.name != agent for wrapper in find_wrappers(place.state_dir)):
        raise Failure(
            f"{agent} is not running under the relay, so there is no terminal to attach to. Its state: agent-relay agents --all"
        )
    if server is None:
        raise Failure(f"{agent} does not run in tmux, so you cannot attach to it. See its output with: agent-relay logs {agent}")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Failure("attach needs a terminal; run it in one.")
    _ensure_wrapped(place, agent)
    give_terminal(server, agent, read_only=False)
    return 0


def _ensure_wrapped(place: Place, agent: str) -> None:
    """A wrapper that died is started again; where that fails, the person sees why before the agent fills the screen."""
    from agent_relay.cli.commands.up import start
    from agent_relay.cli.output.safe_text import clean_line
    from agent_relay.cli.wrapper.revival import revive
    from agent_relay.cli.wrapper.wrappers import find_wrappers

    if any(wrapper.name == agent for wrapper in find_wrappers(place.state_dir)):
        return
    try:
        start(place, {})
        revive(place, agent)
    except Failure as failure:
        sys.stderr.write(f"agent-relay: {agent} has no wrapper, so it gets no messages. {clean_line(failure.sentence)}\n")
        time.sleep(_READ_S)
