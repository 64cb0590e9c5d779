"""The token of the HTTP API: the environment's, or one that is made at the first start and kept.

/proc shows what a process was started with to every program of the user, and taking a variable out of `os.environ` does not
change that. So the token is erased where the system reads it.
"""

from __future__ import annotations

import os
import secrets
import stat
from typing import TYPE_CHECKING

from agent_relay.daemon.directories import write_private_file
from agent_relay.protocol import places

if TYPE_CHECKING:  # commands hide the token before they load anything large
    from agent_relay.daemon.config import Config

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


def hide_api_token() -> None:
    """Others do not see it any more; `os.environ` still has it. To be called before anything else changes the environment."""
    value = os.environ.get(places.ENV_API_TOKEN)
    if not value or os.name != "posix":
        return
    import ctypes  # noqa: PLC0415 - takes a while, and few have the variable

    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    address = getenv(places.ENV_API_TOKEN.encode())
    if address:
        ctypes.memset(address, 0, len(os.fsencode(value)))
    os.environ[places.ENV_API_TOKEN] = value  # a copy, elsewhere


def forget_api_token() -> None:
    """Nothing that is started from here on has it."""
    os.environ.pop(places.ENV_API_TOKEN, None)
