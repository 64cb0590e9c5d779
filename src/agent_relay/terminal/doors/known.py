"""Known sessions: what was learnt of a running program, kept in the agent's folder for a later wrapper and the next door."""

from __future__ import annotations

import contextlib
import os
from typing import Generic, TypeVar

from msgspec import Struct

from agent_relay.terminal.files.private_files import load_private, save_private

K = TypeVar("K")


class KnownSession(Struct, frozen=True):
    """A conversation; `path` is that of its session file, empty for one that has none, or none yet."""

    id: str
    path: str = ""


class KnownFile(Generic[K]):
    """One CLI's. `kind` is the type of its content; a file that is missing or damaged has nothing in it."""

    def __init__(self, name: str, kind: type[K]) -> None:
        self.name = name
        self._kind = kind

    def load(self, folder: str) -> K:
        return load_private(os.path.join(folder, self.name), self._kind)

    def save(self, folder: str, known: K) -> None:
        save_private(os.path.join(folder, self.name), known)

    def forget(self, folder: str) -> None:
        """Of a program that has ended."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, self.name))


def add_name(names: list[str], name: str, most: int) -> bool:
    """True: it is new. The oldest go when there are more than `most`."""
    if not name or name in names:
        return False
    names.append(name)
    del names[:-most]
    return True


def put_last(sessions: list[KnownSession], session: KnownSession, most: int) -> list[KnownSession]:
    """With this one as the latest; the oldest go when there are more than `most`."""
    return [*(known for known in sessions if known.id != session.id), session][-most:]
