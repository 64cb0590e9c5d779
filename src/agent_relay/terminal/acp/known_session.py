"""The session of an agent, kept as long as nobody has ended it: a console that is started again after a crash goes on with it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from agent_relay.terminal.doors.known import KnownFile


class Known(Struct):
    session: str = ""
    words: list[str] = []
    cwd: str = ""


_FILE = KnownFile("acp.json", Known)


def find_session(folder: str, words: Sequence[str], cwd: str) -> str:
    """Of the same program in the same folder; empty where there is none, or it was ended by somebody."""
    known = _FILE.load(folder)
    return known.session if (known.words, known.cwd) == (list(words), cwd) else ""


def note_session(folder: str, session: str, words: Sequence[str], cwd: str) -> None:
    _FILE.save(folder, Known(session, list(words), cwd))


def forget_session(folder: str) -> None:
    _FILE.forget(folder)
