"""`demo`: three agents in real terminals play a game over a relay of their own, and the result is checked."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_relay.cli.interrupts import ending_in_order
from agent_relay.cli.options import Json, Socket, StateDir


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Skip the pauses that make it readable.")] = False,
    stay: Annotated[bool, typer.Option("--stay", help="Keep agents and dashboard open at the end, until Ctrl-C.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Watch three scripted agents play a game over the relay, each wrapped in its own terminal.

    Needs no account and leaves nothing behind: it runs its own daemon in a temporary directory. During the game a dialog
    opens and messages pile up behind it, and the daemon is killed and restarted. With tmux, the terminals are shown side
    by side; Ctrl-C or q quits. You can also watch in a browser, at the printed address. Ends by itself within a minute;
    the exit status is 0 only if every message arrived exactly once and in order.
    """
    from agent_relay.cli.demo.show import run_demo

    with ending_in_order():
        return run_demo(socket, state_dir, fast=fast, stay=stay, json=as_json)
