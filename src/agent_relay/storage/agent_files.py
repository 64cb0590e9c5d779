"""The files that wrappers keep of their agents, `team/NAME` and `outbox/NAME` in the state directory: for letting go of what is
too old, for erasing one agent, and for reading all of one agent's.

A wrapper writes while this works. It opens its files anew for each line and holds a lock meanwhile
(`terminal.files.private_files`), so one may be replaced or moved under it, with that lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

from agent_relay.private_files import is_locked
from agent_relay.protocol.names import fold_name
from agent_relay.storage.screens import HISTORY_FILES, TEAM_FOLDER

OUTBOX_FOLDER = "outbox"
LOCK_FILE = "screen.lock"  # held for as long as a wrapper writes
_INBOX_FILES = ("inbox.md", "inbox.old.md")
_ENTRY = re.compile(rb"^(?:## |- )(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) UTC  ", re.MULTILINE)  # bodies are quoted, so none begins so
_SENDER = re.compile(rb"## [^\n]{23}  from ([A-Za-z0-9_.-]+)  \[")
_READABLE = ("inbox.old.md", "inbox.md", "history.old.log", "history.log", "screen.txt")
_MOST_BYTES = 16 * 1024 * 1024  # of one file in an export; those of ours are smaller


class AgentFiles:
    """Blocks; what cannot be read or removed is passed over, and tried again the next time."""

    def __init__(self, state_dir: str) -> None:
        self._state_dir = state_dir

    def is_held(self, agent: str) -> bool:
        return any(is_locked(os.path.join(folder, LOCK_FILE)) for folder in self._folders(agent, TEAM_FOLDER))

    def erase(self, agent: str) -> int:
        """Everything of one agent, and from the inboxes of others what it wrote; how many files it was. Raises OSError."""
        removed = 0
        for folder in (*self._folders(agent, TEAM_FOLDER), *self._folders(agent, OUTBOX_FOLDER)):
            removed += sum(len(files) for _, _, files in os.walk(folder))
            _remove_tree(folder)
        inboxes = [os.path.join(folder, name) for folder in self._all_folders(TEAM_FOLDER) for name in _INBOX_FILES]
        return removed + sum(_rewrite(path, partial(_without_sender, sender=fold_name(agent))) for path in inboxes)

    def read(self, agent: str) -> Iterator[tuple[str, str]]:
        """The name and the text of every file that holds what was said to it, or what it showed or wanted to say."""
        for folder in self._folders(agent, TEAM_FOLDER):
            for name in _READABLE:
                yield from _read_text(folder, name)
        for folder in self._folders(agent, OUTBOX_FOLDER):
            for name in sorted(_names_in(folder)):
                yield from ((f"{OUTBOX_FOLDER}/{found}", text) for found, text in _read_text(folder, name))

    def sweep(self, before_ms: int, now_ms: int) -> None:
        """Lets go of what is older than that."""
        for folder in self._all_folders(TEAM_FOLDER):
            if _newest_ms(folder) < before_ms and not is_locked(os.path.join(folder, LOCK_FILE)):
                with contextlib.suppress(OSError):
                    _remove_tree(folder)
                continue
            for name in _INBOX_FILES:
                with contextlib.suppress(OSError):
                    _rewrite(os.path.join(folder, name), partial(_since, before_ms=before_ms))
            with contextlib.suppress(OSError):
                _turn_history(folder, before_ms, now_ms)
        for folder in self._all_folders(OUTBOX_FOLDER):
            for name in _names_in(folder):
                path = os.path.join(folder, name)
                with contextlib.suppress(OSError):
                    if _changed_ms(path) < before_ms:
                        os.unlink(path)

    def _all_folders(self, kind: str) -> list[str]:
        parent = os.path.join(self._state_dir, kind)
        found = [os.path.join(parent, name) for name in _names_in(parent)]
        return [path for path in found if os.path.isdir(path) and not os.path.islink(path)]

    def _folders(self, agent: str, kind: str) -> list[str]:
        key = fold_name(agent)
        return [path for path in self._all_folders(kind) if fold_name(os.path.basename(path)) == key]


def _rewrite(path: str, change: Callable[[bytes], bytes]) -> bool:
    """Whether there was something to change. Nobody writes meanwhile. Raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    with open(descriptor, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        content = file.read()
        left = change(content)
        if left == content:
            return False
        temporary = f"{path}.tmp"  # the same name each time: what was erased is not to stay in a file that nobody knows
        with os.fdopen(os.open(temporary, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as kept:
            kept.write(left)
        os.replace(temporary, path)
        return True


def _since(content: bytes, before_ms: int) -> bytes:
    """An inbox from that moment on; the entries stand in the order they came."""
    entries = ((found.start(), found[1]) for found in _ENTRY.finditer(content))
    return content[next((place for place, at in entries if _read_ms(at) >= before_ms), len(content)) :]


def _without_sender(content: bytes, sender: str) -> bytes:
    """An inbox without what somebody wrote."""
    places = [found.start() for found in _ENTRY.finditer(content)]
    if not places:
        return content
    parts = [content[start:end] for start, end in zip(places, [*places[1:], len(content)], strict=True)]
    kept = [part for part in parts if (found := _SENDER.match(part)) is None or fold_name(found[1].decode()) != sender]
    return content[: places[0]] + b"".join(kept)


def _turn_history(folder: str, before_ms: int, now_ms: int) -> None:
    """Lines of a terminal have no time of their own. The newer of the two files takes the place of the older when that has not
    changed for half of the time, so no line gets older than the whole of it. An empty older file only says since when."""
    newer, older = (os.path.join(folder, name) for name in HISTORY_FILES)
    for path in (newer, older):
        if os.path.exists(path) and _changed_ms(path) < before_ms:
            os.unlink(path)
    if not os.path.exists(newer):
        return
    if not os.path.exists(older):
        os.close(os.open(older, os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    elif _changed_ms(older) < (before_ms + now_ms) // 2:
        os.replace(newer, older)
        os.utime(older, (now_ms / 1_000, now_ms / 1_000))


def _read_ms(moment: bytes) -> int:
    return int(datetime.strptime(moment.decode(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp() * 1_000)


def _names_in(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _changed_ms(path: str) -> int:
    return os.stat(path, follow_symlinks=False).st_mtime_ns // 1_000_000


def _newest_ms(folder: str) -> int:
    """When something in it, or the folder itself, was last changed."""
    newest = 0
    for path in (folder, *(os.path.join(folder, name) for name in _names_in(folder))):
        with contextlib.suppress(OSError):
            newest = max(newest, _changed_ms(path))
    return newest


def _read_text(folder: str, name: str) -> Iterator[tuple[str, str]]:
    try:
        with open(os.open(os.path.join(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            yield name, file.read(_MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return


def _remove_tree(folder: str) -> None:
    import shutil  # noqa: PLC0415 - not before something is erased: it loads every kind of compression

    shutil.rmtree(folder)
