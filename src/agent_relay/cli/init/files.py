"""Configuration files as `init` finds and leaves them: read with care, replaced whole, and kept as they were before.

What a file was before us lies in AGENT_RELAY_HOME/init, so that it can be given back byte for byte as long as nobody has
changed it since.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from agent_relay.cli.init.editing import CannotEdit

MAX_BYTES = 4_194_304  # of a file that we would edit
_FOLDER = "init"


@dataclass(frozen=True, slots=True)
class FileState:
    """A file's content; None: there is none. `real` is where links lead."""

    path: str
    real: str
    content: bytes | None

    @property
    def text(self) -> str:
        try:
            return (self.content or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise CannotEdit(f"it is not UTF-8 text (byte {error.start}); save it as UTF-8 first") from None


def read_state(path: str, inside: str | None) -> FileState:
    """Raises CannotEdit for what is not ours to write. `inside`: the folder that it must lie in, wherever links lead."""
    real = os.path.realpath(path)
    if inside is not None and os.path.commonpath([os.path.realpath(inside), real]) != os.path.realpath(inside):
        raise CannotEdit(f"it is a link that leads out of the project, to {real}")
    try:
        facts = os.lstat(real)
    except FileNotFoundError:
        if os.path.islink(path):
            raise CannotEdit(f"it is a link to {real}, where there is nothing") from None
        _check_folder(os.path.dirname(real))
        return FileState(path, real, None)
    if not stat.S_ISREG(facts.st_mode):
        raise CannotEdit("it is not a plain file")
    if facts.st_uid != os.geteuid():
        raise CannotEdit("it belongs to another user")
    if not facts.st_mode & stat.S_IWUSR:
        raise CannotEdit("it is read-only; make it writable first")
    if facts.st_size > MAX_BYTES:
        raise CannotEdit(f"it is larger than {MAX_BYTES:,} bytes")
    _check_folder(os.path.dirname(real))
    with open(real, "rb") as file:
        return FileState(path, real, file.read(MAX_BYTES + 1))


def _check_folder(folder: str) -> None:
    """The nearest one that is there: we write into it, or make folders below it."""
    while not os.path.isdir(folder):
        if os.path.lexists(folder):
            raise CannotEdit(f"{folder} is not a folder")
        folder = os.path.dirname(folder)
    if not os.access(folder, os.W_OK):
        raise CannotEdit(f"its folder {folder} is read-only")


def write_state(before: FileState, content: bytes | None) -> None:
    """Replaces the file at once and whole; None: removes it. Raises CannotEdit where it is not as it was when it was shown."""
    if _read(before.real) != before.content:
        raise CannotEdit("it was changed meanwhile; run this again")
    if content is None:
        os.unlink(before.real)
        return
    folder = os.path.dirname(before.real)
    os.makedirs(folder, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=".agent-relay-", dir=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(descriptor, _mode_of(before.real))
            file.flush()
            os.fsync(descriptor)
        os.replace(name, before.real)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode_of(path: str) -> int:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mask = os.umask(0o077)
        os.umask(mask)
        return 0o666 & ~mask


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        return None


# --- what was before --------------------------------------------------------------------------------------------------------


class Record(Struct):
    """A file that we changed: for whom, and what it was before and after."""

    path: str
    owners: list[str]
    existed: bool
    after: str  # its hash
    folders: list[str] = []  # that were made for it


class Shelf:
    def __init__(self, home: str) -> None:
        self._folder = os.path.join(home, _FOLDER)

    def find(self, state: FileState) -> Record | None:
        try:
            with open(self._place(state.real, ".json"), "rb") as file:
                return msgspec.json.decode(file.read(1_000_000), type=Record)
        except (OSError, msgspec.MsgspecError):
            return None

    def backup(self, state: FileState) -> str:
        return self._place(state.real, ".before")

    def keep(self, before: FileState, after: bytes, owners: list[str]) -> None:
        """Before the file is changed: should that fail, there is a backup too many."""
        folders = []
        folder = os.path.dirname(before.real)
        while not os.path.isdir(folder):
            folders.append(folder)
            folder = os.path.dirname(folder)
        record = Record(before.real, owners, before.content is not None, hash_of(after), folders)
        self._write(self.backup(before), before.content or b"")
        self._write(self._place(before.real, ".json"), msgspec.json.encode(record))

    def note(self, state: FileState, record: Record) -> None:
        self._write(self._place(state.real, ".json"), msgspec.json.encode(record))

    def original(self, state: FileState, record: Record) -> bytes | None:
        """The content before us; raises OSError where that was lost."""
        with open(self.backup(state), "rb") as file:
            content = file.read()
        return content if record.existed else None

    def forget(self, state: FileState, record: Record | None) -> None:
        for suffix in (".json", ".before"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._place(state.real, suffix))
        for folder in record.folders if record is not None else ():
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    def _place(self, real: str, suffix: str) -> str:
        return os.path.join(self._folder, hashlib.sha256(os.fsencode(real)).hexdigest()[:16] + suffix)

    def _write(self, path: str, content: bytes) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        descriptor = os.open(path + ".tmp", os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        os.replace(path + ".tmp", path)


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
