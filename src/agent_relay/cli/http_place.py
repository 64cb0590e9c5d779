"""The address of the daemon's HTTP server, as it wrote down itself."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass

from agent_relay.protocol import places

_WAIT_S = 10.0  # the server starts after the socket, and is slower
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class HttpPlace:
    url: str | None
    reason: str = ""  # why there is none
    warning: str = ""  # what everybody should know about it
    host: str = ""  # what it is bound to
    port: int = 0
    certificate: str = ""  # the file of its own, with HTTPS


def read_http_place(state_dir: str) -> HttpPlace | None:
    """None: it has not said yet."""
    try:
        with open(os.path.join(state_dir, places.HTTP_FILE), encoding="utf-8") as file:
            said = json.load(file)
        words = {name: str(said.get(name) or "") for name in ("reason", "warning", "host", "certificate")}
        return HttpPlace(said["url"], port=int(said.get("port") or 0), **words)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def wait_for_http_place(state_dir: str) -> HttpPlace | None:
    deadline = time.monotonic() + _WAIT_S
    while True:
        found = read_http_place(state_dir)
        if found is not None or time.monotonic() >= deadline:
            return found
        time.sleep(_POLL_S)
