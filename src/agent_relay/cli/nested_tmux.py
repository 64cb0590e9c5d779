"""An agent's tmux inside the person's own: which keys leave the inner one. The outer one is only asked for its prefix."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

_ANSWER_S = 2.0
_OWN = "C-b"  # of our tmux, which reads no configuration
PLAIN = "Ctrl-b d"
_TWICE = "Ctrl-b Ctrl-b d"  # the outer one takes the first, and hands the second on


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
