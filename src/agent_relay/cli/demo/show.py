"""Runs the demonstration from its first line to its exit status, and cleans up however it ends."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from agent_relay.cli.demo.cast import Cast
from agent_relay.cli.demo.evidence import Evidence
from agent_relay.cli.demo.script import Script
from agent_relay.cli.demo.stage import Stage
from agent_relay.cli.demo.summary import as_json, holds, show_summary
from agent_relay.cli.demo.transcript import Transcript
from agent_relay.cli.demo.view import Left, View, has_room
from agent_relay.cli.failures import FAILED, OK
from agent_relay.cli.screen import Screen
from agent_relay.terminal.backends.choice import Backend, choose_backend

_INTERRUPTED = 130  # as for Ctrl-C anywhere else
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SHELL_STATUS = 128  # shells report a program that a signal ended as this and the signal's number


def run_demo(socket: str | None, state_dir: str | None, *, fast: bool, json: bool) -> int:
    screen = Screen()
    show = _Show(screen, fast=fast, silent=json)
    began = time.monotonic()
    try:
        evidence = show.run(socket, state_dir)
    except Left:
        return _INTERRUPTED
    if evidence is None:
        return _SHELL_STATUS + show.ended_by
    took_s = time.monotonic() - began
    if json:
        screen.json(as_json(evidence, took_s))
    else:
        show_summary(screen, evidence, took_s)
    return OK if holds(evidence) else FAILED


class _Show:
    def __init__(self, screen: Screen, *, fast: bool, silent: bool) -> None:
        self._pace = 0.0 if fast else 1.0
        self._silent = silent
        self._transcript = Transcript(screen, silent=silent)
        self.ended_by = 0

    def run(self, socket: str | None, state_dir: str | None) -> Evidence | None:
        """None: a signal ended it."""
        stage = Stage(socket, state_dir)
        cleanup = ExitStack()
        cleanup.callback(stage.close)
        try:
            return asyncio.run(self._play(stage, cleanup))
        except asyncio.CancelledError:
            return None
        finally:
            with _undisturbed():
                cleanup.close()

    async def _play(self, stage: Stage, cleanup: ExitStack) -> Evidence:
        task = asyncio.current_task()
        assert task is not None
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._end, number, task)
        choice = choose_backend(Backend.AUTO)
        cast = Cast(stage, choice, self._pace)
        cleanup.callback(cast.close)
        view: View | None = None
        if choice.tmux is not None and cast.server is not None and has_room() and not self._silent:
            view = View(stage, choice.tmux, cast.server)
            cleanup.callback(view.close)
        if choice.tmux is None:
            self._transcript.note("With tmux installed, the agents' terminals would be shown side by side.")
        return await Script(stage, cast, self._transcript, view, self._pace).play()

    def _end(self, number: signal.Signals, task: asyncio.Task[Evidence]) -> None:
        self.ended_by = number
        task.cancel()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Cleaning up takes a moment; a second Ctrl-C must not leave half of it behind."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, *_SIGNALS)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
