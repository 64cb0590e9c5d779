"""Small files that are the user's alone: never through a symbolic link, and replaced as a whole."""

from __future__ import annotations

import os

_FLAGS = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def append_private(path: str, data: bytes) -> int:
    """Returns the size the file then has."""
    with os.fdopen(os.open(path, _FLAGS | os.O_APPEND, 0o600), "ab") as file:
        file.write(data)
        return file.tell()


def replace_private(path: str, data: bytes) -> None:
    """Whoever reads it finds the old content or the new, nothing between."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with os.fdopen(os.open(temporary, _FLAGS | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def read_private(path: str) -> bytes | None:
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read()
    except OSError:
        return None
