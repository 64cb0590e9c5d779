"""The status line of an agent: who this is, how it is reached, and whether it waits for something.

The person at its terminal sees it in the bar of the agent's tmux, and as the title of their window. The same watch says when a
program has shown no prompt for so long that this is no start any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from agent_relay.protocol.holds import Hold, HoldReason
from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.backends.terminal import TerminalError
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import CurrentState, Reporter

STARTING_S = 30.0  # for a prompt or a dialog to be recognised; a program that takes longer has another look
_STARTING, _WAITING = "starting", "waiting"
_FINDINGS = {
    HoldReason.PROMPT.value: "prompt not recognised",
    HoldReason.DECISION.value: "may be asking for a decision",
    HoldReason.DRAFT.value: "a draft is in the composer",
    HoldReason.SCROLLED_BACK.value: "scrolled back",
    HoldReason.NOT_TAKEN.value: "not reading what was typed",
    HoldReason.PROGRAM.value: "nothing can be typed",
}


class StatusLine:
    """`show` puts the line where the person sees it; None: nowhere."""

    def __init__(
        self, name: str, reporter: Reporter, link: RelayLink, queue: DeliveryQueue,
        show: Callable[[str], Awaitable[None]] | None,
    ) -> None:  # fmt: skip
        self._name = name
        self._reporter = reporter
        self._link = link
        self._queue = queue
        self._show = show
        self._changed = asyncio.Event()
        self._shown = ""
        self._is_found = False  # we said that the start takes too long
        for part in (reporter, link, queue):
            part.call_when_changed(self._changed.set)

    async def run(self) -> None:
        starting_until = asyncio.get_running_loop().time() + STARTING_S
        while True:
            self._changed.clear()
            is_starting = self._reporter.current.state == _STARTING
            self._judge_start(is_starting=is_starting, is_late=asyncio.get_running_loop().time() >= starting_until)
            await self._update()
            try:
                async with asyncio.timeout_at(starting_until if is_starting and not self._is_found else None):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def _judge_start(self, *, is_starting: bool, is_late: bool) -> None:
        """A start that goes on for ever is something to do something about."""
        if is_starting and is_late and not self._is_found:
            self._is_found = True
            if not self._reporter.current.hold:
                self._reporter.held(Hold(HoldReason.PROMPT.value))
        elif not is_starting and self._is_found:
            self._is_found = False
            if self._reporter.current.hold == HoldReason.PROMPT.value:
                self._reporter.held(None)

    async def _update(self) -> None:
        line = describe_status(
            self._name, self._reporter.current, self._queue.messages_waiting, is_away=not self._link.is_ready
        )  # fmt: skip
        if self._show is not None and line != self._shown:
            with contextlib.suppress(TerminalError):  # the terminal is on its way out
                await self._show(line)
            self._shown = line


def describe_status(name: str, now: CurrentState, waiting: int, *, is_away: bool) -> str:
    """One line, without marks that tmux would take for a format."""
    matter = _describe_matter(now)
    if is_away:
        matter = "relay away"
    counted = f", {waiting} wait{'s' if waiting == 1 else ''}" if waiting else ""
    return " · ".join(clean(part).replace("#", "") for part in (name, now.door or "finding a way in", f"{matter}{counted}"))


def _describe_matter(now: CurrentState) -> str:
    if now.state == _WAITING:
        return "asks for a decision"
    if now.is_paused:
        return "paused"
    return _FINDINGS.get(now.hold, now.state)
