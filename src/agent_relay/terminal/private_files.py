"""Small files that are the user's alone: never through a symbolic link, and replaced as a whole."""

from __future__ import annotations

import fcntl
import os
from typing import TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)
_FLAGS = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def append_private(path: str, data: bytes) -> int:
    """Returns the size the file then has. The daemon may be cutting it, and puts another file in its place then."""
    while True:
        with os.fdopen(os.open(path, _FLAGS | os.O_APPEND, 0o600), "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_in_place(file.fileno(), path):
                file.write(data)
                return file.tell()


def _is_in_place(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


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


def load_private(path: str, kind: type[T]) -> T:
    """What `save_private` kept there; one with nothing in it where that cannot be read."""
    try:
        return msgspec.json.decode(read_private(path) or b"{}", type=kind)
    except msgspec.DecodeError:
        return kind()


def save_private(path: str, content: msgspec.Struct) -> None:
    replace_private(path, msgspec.json.encode(content))


def is_locked(path: str) -> bool:
    """Whether a process that still runs holds the lock on this file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False
