"""`demo`: three agents in real terminals play a game over a relay of their own, and the result is checked."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_relay.cli.interrupts import ending_in_order
from agent_relay.cli.options import Json, Socket, StateDir


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Without the pauses that make it readable.")] = False,
    stay: Annotated[bool, typer.Option("--stay", help="At the end, leave agents and dashboard there until Ctrl-C.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Watch three scripted agents play a game over the relay, each wrapped in a terminal of its own.

    Needs no account and leaves nothing behind: a daemon of its own runs in a temporary directory. Meanwhile a dialog
    opens, behind which messages pile up, and the daemon is killed and started again. With tmux the terminals are shown
    side by side; Ctrl-C or q leaves. A browser shows it too, at the address that is printed. Ends by itself within a
    minute, with exit status 0 only if every message arrived exactly once and in order.
    """
    from agent_relay.cli.demo.show import run_demo

    with ending_in_order():
        return run_demo(socket, state_dir, fast=fast, stay=stay, json=as_json)
