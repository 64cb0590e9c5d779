"""`demo`: a short conversation, with a crash in the middle, that checks itself."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_relay.cli.options import Json, Socket, StateDir


def demo(
    fast: Annotated[bool, typer.Option("--fast", help="Without the pauses that make it readable.")] = False,
    as_json: Json = False,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Watch agents talk over a relay of their own, while its daemon is killed and comes back.

    Needs nothing and leaves nothing behind: the daemon runs in a temporary directory. Ends by itself after some ten
    seconds, with a table of what was sent and what arrived, and exit status 0 only if nothing was lost, doubled or
    out of order.
    """
    from agent_relay.cli.demo.show import run_demo

    return run_demo(socket, state_dir, fast=fast, as_json=as_json)
