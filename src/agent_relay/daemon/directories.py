"""The daemon's place on disk: made for the user alone, and held by one daemon at a time."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time

from agent_relay.private_files import replace_private
from agent_relay.protocol import places

_LOCK_TRIES = 5
_LOCK_PAUSE_S = 0.02


class PlaceUnusable(Exception):  # noqa: N818 - named by the condition
    """The state directory cannot be used; the text says why and what to do."""


class AlreadyRunning(PlaceUnusable):
    """Another daemon holds the lock."""


def make_private_directory(path: str) -> None:
    """Exists, is a directory, is ours, and nobody else can look into it."""
    existed = os.path.isdir(path)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.stat(path)
    except FileExistsError:
        raise PlaceUnusable(f"{path} is not a directory; move it away or choose another --state-dir.") from None
    except OSError as error:
        raise PlaceUnusable(f"{path} cannot be created: {error.strerror}. Check who owns the folders above it.") from None
    if found.st_uid != os.geteuid():
        raise PlaceUnusable(f"{path} belongs to another user; choose another --state-dir.")
    if stat.S_IMODE(found.st_mode) & 0o077:
        if existed and not _is_ours_to_close(path):
            raise PlaceUnusable(f"{path} is open to other users and contains other files; choose another --state-dir.")
        os.chmod(path, 0o700)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PlaceUnusable(f"No permission to write to {path}; fix it with: chmod u+rwx {path}")


def _is_ours_to_close(path: str) -> bool:
    """Empty, or in use by a daemon before: nobody else relies on looking into it."""
    names = os.listdir(path)
    return not names or any(name in {places.LOG_FILE, places.DATABASE_FILE, places.LOCK_FILE, places.PID_FILE} for name in names)


def prepare_socket_directory(socket_path: str, uid: int) -> None:
    """Makes what is missing; insists on a private one only where it is ours to insist."""
    directory = os.path.dirname(os.path.abspath(socket_path))
    short = places.short_socket_directory(uid)
    if directory == short or directory.startswith(short + "/"):
        if os.path.islink(short):
            raise PlaceUnusable(f"{short} is a link, which is not trusted; remove it.")
        make_private_directory(short)
        make_private_directory(directory)
    elif not os.path.isdir(directory):
        make_private_directory(directory)


class Lock:
    """An advisory lock on a file, freed by the system with the process however it ends."""

    def __init__(self, path: str, note: str = "") -> None:
        """`note` is left in the file, for whoever looks."""
        self._path = path
        self._descriptor = self._take()
        while not self._is_the_file():  # whoever held it before removed the file between our opening and our locking it
            os.close(self._descriptor)
            self._descriptor = self._take()
        os.ftruncate(self._descriptor, 0)
        os.write(self._descriptor, os.fsencode(note))

    def _take(self) -> int:
        try:
            descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise PlaceUnusable(f"{self._path} cannot be opened: {error.strerror}.") from None
        try:
            _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            if error.errno in {errno.EWOULDBLOCK, errno.EACCES}:
                raise AlreadyRunning(f"Another daemon is running with {os.path.dirname(self._path)}.") from None
            raise PlaceUnusable(f"{self._path} cannot be locked: {error.strerror}.") from None
        return descriptor

    def _is_the_file(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except FileNotFoundError:
            return False

    def release(self) -> None:
        remove_file(self._path)  # first, so that nobody can hold a lock on a file that is about to go
        os.close(self._descriptor)


class DirectoryLock:
    """The directory itself is held, too: the lock file in it can be removed under a running daemon."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _lock(self._descriptor)
        except OSError as error:
            os.close(self._descriptor)
            if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
                raise PlaceUnusable(f"{path} cannot be locked: {error.strerror}.") from None
            raise AlreadyRunning(f"Another daemon is running with {path}.") from None

    def release(self) -> None:
        os.close(self._descriptor)


def _lock(descriptor: int) -> None:
    """Tries for a moment: whoever only looks whether the lock is held holds it for an instant."""
    for _ in range(_LOCK_TRIES - 1):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
        else:
            return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def write_private_file(path: str, content: str) -> None:
    """All of it or none, readable by nobody else."""
    replace_private(path, content.encode())


def remove_file(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
