"""How the demonstration looks: a readable transcript, and the table at its end. Silent where only JSON is wanted."""

from __future__ import annotations

import time

from agent_relay.cli.demo.ledger import Verdict
from agent_relay.cli.safe_text import clean_line
from agent_relay.cli.screen import Column, Part, Screen

_NAME = 15
_STYLES = {"Alice": "bold cyan", "Bob": "bold magenta", "Carol": "bold yellow", "daemon": "bold blue"}


class Transcript:
    def __init__(self, screen: Screen, *, silent: bool) -> None:
        self._screen = screen
        self._silent = silent
        self._began = time.monotonic()
        self._scenes = 0

    def scene(self, title: str) -> None:
        self._scenes += 1
        self._line("")
        self._line((f"{self._scenes}. {title}", "bold"))

    def sent(self, sender: str, to: str, text: str) -> None:
        pad = " " * max(1, _NAME - len(sender) - len(to) - 3)
        self._line("   ", (sender, _STYLES.get(sender, "bold")), " → ", (to, _STYLES.get(to, "bold")), pad, clean_line(text))

    def receipt(self, text: str) -> None:
        self._line(" " * (_NAME + 3), (clean_line(text), "green"))

    def event(self, who: str, text: str) -> None:
        self._line("   ", (f"{who:<{_NAME}}", _STYLES.get(who, "bold")), (clean_line(text), "dim"))

    def alarm(self, who: str, text: str) -> None:
        self._line("   ", (f"{who:<{_NAME}}", _STYLES.get(who, "bold")), (clean_line(text), "bold red"))

    def summary(self, verdict: Verdict) -> None:
        self._line("")
        if self._silent:
            return
        rows: list[list[Part]] = [
            ["messages accepted", f"{verdict.accepted:,}", ""],
            ["deliveries", f"{verdict.delivered:,} of {verdict.expected:,}", _mark(verdict.delivered == verdict.expected)],
            ["lost", f"{verdict.lost:,}", _mark(not verdict.lost)],
            ["doubled", f"{verdict.doubled + verdict.unexpected:,}", _mark(not verdict.doubled + verdict.unexpected)],
            ["out of order", f"{verdict.out_of_order:,}", _mark(not verdict.out_of_order)],
        ]
        self._screen.table([Column("what"), Column("count", right=True), Column("")], rows)
        took = f"{time.monotonic() - self._began:.1f} s"
        end = "Every message arrived once and in order" if verdict.holds else "The promise was broken"
        self._line("")
        self._line((f"{end}, over a crash of the daemon, in {took}.", "bold green" if verdict.holds else "bold red"))

    def _line(self, *parts: Part) -> None:
        if not self._silent:
            self._screen.line(*parts)
            self._screen.flush()


def _mark(good: bool) -> Part:
    return ("ok", "green") if good else ("WRONG", "bold red")
