"""Runs the demonstration from its first line to its exit status, and cleans up however it ends."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from agent_relay.cli.commands.explain import timeline
from agent_relay.cli.demo.cast import Cast
from agent_relay.cli.demo.evidence import Evidence
from agent_relay.cli.demo.script import YES, Demonstration
from agent_relay.cli.demo.stage import Stage
from agent_relay.cli.demo.transcript import Transcript
from agent_relay.cli.demo.view import Left, View, has_room
from agent_relay.cli.failures import FAILED, OK
from agent_relay.cli.output.formats import count, format_span
from agent_relay.cli.output.message_view import text_of
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Part, Screen
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
        evidence = await Demonstration(stage, cast, self._transcript, view, self._pace).play()
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


# --- the end: what was counted and measured, for people and for programs --------------------------------------------


def holds(evidence: Evidence) -> bool:
    """Once each, in order, and nothing in the dialog but what the person typed."""
    return evidence.verdict.holds and evidence.keys == YES


def show_summary(screen: Screen, evidence: Evidence, took_s: float) -> None:
    verdict, crash = evidence.verdict, evidence.crash
    good = holds(evidence)
    screen.line("")
    end = "Every message arrived once and in order" if good else "The promise was broken"
    screen.line((f"{end}, despite a daemon crash, in {took_s:.0f} s.", "bold green" if good else "bold red"))
    screen.line("")
    stray = len(evidence.keys) - evidence.keys.endswith(YES)
    wrong = verdict.doubled + verdict.unexpected
    facts: list[tuple[str, str, bool]] = [
        ("delivered", f"{verdict.delivered} of {verdict.expected}, of {count(verdict.accepted, 'message')}",
         verdict.delivered == verdict.expected),
        ("faults", f"lost {verdict.lost}, doubled {wrong}, out of order {verdict.out_of_order}",
         not (verdict.lost or wrong or verdict.out_of_order)),
        ("from print to screen", _latencies(evidence), True),
        ("the dialog", f"open for {evidence.open_s:.1f} s; the relay typed {count(stray, 'key')} into it", not stray),
        ("the crash", f"no daemon for {crash.gone_s:.1f} s; {count(crash.printed, 'message')} printed meanwhile", True),
    ]  # fmt: skip
    for title, text, is_good in facts:
        mark: Part = ("ok   ", "green") if is_good else ("WRONG", "bold red")
        screen.line("  ", mark, "  ", (f"{title:<22}", "dim"), text)
    for difference in evidence.differences:
        screen.line("         ", (clean_line(difference), "red"))
    screen.line("")
    message = evidence.explained.message
    screen.line((f"`agent-relay explain` of {text_of(message)!r}, which went through the crash:", "dim"))
    before: int | None = None
    for at, event, rest in timeline(message, evidence.explained.trail):
        gap = "" if before is None else f"+{format_span(max(0, at - before))}"
        screen.line((f"{gap:>12}", "dim"), "  ", (event, "green"), rest)
        before = at
    screen.flush()


def _latencies(evidence: Evidence) -> str:
    known = sorted(arrival.latency_s for arrival in evidence.arrivals if arrival.latency_s is not None)
    if not known:
        return "not measured"
    best, middle, most = (format_span(round(1000 * each)) for each in (known[0], statistics.median(known), known[-1]))
    return f"{best} minimum, {middle} median, {most} maximum"


def as_json(evidence: Evidence, took_s: float) -> dict[str, Any]:
    return {
        "holds": holds(evidence),
        **dataclasses.asdict(evidence.verdict),
        "differences": evidence.differences,
        "took_s": round(took_s, 3),
        "dialog": {"open_s": round(evidence.open_s, 3), "keys": evidence.keys},
        "crash": {"gone_s": round(evidence.crash.gone_s, 3), "printed": evidence.crash.printed},
        "arrivals": [
            {"from": one.sender, "to": one.to, "text": one.text,
             "print_to_screen_ms": None if one.latency_s is None else round(one.latency_s * 1000)}
            for one in evidence.arrivals
        ],
        "explained": {"message": evidence.explained.message, "trail": evidence.explained.trail},
    }  # fmt: skip
