"""`openapi`: the description of the HTTP API, for generators of clients."""

from __future__ import annotations

import sys

from agent_relay.cli.options import Json, Socket, StateDir


def openapi(as_json: Json = False, socket: Socket = None, state_dir: StateDir = None) -> int:
    """Print the OpenAPI 3.1 description of the HTTP API, always as JSON.

    A running daemon serves the same at /openapi.json, and as a page at /docs.
    """
    del as_json, socket, state_dir  # every command takes them
    from agent_relay.daemon.http import describe_http

    sys.stdout.write(describe_http().decode())
    return 0
