"""The transcript, a line at a time: coloured on a terminal, plain elsewhere, silent where only JSON is wanted."""

from __future__ import annotations

import contextlib
from typing import TextIO

from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Part, Screen

_NAME = 15
_STYLES = {
    "Alice": "bold cyan", "Bob": "bold magenta", "Carol": "bold yellow",
    "daemon": "bold blue", "dashboard": "bold blue", "person": "bold green",
}  # fmt: skip


class Transcript:
    def __init__(self, screen: Screen, *, silent: bool) -> None:
        self._screen = screen
        self._silent = silent
        self._may_be_gone = False
        self._scenes = 0

    def turn_to(self, stream: TextIO) -> None:
        """From now on it is written there, for as long as that is there: `View.check` reports that it is gone, and why."""
        self._screen = Screen(stream)
        self._may_be_gone = True

    def scene(self, title: str) -> None:
        self._scenes += 1
        if self._scenes > 1:
            self._line("")
        self._line((f"{self._scenes}. {title}", "bold"))

    def sent(self, sender: str, to: str, text: str, latency_s: float | None = None) -> None:
        pad = " " * max(1, _NAME - len(sender) - len(to) - 3)
        took = f"  {latency_s:.1f} s" if latency_s is not None else ""
        self._line(
            "   ", (sender, _STYLES.get(sender, "bold")), " → ", (to, _STYLES.get(to, "bold")), pad, clean_line(text),
            (took, "dim"),
        )  # fmt: skip

    def event(self, who: str, text: str) -> None:
        self._line("   ", (f"{who:<{_NAME}}", _STYLES.get(who, "bold")), (clean_line(text), "dim"))

    def alarm(self, who: str, text: str) -> None:
        self._line("   ", (f"{who:<{_NAME}}", _STYLES.get(who, "bold")), (clean_line(text), "bold red"))

    def note(self, text: str) -> None:
        self._line((text, "dim"))

    def _line(self, *parts: Part) -> None:
        if not self._silent:
            with contextlib.suppress(*((OSError,) if self._may_be_gone else ())):
                self._screen.line(*parts)
                self._screen.flush()
