"""Runs the demonstration from its first line to its exit status, and cleans up however it ends."""

from __future__ import annotations

import asyncio
import contextlib
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
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.project.link import run
from agent_relay.terminal.backends.choice import Backend, choose_backend

_INTERRUPTED = 130  # as for Ctrl-C anywhere else
_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_SHELL_STATUS = 128  # shells report a program that a signal ended as this and the signal's number


def run_demo(socket: str | None, state_dir: str | None, *, fast: bool, stay: bool, json: bool) -> int:
    show = _Show(Screen(), fast=fast, stay=stay, json=json)
    try:
        show.run(socket, state_dir)
    except Left:
        return _INTERRUPTED
    if show.status is None:
        return _SHELL_STATUS + show.ended_by
    return show.status


class _Show:
    def __init__(self, screen: Screen, *, fast: bool, stay: bool, json: bool) -> None:
        self._screen = screen
        self._pace = 0.0 if fast else 1.0
        self._stay = stay
        self._json = json
        self._transcript = Transcript(screen, silent=json)
        self._began = time.monotonic()
        self.status: int | None = None  # None: a signal ended it before the end
        self.ended_by = 0

    def run(self, socket: str | None, state_dir: str | None) -> None:
        stage = Stage(socket, state_dir)
        cleanup = ExitStack()
        cleanup.callback(stage.close)
        try:
            with contextlib.suppress(asyncio.CancelledError):
                run(self._play(stage, cleanup))
        except KeyboardInterrupt:
            if self.status is None:
                raise
        finally:
            with _undisturbed():
                cleanup.close()

    async def _play(self, stage: Stage, cleanup: ExitStack) -> None:
        task = asyncio.current_task()
        assert task is not None
        for number in _SIGNALS:
            asyncio.get_running_loop().add_signal_handler(number, self._end, number, task)
        choice = choose_backend(Backend.AUTO)
        cast = Cast(stage, choice, self._pace)
        cleanup.callback(cast.close)
        view: View | None = None
        if choice.tmux is not None and cast.server is not None and has_room() and not self._json:
            view = View(stage, choice.tmux, cast.server)
            cleanup.callback(view.close)
        if choice.tmux is None:
            self._transcript.note("With tmux installed, the agents' terminals would be shown side by side.")
        evidence = await Script(stage, cast, self._transcript, view, self._pace).play()
        if view is not None:
            view.close()
        self._sum_up(evidence)
        if self._stay:
            await self._wait_for_the_person(await stage.dashboard(), stage.state_dir)

    def _sum_up(self, evidence: Evidence) -> None:
        took_s = time.monotonic() - self._began
        if self._json:
            self._screen.json(as_json(evidence, took_s))
        else:
            show_summary(self._screen, evidence, took_s)
        self.status = OK if holds(evidence) else FAILED

    async def _wait_for_the_person(self, url: str | None, state_dir: str) -> None:
        if not self._json:
            self._screen.line("")
            self._screen.line("The agents keep running", f"; watch them at {url}" if url else "", ". Press Ctrl-C to stop.")
            if url:
                self._screen.line(
                    (f"Its code works once, within a minute. For another one: agent-relay open --state-dir {state_dir}", "dim")
                )
            self._screen.flush()
        await asyncio.Event().wait()

    def _end(self, number: signal.Signals, task: asyncio.Task[None]) -> None:
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
