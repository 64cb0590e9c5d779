"""Logs: JSON lines in `daemon.log`, readable lines on a terminal. Ids and reasons, never bodies or tokens."""

from __future__ import annotations

import contextlib
import json
import logging
import logging.handlers
import os
import sys
from datetime import UTC, datetime
from typing import IO

_MAX_BYTES = 5 * 1024 * 1024
_KEPT_FILES = 3
_FIELDS = "relay_fields"

logger = logging.getLogger("agent_relay")


class RelayLog:
    """`ports.Log` on the standard logging."""

    def note(self, what: str, **fields: object) -> None:
        level = logging.WARNING if what in {"store_failed", "session_revoked", "dead_letter"} else logging.INFO
        logger.log(level, what, extra={_FIELDS: fields})


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= getattr(record, _FIELDS, {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


class Readable(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        fields = " ".join(f"{name}={value}" for name, value in getattr(record, _FIELDS, {}).items())
        text = f"{at} {record.levelname.lower():7} {record.getMessage()} {fields}".rstrip()
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _LogFile(logging.handlers.RotatingFileHandler):
    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - logging's own name
        """The disk is full: there is nowhere to say so, and the terminal of a daemon is not the place for a traceback."""


def open_logs(path: str, *, debug: bool, terminal: IO[str] | None = sys.stderr) -> None:
    """The file gets everything; the terminal too, if there is a person in front of it."""
    descriptor = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    os.close(descriptor)
    file = _LogFile(path, maxBytes=_MAX_BYTES, backupCount=_KEPT_FILES, encoding="utf-8")
    file.setFormatter(JsonLines())
    handlers: list[logging.Handler] = [file]
    if terminal is not None and terminal.isatty():
        screen = logging.StreamHandler(terminal)
        screen.setFormatter(Readable())
        handlers.append(screen)
    logger.handlers[:] = handlers
    logger.setLevel(logging.DEBUG if debug else logging.INFO)
    logger.propagate = False


def close_logs() -> None:
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        with contextlib.suppress(OSError):  # a full disk keeps nobody from leaving
            handler.close()
