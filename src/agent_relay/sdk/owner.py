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
    """Of the daemon that listens there: a socket that was named says whose it is, whatever the project's own place is."""
    folders = (os.path.dirname(place.socket), _state_dir_of(place.socket), place.state_dir)
    return next((token for folder in folders if folder and (token := read_api_token(folder))), None)


def _state_dir_of(socket: str) -> str:
    """As the daemon noted behind its socket; empty where it did not, or the note is not ours."""
    try:
        descriptor = os.open(socket + places.SOCKET_LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        return os.fsdecode(file.read(4_096)) if os.fstat(descriptor).st_uid == os.getuid() else ""
