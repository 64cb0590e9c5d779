"""Logs: one JSON object a line, private, rotated; what people read is on their terminal."""

from __future__ import annotations

import io
import json
import logging
import logging.handlers
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_relay.daemon.logs import RelayLog, close_logs, logger, open_logs


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield
    close_logs()
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_every_line_is_json_whatever_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    open_logs(str(path), debug=False, terminal=None)
    RelayLog().note("connected", agent='quote " ünïcode \n newline', uid=5, odd=object)
    try:
        raise RuntimeError("ours")
    except RuntimeError:
        logger.exception("internal_error")
    first, second = lines(path)
    assert (first["event"], first["level"], first["agent"], first["uid"]) == (
        "connected", "info", 'quote " ünïcode \n newline', 5,
    )  # fmt: skip
    assert first["ts"].endswith("+00:00")
    assert "RuntimeError: ours" in second["exception"]


@pytest.mark.parametrize(
    ("what", "level"),
    [("store_failed", "warning"), ("session_revoked", "warning"), ("dead_letter", "warning"), ("connected", "info")],
)
def test_what_somebody_should_look_at_is_a_warning(tmp_path: Path, what: str, level: str) -> None:
    path = tmp_path / "daemon.log"
    open_logs(str(path), debug=False, terminal=None)
    RelayLog().note(what)
    assert lines(path)[0]["level"] == level


@pytest.mark.parametrize("debug", [False, True])
def test_debug_is_asked_for(tmp_path: Path, debug: bool) -> None:
    path = tmp_path / "daemon.log"
    open_logs(str(path), debug=debug, terminal=None)
    logging.getLogger("agent_relay.transports").debug("frame")
    assert len(lines(path)) == (1 if debug else 0)


def test_the_file_is_private_and_goes_on_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    for _ in range(2):
        open_logs(str(path), debug=False, terminal=None)
        RelayLog().note("started")
        close_logs()
    assert len(lines(path)) == 2
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_the_file_is_rotated_and_few_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "daemon.log"
    open_logs(str(path), debug=False, terminal=None)
    (handler,) = logger.handlers
    assert isinstance(handler, logging.handlers.RotatingFileHandler)
    assert 0 < handler.maxBytes <= 64 * 1024 * 1024
    assert 0 < handler.backupCount <= 10
    handler.maxBytes = 1_000
    for number in range(200):
        RelayLog().note("connected", number=number)
    kept = sorted(found.name for found in tmp_path.iterdir())
    assert kept == ["daemon.log", *(f"daemon.log.{number}" for number in range(1, handler.backupCount + 1))]
    assert all(os.path.getsize(tmp_path / name) <= 1_000 for name in kept)
    assert lines(path)[-1]["number"] == 199


def test_a_person_at_a_terminal_reads_plain_lines(tmp_path: Path) -> None:
    terminal = Terminal()
    open_logs(str(tmp_path / "daemon.log"), debug=False, terminal=terminal)
    RelayLog().note("connected", agent="Bob")
    assert "connected agent=Bob" in terminal.getvalue()


def test_a_pipe_is_no_terminal(tmp_path: Path) -> None:
    pipe = io.StringIO()
    open_logs(str(tmp_path / "daemon.log"), debug=False, terminal=pipe)
    RelayLog().note("connected")
    assert pipe.getvalue() == ""
