"""Small files that are the user's alone: never through a symbolic link, replaced as a whole, and locked by whoever lives."""

from __future__ import annotations

import contextlib
import fcntl
import os

PRIVATE = 0o600


def replace_private(path: str, data: bytes) -> None:
    """Replaces it as a whole: whoever reads it finds the old content or the new, nothing between. Raises OSError."""
    temporary = f"{path}.{os.getpid()}.tmp"
    flags = os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, PRIVATE), "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:  # a full disk has no room for half a file either
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def read_private(path: str) -> bytes | None:
    """The content; None where there is none, or it cannot be read."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            return file.read()
    except OSError:
        return None


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
