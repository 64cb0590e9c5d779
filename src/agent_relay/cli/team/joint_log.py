"""The terminal output of several agents in one stream, each line with its agent's name."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from typing import TYPE_CHECKING

from agent_relay.cli.interrupts import ending_in_order
from agent_relay.cli.output.safe_text import clean_block
from agent_relay.cli.output.screen import Screen
from agent_relay.cli.project.link import run
from agent_relay.terminal.agent.launch import Home
from agent_relay.terminal.recordings.screen_log import LogFollower, LogReader, is_being_written

if TYPE_CHECKING:
    from agent_relay.sdk.locate import Place

_POLL_S = 0.2  # looks at the times of one file for each agent; nothing is read while they stay
_STILL_S = 1.0  # for so long a screen stays as it is before it is shown; a spinner never does


class _Source:
    """One agent's terminal."""

    def __init__(self, name: str, folder: str) -> None:
        self.name = name
        self.is_over = False
        self._folder = folder
        self._reader = LogReader(folder)
        self._follower = LogFollower()
        self._rows: list[str] = []
        self._changed_s = 0.0
        self._is_shown = True

    def begin(self, lines: int) -> list[str]:
        news = self._reader.poll()
        if news is None:
            return []
        self._rows, self.is_over = news.rows, news.is_over
        self._follower.take([], news.rows, is_still=True)
        return (news.scrolled + news.rows)[-lines:]

    def look(self) -> list[str]:
        self.is_over = not is_being_written(self._folder)  # before the last look: what is there by then is all there will be
        news, found = self._reader.poll(), list[str]()
        if news is not None:
            self._rows, self._changed_s, self._is_shown = news.rows, time.monotonic(), False
            found = self._follower.take(news.scrolled, news.rows, is_still=False)
            self.is_over = self.is_over or news.is_over
        if not self._is_shown and (self.is_over or time.monotonic() - self._changed_s >= _STILL_S):
            self._is_shown = True
            found += self._follower.take([], self._rows, is_still=True)
        return found

    def close(self) -> None:
        self._reader.close()


def show_logs(place: Place, names: list[str], lines: int, *, follow: bool, as_json: bool) -> None:
    screen, width = Screen(), max(map(len, names))

    def show(name: str, found: list[str]) -> None:
        for line in found:
            if as_json:
                screen.json_line({"agent": name, "line": line})
            else:
                screen.line((f"{name.ljust(width)} │ ", "cyan"), clean_block(line))
        screen.flush()

    async def go_on(sources: list[_Source]) -> None:
        while not all(source.is_over for source in sources):
            await asyncio.sleep(_POLL_S)
            for source in sources:
                if not source.is_over:
                    show(source.name, source.look())

    with contextlib.ExitStack() as stack:
        stack.enter_context(ending_in_order())
        sources = [_Source(name, Home(place.state_dir, name).team) for name in names]
        for source in sources:
            stack.callback(source.close)
            show(source.name, source.begin(lines))
        if follow:
            run(go_on(sources))
            sys.stderr.write("All of them have ended.\n")
