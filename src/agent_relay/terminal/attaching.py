"""A person's terminal given to an agent's session in tmux, from another process than the one that wraps the agent."""

from __future__ import annotations

import os
import subprocess

from agent_relay.terminal.backends.tmux_program import client_environment
from agent_relay.terminal.backends.tmux_server import TmuxServer, session_name

_FALLBACK_TERMS = ("xterm-256color", "screen")  # for a terminal whose description this machine does not have


def is_running(server: TmuxServer, agent: str) -> bool:
    """Whether its program runs; a session whose program has ended is on its way out."""
    command = [*server.base, "list-panes", "-t", f"={session_name(agent)}:", "-F", "#{pane_dead}#{@agent-relay-ended}"]
    done = subprocess.run(command, capture_output=True, check=False, env=client_environment(os.environ))  # noqa: S603
    return done.returncode == 0 and done.stdout.strip() == b"0"


def attach(server: TmuxServer, agent: str, *, read_only: bool = False) -> str:
    """Returns when the person detaches or the session ends; what tmux complained about, or nothing."""
    environment = client_environment(os.environ)
    command = [*server.base, "attach-session", *(["-r"] if read_only else []), "-E", "-t", f"={session_name(agent)}"]
    said = ""
    for term in (environment.get("TERM") or _FALLBACK_TERMS[0], *_FALLBACK_TERMS):
        done = subprocess.run(command, stderr=subprocess.PIPE, check=False, env={**environment, "TERM": term})  # noqa: S603
        said = done.stderr.decode("utf-8", "replace").strip()
        if done.returncode == 0:
            return ""
        if "terminal" not in said:
            break
    return said
