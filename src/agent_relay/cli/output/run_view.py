"""A run as it goes on: on a terminal a picture that is drawn anew, elsewhere a line for every step."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from agent_relay.cli.output.formats import format_span, format_time, now_ms
from agent_relay.cli.output.safe_text import clean_line
from agent_relay.cli.output.screen import Screen

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

    from agent_relay.patterns.run.runner import StepChange, StepProgress
    from agent_relay.patterns.tasks import Progress

_MARKS = {"begun": ("▶", "cyan"), "done": ("✔", "green"), "kept": ("✔", "dim"), "failed": ("✘", "red")}
_MOST_AGENTS = 10
_ENDED = {"answered", "failed", "released", "recalled"}


class _Row:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.status = "begun"
        self.begun_s = time.monotonic()
        self.ended_s: float | None = None
        self.done = self.total = 0
        self.agents: dict[str, str] = {}
        self.note = ""


class RunView:
    def __init__(self, screen: Screen, name: str, run: str, *, is_shown: bool = True) -> None:
        self._screen = screen
        self._name = name
        self._run = run
        self._is_shown = is_shown
        self._rows: dict[str, _Row] = {}
        self._live: Live | None = None

    def __enter__(self) -> RunView:
        if self._is_shown and self._screen.is_terminal:
            from rich.live import Live

            self._live = Live(get_renderable=self.draw, console=self._screen.console, refresh_per_second=4)
            self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def note(self, sentence: str) -> None:
        if self._live is not None:
            self._live.console.print(clean_line(sentence), style="dim")
        elif self._is_shown:
            self._screen.stream.write(clean_line(sentence) + "\n")
            self._screen.flush()

    def hear(self, change: StepChange | StepProgress) -> None:
        progress: Progress | None = getattr(change, "progress", None)
        if progress is None:
            self._hear_step(change)
        else:
            self._hear_progress(change.step, progress)

    def _hear_step(self, change: Any) -> None:
        row = self._rows.setdefault(change.step, _Row(change.pattern))
        row.status = change.status
        row.note = " ".join(change.failures)
        if change.status != "begun":
            row.ended_s = time.monotonic()
            row.agents.clear()
        self._line(change.step, change.status + (f": {row.note}" if row.note else ""))

    def _hear_progress(self, step: str, progress: Progress) -> None:
        row = self._rows[step]
        row.done, row.total = progress.done, progress.total
        if progress.kind in _ENDED:
            row.agents.pop(progress.agent, None)
        else:
            row.agents[progress.agent] = progress.kind.replace("_", " ")
        error = f": {progress.error}" if progress.error else ""
        self._line(step, f"{progress.done}/{progress.total} {progress.agent} {progress.kind.replace('_', ' ')}{error}")

    def _line(self, step: str, text: str) -> None:
        if self._is_shown and self._live is None:
            now = now_ms()
            self._screen.stream.write(f"{format_time(now, now)} {clean_line(step)} {clean_line(text)}\n")
            self._screen.flush()

    def draw(self) -> Text:
        """The picture: a line for each step that has begun, and for each agent of it that works."""
        from rich.text import Text

        picture = Text.assemble((clean_line(self._name), "bold"), (f"  {self._run}", "dim"))
        for step, row in list(self._rows.items()):
            mark, style = _MARKS[row.status]
            span = format_span(round(((row.ended_s or time.monotonic()) - row.begun_s) * 1000))
            count = f"  {row.done}/{row.total}" if row.total else ""
            picture.append(f"\n{mark} ", style)
            picture.append(clean_line(step), "bold")
            picture.append(f"  {row.pattern}{count}  {span}", "dim")
            if row.note:
                picture.append(f"  {clean_line(row.note)[:200]}", "yellow" if row.status != "failed" else "red")
            for agent, doing in list(row.agents.items())[:_MOST_AGENTS]:
                picture.append(f"\n    {clean_line(agent)}", "cyan")
                picture.append(f"  {doing}", "dim")
        return picture
