"""`mcp`: the relay as tools for an agent, over standard input and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agent_relay.cli.failures import Failure
from agent_relay.cli.mcp.environment import restore
from agent_relay.cli.options import Socket, StateDir, find_place
from agent_relay.cli.wrapper.outbox_commands import own_outbox
from agent_relay.protocol.places import ENV_NAME

if TYPE_CHECKING:
    from agent_relay.mcp.speaker import Speaker
    from agent_relay.sdk.locate import Place

_MISSING = "MCP needs a package that is not installed: pip install 'agent-relay[mcp]'"


def mcp(socket: Socket = None, state_dir: StateDir = None) -> int:
    """Serve the relay as MCP tools on standard input and output.

    A CLI starts this itself; `agent-relay init` sets that up. Inside a wrapped agent the tools speak as that agent, elsewhere as
    you. Ends when its input ends.
    """
    restore()
    place = find_place(socket, state_dir)
    try:
        from agent_relay.mcp.server import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types", "anyio", "pydantic"}:
            raise
        raise Failure(_MISSING) from None
    from agent_relay.cli.project.link import run

    if sys.stdin.isatty():
        sys.stderr.write("This speaks MCP (JSON-RPC) on standard input and output. To set a CLI up for it: agent-relay init\n")
    run(serve(choose_speaker(place)))
    return 0


def choose_speaker(place: Place, environ: Mapping[str, str] = os.environ) -> Speaker:
    """By what the wrapper left in the environment."""
    from agent_relay.cli.mcp.own_agent import OwnAgent
    from agent_relay.cli.mcp.wrapped_agent import WrappedAgent

    outbox = own_outbox(None, place.socket, environ)
    if outbox is not None:
        return WrappedAgent(place, environ[ENV_NAME], outbox)
    return OwnAgent(place)
