"""The token of the API in a process's environment: /proc shows what a process was started with, to every program of the user.

Taking a variable out of `os.environ` does not change that. So its value is erased where the system reads it.
"""

from __future__ import annotations

import os

from agent_relay.protocol.places import ENV_API_TOKEN


def hide_api_token() -> None:
    """Others do not see it any more; `os.environ` still has it. To be called before anything else changes the environment."""
    value = os.environ.get(ENV_API_TOKEN)
    if not value or os.name != "posix":
        return
    import ctypes  # noqa: PLC0415 - takes a while, and few have the variable

    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    address = getenv(ENV_API_TOKEN.encode())
    if address:
        ctypes.memset(address, 0, len(os.fsencode(value)))
    os.environ[ENV_API_TOKEN] = value  # a copy, elsewhere


def forget_api_token() -> None:
    """Nothing that is started from here on has it."""
    os.environ.pop(ENV_API_TOKEN, None)
