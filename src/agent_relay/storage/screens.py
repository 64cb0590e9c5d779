"""Screens of agents' terminals, from the files their wrappers keep in `team/NAME` of the state directory."""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from agent_relay.ports.watchers import Shown
from agent_relay.protocol.names import is_name

TEAM_FOLDER = "team"
SIGHT_FILE = "screen.json"  # what is shown now
HISTORY_FILES = ("history.log", "history.old.log")  # what scrolled off, the newest file first
_MAX_SIGHT_BYTES = 4 * 1024 * 1024
_TAIL_BYTES = 4 * 1024 * 1024  # of the history; lines are rarely longer than a terminal is wide


class _Sight(Struct):
    rows: list[str]
    is_over: bool = False


class ScreenFiles:
    def __init__(self, state_dir: str) -> None:
        self._team = os.path.join(state_dir, TEAM_FOLDER)

    def screen(self, agent: str) -> Shown | None:
        content = _read(self._path(agent, SIGHT_FILE), _MAX_SIGHT_BYTES)
        if content is None:
            return None
        try:
            sight = msgspec.json.decode(content, type=_Sight)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        return Shown(sight.rows, sight.is_over)

    def output(self, agent: str, lines: int) -> Shown | None:
        shown = self.screen(agent)
        if shown is None:
            return None
        found = shown.lines[-lines:]
        for name in HISTORY_FILES:
            if len(found) >= lines:
                break
            content = _read(self._path(agent, name), _TAIL_BYTES) or b""
            above = content.decode("utf-8", "replace").splitlines()
            found = above[-(lines - len(found)) :] + found
        return Shown(found, shown.is_over)

    def _path(self, agent: str, name: str) -> str:
        assert is_name(agent)  # so it is no way out of the folder
        return os.path.join(self._team, agent, name)


def _read(path: str, most: int) -> bytes | None:
    """The end of a file of the user's own; never through a link."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - most))
            return file.read()
    except OSError:
        return None
