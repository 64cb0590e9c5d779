"""Screens of agents' terminals as they change, from the files their wrappers keep in `team/NAME` of the state directory.

Such a file begins with a drawing of the screen and goes on with what the program wrote; another one takes its place before it
gets long. A reader who is slow finds a new file, and begins with that.
"""

from __future__ import annotations

import os
from typing import IO

import msgspec
from msgspec import Struct

from agent_relay.ports.watchers import LiveNews, LivePlace
from agent_relay.protocol.names import is_name
from agent_relay.storage.screens import TEAM_FOLDER

LIVE_FILE = "live.cast"
_HEADER_BYTES = 512
_AT_ONCE_BYTES = 4 * 1024 * 1024  # a line of the file is one drawing at most, and much smaller
_MORE = (0, 0, 0)  # the state of no file: the next reading must look


class _Header(Struct):
    width: int
    height: int
    title: str


class _Line(Struct, array_like=True):
    t: float
    kind: str
    data: str


class LiveScreenFiles:
    def __init__(self, state_dir: str, at_once_bytes: int = _AT_ONCE_BYTES) -> None:
        self._at_once_bytes = at_once_bytes
        self._team = os.path.join(state_dir, TEAM_FOLDER)

    def read(self, agent: str, place: LivePlace | None) -> LiveNews | None:
        assert is_name(agent)  # so it is no way out of the folder
        path = os.path.join(self._team, agent, LIVE_FILE)
        try:
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                return _read(file, place, self._at_once_bytes)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return None


def _read(file: IO[bytes], place: LivePlace | None, at_once_bytes: int) -> LiveNews | None:
    facts = os.fstat(file.fileno())
    state = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
    if place is not None and place.state == state:
        return None
    first = file.readline(_HEADER_BYTES)
    header = msgspec.json.decode(first, type=_Header)
    is_new = place is None or place.file != header.title
    offset = len(first) if place is None or is_new else place.offset
    file.seek(offset)
    content = file.read(at_once_bytes)
    reached = state if offset + len(content) >= facts.st_size else _MORE
    content = content[: content.rfind(b"\n") + 1]  # a line that is being written is read when it is whole
    text, is_over = _play(content)
    size = (header.width, header.height) if is_new else None
    return LiveNews(LivePlace(header.title, offset + len(content), reached), text, size, is_over)


def _play(content: bytes) -> tuple[str, bool]:
    lines = [msgspec.json.decode(line, type=_Line) for line in content.splitlines()]
    return "".join(line.data for line in lines if line.kind == "o"), any(line.kind == "m" for line in lines)
