"""Writing down what a terminal showed, as asciicast v2: what `asciicast` reads, and `agent-relay replay` plays.

Every event is one whole line, written at once: a recording that was cut short, by whatever, can be read up to there. Only
output is written; what was typed is not, though a program may show it. Bytes that are no UTF-8 become the sign for that.
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import os
import secrets
import time
from collections.abc import Mapping

import msgspec

from agent_relay.terminal.backends.choice import Backend
from agent_relay.terminal.backends.terminal import DEFAULT_COLUMNS, DEFAULT_ROWS
from agent_relay.terminal.backends.tmux_server import default_terminal
from agent_relay.terminal.recordings.asciicast import CastEvent, CastHeader

CAST_SUFFIX = ".cast"
_FLAGS = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


class Header(CastHeader):
    timestamp: int = 0  # seconds since 1970, when it began
    env: dict[str, str] = msgspec.field(default_factory=dict)


class TerminalRecorder:
    """One recording. Times are seconds of any steady clock; the first one that is told is the recording's beginning.

    Raises FileExistsError for a file that is there, unless it is to be replaced; then the new one takes its place at once.
    After that nothing raises: a full disk ends the recording and not the agent, and `failure` says why.
    """

    def __init__(
        self, path: str, columns: int, rows: int, *, title: str = "", term: str = "", is_replacing: bool = False
    ) -> None:
        self.path = path
        self.failure = ""
        self.size_bytes = 0
        self.seconds = 0.0
        self._size = (columns, rows)
        self._began_t: float | None = None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._descriptor: int | None = _create(path, is_replacing=is_replacing)
        env = {"TERM": term} if term else {}
        self._write(Header(2, columns, rows, title, timestamp=time.time_ns() // 1_000_000_000, env=env))

    def output(self, data: bytes, t: float) -> None:
        """Cut anywhere: a character that is not whole yet waits for its rest."""
        text = self._decoder.decode(data)
        if text:
            self._add(t, "o", text)

    def resize(self, columns: int, rows: int, t: float) -> None:
        """May be told again and again; only a change is written."""
        if (columns, rows) != self._size:
            self._size = (columns, rows)
            self._add(t, "r", f"{columns}x{rows}")

    def mark(self, text: str, t: float) -> None:
        """A remark for whoever reads the recording, such as that output is missing here."""
        self._add(t, "m", text)

    def close(self) -> None:
        rest = self._decoder.decode(b"", final=True)
        if rest:
            self._add((self._began_t or 0.0) + self.seconds, "o", rest)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _add(self, t: float, kind: str, data: str) -> None:
        if self._began_t is None:
            self._began_t = t
        self.seconds = max(self.seconds, round(t - self._began_t, 6))  # never back, whatever the caller's clock does
        self._write(CastEvent(self.seconds, kind, data))

    def _write(self, item: CastHeader | CastEvent) -> None:
        if self._descriptor is None:
            return
        line = msgspec.json.encode(item) + b"\n"
        try:
            written = os.write(self._descriptor, line)
            if written < len(line):  # the disk is full: half a line would make the whole file unreadable
                os.ftruncate(self._descriptor, self.size_bytes)
                raise OSError("only a part could be written")
            self.size_bytes += written
        except OSError as error:
            self.failure = error.strerror or str(error)
            os.close(self._descriptor)
            self._descriptor = None


def record_from_start(path: str, backend: Backend, title: str, environ: Mapping[str, str]) -> TerminalRecorder:
    """For a program that is about to be started. In a PTY the person's own terminal, where there is one, says the size."""
    columns, rows = DEFAULT_COLUMNS, DEFAULT_ROWS
    if backend is Backend.TMUX:
        return TerminalRecorder(path, columns, rows, title=title, term=default_terminal(environ))
    if os.isatty(0):
        columns, rows = os.get_terminal_size(0)
    return TerminalRecorder(path, columns, rows, title=title, term=environ.get("TERM", ""))


def _create(path: str, *, is_replacing: bool) -> int:
    """A new file for the user alone, also where a link or another file of that name stands; nothing is written through either."""
    if not is_replacing:
        return os.open(path, _FLAGS, 0o600)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    temporary = f"{path}.{secrets.token_hex(4)}.tmp"
    descriptor = os.open(temporary, _FLAGS, 0o600)
    try:
        os.replace(temporary, path)
    except OSError:
        os.close(descriptor)
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return descriptor
