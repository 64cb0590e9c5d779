"""The script of the demonstration, scene by scene, and the checks at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from agent_relay.cli.demo.cast import Cast
from agent_relay.cli.demo.evidence import Evidence, collect
from agent_relay.cli.demo.game import GUESS_NOW, GUESSES, NAMES, OPENING, WHILE_ASKING, all_sayings
from agent_relay.cli.demo.reports import Report, Reports
from agent_relay.cli.demo.stage import Stage
from agent_relay.cli.demo.transcript import Transcript
from agent_relay.cli.demo.view import View
from agent_relay.cli.failures import Failure
from agent_relay.cli.project.link import observe
from agent_relay.protocol.message_states import MessageState

PERSON = "person"
YES = "1"
ASKED, ELSEWHERE = "Alice", ("Bob", "Carol")  # whose dialog opens, and who goes on meanwhile
_POLL_S = 0.05
_PATIENCE_S = 60.0  # without anything happening on any screen; a turn takes two seconds, on a loaded machine ten
_SETTLE_S = 10.0
_DIALOG_S = 2.0  # the dialog stays open so long after the last message for it was stored
_DEAD_S = 0.8  # the daemon stays dead so long after the guesses were printed
_LOOK_S = 2.0  # for a person to see the end


class Demonstration:
    def __init__(self, stage: Stage, cast: Cast, transcript: Transcript, view: View | None, pace: float) -> None:
        self._stage = stage
        self._cast = cast
        self._transcript = transcript
        self._view = view
        self._pace = pace
        self._reports = Reports({name: cast.record(name) for name in NAMES})
        self._expected = sum(len(saying.to) for saying in all_sayings())
        self._gone = (0.0, 0.0)  # from when to when there was no daemon

    async def play(self) -> Evidence:
        try:
            for scene in (self._meet, self._guess, self._ask_the_person, self._crash, self._finish):
                await scene()
            return await collect(self._stage.place, self._reports, self._gone)
        finally:
            self._reports.close()

    # --- scenes ------------------------------------------------------------------------------------------------------

    async def _meet(self) -> None:
        self._transcript.scene("Three agents, each in its own terminal")
        began = time.monotonic()
        await self._stage.start_daemon()
        self._transcript.event("daemon", f"up after {_span(time.monotonic() - began)}, pid {self._stage.pid}")
        url = await self._stage.dashboard()
        if url is not None:
            self._transcript.event("dashboard", f"{url} shows all of this in a browser, live")
        # The first one also starts the tmux server that all share; it is there before the others come.
        self._cast.start(NAMES[0])
        await self._until(lambda: bool(self._reports.of("started")), "the first agent starts")
        self._cast.start(*NAMES[1:])
        await self._until(lambda: len(self._reports.of("started")) == len(NAMES), "the agents start")
        if self._view is not None:
            self._transcript.turn_to(await self._view.open())
            await self._until(self._know_their_widths, "the agents learn how wide their terminals are")
        await self._pause(1.0)

    async def _guess(self) -> None:
        self._transcript.scene("A game: Alice thinks of a thing, the others guess it")
        self._transcript.sent(PERSON, ASKED, OPENING)
        await self._cast.type_keys(ASKED, f"{OPENING}\r")
        await self._until(lambda: bool(self._reports.of("asked")), "the dialog opens")

    async def _ask_the_person(self) -> None:
        self._transcript.scene("A dialog opens, and messages pile up behind it")
        before = len(self._reports.of("entered", ASKED)) - 1  # the first came from the person
        await self._until(lambda: self._are_stored_for(ASKED, before + WHILE_ASKING), "messages wait for the dialog")
        self._transcript.event(ASKED, f"{WHILE_ASKING} messages wait; nothing is typed into the dialog")
        await self._pause(_DIALOG_S, at_least=1.0)
        self._transcript.sent(PERSON, ASKED, f"{YES}  (the person answers)")
        await self._cast.type_keys(ASKED, YES)
        await self._until(lambda: bool(self._reports.of("answered")), "the dialog is answered")

    async def _crash(self) -> None:
        await self._until(lambda: all(self._took(name, GUESS_NOW) for name in ELSEWHERE), "both are asked to guess")
        self._transcript.scene("The daemon is killed while they think, and restarted")
        self._stage.kill_daemon()
        killed_t = time.monotonic()
        self._transcript.alarm("daemon", "killed with kill -9")
        await self._until(lambda: len(self._printed(GUESSES)) == len(GUESSES), "the guesses are printed")
        for report in self._printed(GUESSES):
            noticed = "and does not notice" if report.t > killed_t else "just before"
            self._transcript.event(report.name, f"printed {report.text!r} {noticed}")
        await self._pause(_DEAD_S)
        await self._stage.start_daemon()
        self._gone = killed_t, time.monotonic()
        gone = _span(self._gone[1] - killed_t)
        self._transcript.event("daemon", f"restarted, pid {self._stage.pid}; it was down for {gone}")

    async def _finish(self) -> None:
        await self._until(lambda: len(self._arrived()) >= self._expected, "every message arrives")
        await self._until(self._is_settled, "the daemon's store says so too", _SETTLE_S)
        if self._view is not None:
            self._transcript.scene(f"All {self._expected} arrived; the summary follows")
            await self._pause(_LOOK_S)

    # --- what is waited for ------------------------------------------------------------------------------------------

    def _arrived(self) -> list[Report]:
        return [report for report in self._reports.of("entered") if report.message is not None]

    def _took(self, name: str, text: str) -> bool:
        return any(report.name == name and report.message and report.message[2] == text for report in self._arrived())

    def _printed(self, texts: tuple[str, ...]) -> list[Report]:
        return [report for report in self._reports.printed_messages() if report.saying and report.saying.text in texts]

    async def _know_their_widths(self) -> bool:
        """An agent that writes for another width would have its lines cut by the terminal, in the middle of words."""
        assert self._view is not None
        seen = {name: self._reports.of("size", name)[-1].columns for name in NAMES}
        return seen == await self._view.widths()

    async def _are_stored_for(self, name: str, number: int) -> bool:
        async with observe(self._stage.place) as relay:
            return len((await relay.history(to=name, limit=200)).messages) >= number

    async def _is_settled(self) -> bool:
        async with observe(self._stage.place) as relay:
            page = await relay.history(limit=200)
        return all(one["status"] == MessageState.DELIVERED for message in page.messages for one in message["recipients"])

    async def _until(self, condition: Callable[[], bool | Awaitable[bool]], what: str, patience_s: float = _PATIENCE_S) -> None:
        """Tells what is reported meanwhile. The patience begins anew with everything that happens."""
        deadline = time.monotonic() + patience_s
        while True:
            if self._look():
                deadline = time.monotonic() + patience_s
            found = condition()
            if found if isinstance(found, bool) else await found:
                return
            if time.monotonic() > deadline:
                raise Failure(f"Nothing happened for {patience_s:g} s while waiting for: {what}.")
            await asyncio.sleep(_POLL_S)

    async def _pause(self, seconds: float, at_least: float = 0.0) -> None:
        end = time.monotonic() + max(seconds * self._pace, at_least)
        while time.monotonic() < end:
            self._look()
            await asyncio.sleep(_POLL_S)

    def _look(self) -> bool:
        """True when there was something new. Raises when somebody has gone who should be there."""
        fresh = self._reports.read()
        for report in fresh:
            self._tell(report)
        self._cast.check()
        self._stage.check()
        if self._view is not None:
            self._view.check()
        return bool(fresh)

    def _tell(self, report: Report) -> None:
        match report.event:
            case "entered" if report.message is not None:
                sender, _, text = report.message
                self._transcript.sent(sender, report.name, text, self._reports.latency_s(report))
            case "asked":
                self._transcript.alarm(report.name, "asks the person: a dialog is open")
            case "started":
                self._transcript.event(report.name, f"is there ({self._cast.backend})")


def _span(seconds: float) -> str:
    return f"{seconds:.1f} s"
