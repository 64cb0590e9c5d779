"""Secrets in a process's environment, such as the token of the API: /proc shows what a process was started with,
to every program of the user.

Taking a variable out of `os.environ` does not change that. So its value is erased where the system reads it.
"""

from __future__ import annotations

import os

from agent_relay.protocol.places import DATABASE_PASSWORD_VARIABLE, ENV_API_TOKEN, ENV_CLUSTER_TOKEN, ENV_STORAGE_URL

SECRET_VARIABLES = (ENV_API_TOKEN, ENV_CLUSTER_TOKEN, ENV_STORAGE_URL, DATABASE_PASSWORD_VARIABLE)


def hide_secrets() -> None:
    """Others do not see them any more; `os.environ` still has them. To be called before anything else changes the environment."""
    found = {name: value for name in SECRET_VARIABLES if (value := os.environ.get(name))}
    if not found or os.name != "posix":
        return
    import ctypes  # noqa: PLC0415 - takes a while, and few have such a variable

    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    for name, value in found.items():
        address = getenv(name.encode())
        if address:
            ctypes.memset(address, 0, len(os.fsencode(value)))
        os.environ[name] = value  # a copy, elsewhere


def forget_api_token() -> None:
    """Nothing that is started from here on has it."""
    os.environ.pop(ENV_API_TOKEN, None)
