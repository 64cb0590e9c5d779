"""Private folders, and what wrappers keep in small files of the user alone."""

from __future__ import annotations

import fcntl
import os
import stat
from typing import TypeVar

import msgspec

from agent_relay.private_files import PRIVATE, read_private, replace_private
from agent_relay.protocol.places import short_socket_directory

T = TypeVar("T")
_APPENDING = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class NotPrivate(PermissionError):  # noqa: N818 - named by the condition
    """A folder that is not this user's own; the text says what to do."""


def make_private_folder(path: str) -> None:
    """Makes a folder for the user alone, or raises NotPrivate: whoever can reach a socket in it can speak for an agent or type
    into it."""
    above = short_socket_directory(os.getuid())  # where everybody can make one
    for folder in [above, path] if path.startswith(above + "/") else [path]:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        found = os.lstat(folder)
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise NotPrivate(f"{folder} is not a directory that you own; remove it, or choose another --state-dir.")
        if stat.S_IMODE(found.st_mode) & 0o077:
            os.chmod(folder, 0o700)


def append_private(path: str, data: bytes) -> int:
    """Returns the size the file then has. The daemon may be cutting it, and puts another file in its place then."""
    while True:
        with os.fdopen(os.open(path, _APPENDING, PRIVATE), "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if _is_in_place(file.fileno(), path):
                file.write(data)
                return file.tell()


def _is_in_place(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False


def load_private(path: str, kind: type[T]) -> T:
    """Loads what `save_private` kept there; one with nothing in it where that cannot be read."""
    data = read_private(path)
    try:
        return msgspec.json.decode(data, type=kind) if data else kind()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return kind()


def save_private(path: str, content: object) -> None:
    replace_private(path, msgspec.json.encode(content))
