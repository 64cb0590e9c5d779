"""The token of the HTTP API: the environment's, or one that is made at the first start and kept."""

from __future__ import annotations

import os
import secrets
import stat

from agent_relay.daemon.config import Config
from agent_relay.daemon.directories import write_private_file
from agent_relay.protocol import places

_LEAST = 16  # characters of one that we made; fewer: the file was cut short
_MOST = 4_096


def settle_api_token(config: Config) -> str:
    """The token that counts from now on; the file holds it for the owner's own programs, and for nobody else."""
    path = config.file(places.API_TOKEN_FILE)
    kept = _read(path)
    token = config.api_token or kept or secrets.token_urlsafe(32)
    if token != kept:
        write_private_file(path, f"{token}\n")
    return token


def _read(path: str) -> str | None:
    """None for anything that is not a file of ours which nobody else could read: what is in it may be known to others."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
            return None
        said = file.read(_MOST).strip()
    if len(said) < _LEAST or not said.isascii():
        return None
    token = said.decode("ascii")
    return token if token.isprintable() and " " not in token else None
