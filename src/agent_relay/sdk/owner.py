"""The owner's proof: the token of the HTTP API, in a file that only the daemon's user can read."""

from __future__ import annotations

import os

from agent_relay.protocol import places
from agent_relay.sdk.locate import Place


def read_api_token(state_dir: str | os.PathLike[str]) -> str | None:
    """None where there is none, or it is not for us to read: no daemon has started here yet, or it is another user's."""
    try:
        with open(os.path.join(state_dir, places.API_TOKEN_FILE), encoding="ascii") as file:
            return file.read().strip() or None
    except (OSError, ValueError):
        return None


def find_owner_token(place: Place) -> str | None:
    """Of the daemon that listens there. A socket that was named lies beside its token, whatever the project's own place is."""
    return read_api_token(os.path.dirname(place.socket)) or read_api_token(place.state_dir)
