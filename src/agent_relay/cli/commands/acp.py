"""`acp`: an agent of the relay, in an editor that speaks the Agent Client Protocol."""

from __future__ import annotations

import logging
import os
import stat
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from agent_relay.cli.failures import Failure
from agent_relay.cli.options import Socket, StateDir, find_place

if TYPE_CHECKING:
    from agent_relay.sdk.client import RelayClient

_MISSING = "ACP needs a package that is not installed: pip install 'agent-relay[acp]'"
_WINDOW = 32


def acp(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The agent; by default, you choose in the editor.", show_default=False)
    ] = None,
    socket: Socket = None,
    state_dir: StateDir = None,
) -> int:
    """Speak the Agent Client Protocol for an agent of the relay.

    An editor starts this itself. Your prompts are messages to the agent, from you; its answers, what it does and what it asks
    come back. Ends when its input ends.
    """
    place = find_place(socket, state_dir)
    try:
        from agent_relay.acp.agent import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"acp", "pydantic"}:
            raise
        raise Failure(_MISSING) from None
    from agent_relay.cli.project.link import connect_as, run

    if not (_is_stream(sys.stdin.fileno()) and _is_stream(sys.stdout.fileno())):
        raise Failure("ACP is spoken over pipes, and standard input or output is a file. An editor starts this: docs/acp.md")
    if sys.stdin.isatty():
        sys.stderr.write("This speaks ACP (JSON-RPC) on standard input and output. An editor starts it: docs/acp.md\n")
    logging.disable()  # the package logs what it cannot read, and so what was said

    async def connect() -> RelayClient:
        return await connect_as(place, None, max_inflight=_WINDOW)

    run(serve(connect, name or ""))
    return 0


def _is_stream(descriptor: int) -> bool:
    """Files, /dev/null among them, never say that they can be read."""
    mode = os.fstat(descriptor).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor)
