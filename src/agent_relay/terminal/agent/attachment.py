"""A person's terminal given to an agent's session in tmux, from another process than the one that wraps the agent."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

from agent_relay.terminal.backends.tmux_launch import ENDED_OPTION, GATE_OPTION
from agent_relay.terminal.backends.tmux_program import client_environment
from agent_relay.terminal.backends.tmux_server import TmuxServer, session_name

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LOOK_UP_S = 1.0  # a signal that comes right before we begin to wait is heard no later than this
_NOTE_MS = 8_000
_NOTES_SINCE = (3, 2)  # `display-message -d`
_FALLBACK_TERMS = ("xterm-256color", "screen")  # for a terminal whose description this machine does not have


def is_running(server: TmuxServer, agent: str) -> bool:
    return bool(running_session(server, agent))


def running_session(server: TmuxServer, agent: str) -> str:
    """A mark of this start of its program, unlike every other; empty where none runs: one that has ended is on its way out."""
    shown = f"#{{pane_dead}}#{{{ENDED_OPTION}}} #{{{GATE_OPTION}}}"
    command = [*server.base, "list-panes", "-t", f"={session_name(agent)}:", "-F", shown]
    done = subprocess.run(command, capture_output=True, check=False, env=client_environment(os.environ))  # noqa: S603
    state, _, session = done.stdout.decode("ascii", "replace").strip().partition(" ")
    return session if done.returncode == 0 and state == "0" else ""


def running_agents(server: TmuxServer, agents: Sequence[str]) -> list[str]:
    """Those of these agents whose program runs there."""
    command = [*server.base, "list-panes", "-a", "-F", f"#{{session_name}} #{{pane_dead}}#{{{ENDED_OPTION}}}"]
    done = subprocess.run(command, capture_output=True, check=False, env=client_environment(os.environ))  # noqa: S603
    running = {line.rpartition(" ")[0] for line in done.stdout.decode("ascii", "replace").splitlines() if line.endswith(" 0")}
    return [agent for agent in agents if session_name(agent) in running]


def attach(server: TmuxServer, agent: str, *, read_only: bool = False, note: str = "") -> str:
    """Returns when the person detaches or the session ends; what tmux complained about, or nothing. The `note` is shown over the
    last line for a while."""
    environment = client_environment(os.environ)
    command = [*server.base, "attach-session", *(["-r"] if read_only else []), "-E", "-t", f"={session_name(agent)}"]
    if note and server.tmux.version >= _NOTES_SINCE:
        command += [";", "display-message", "-d", str(_NOTE_MS), note.replace("#", "##")]
    said = ""
    for term in (environment.get("TERM") or _FALLBACK_TERMS[0], *_FALLBACK_TERMS):
        code, said = _run_client(command, {**environment, "TERM": term})
        if code == 0:
            return ""
        if "terminal" not in said:
            break
    return said


def _run_client(command: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Its exit code and what it complained about. A signal to us is passed on as one that it puts the terminal back for;
    if we just died of it, it would go on reading the person's keys."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment)  # noqa: S603
    before = {number: signal.signal(number, lambda *_: process.terminate()) for number in _ENDING}
    said = b""
    try:
        while process.returncode is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                _, said = process.communicate(timeout=_LOOK_UP_S)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return process.returncode, said.decode("utf-8", "replace").strip()
