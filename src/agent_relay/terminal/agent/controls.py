"""Controls from the daemon: what it asks of an agent's wrapper, and what it tells the agent."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

from agent_relay.protocol.payloads import AgentEventPayload, BusyPayload, ControlPayload
from agent_relay.terminal.agent.command_runner import describe_busy
from agent_relay.terminal.backends.terminal import Terminal, TerminalError
from agent_relay.terminal.delivery.door_selection import DoorSelection
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.delivery.typist import Typist
from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen
from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.reports.relay_link import DaemonEvent, RelayLink
from agent_relay.terminal.reports.reporter import Reporter
from agent_relay.terminal.requests.open_requests import Confirmations, OpenRequests
from agent_relay.terminal.requests.screen_answers import ScreenAnswerer
from agent_relay.terminal.screen.contents import Screen

_log = logging.getLogger("agent_relay.terminal")


class RequestAnswers:
    """Answers from elsewhere to what the agent, or the relay itself, asked a person."""

    def __init__(
        self, confirmations: Confirmations, requests: OpenRequests, doors: DoorSelection, answerer: ScreenAnswerer,
        reporter: Reporter,
    ) -> None:  # fmt: skip
        self._confirmations = confirmations
        self._requests = requests
        self._doors = doors
        self._answerer = answerer
        self._reporter = reporter

    async def give(self, control: ControlPayload) -> None:
        """On any doubt nothing is decided: the CLI's own dialog stays."""
        id_, text = control.id or "", control.text or ""
        answer = text if control.command == "answer" else ""
        decision = Decision(control.command != "deny", text, answer, control.by or "", control.option or "")
        try:
            await self._give(id_, control.command, decision)
        except (DoorError, TerminalError) as error:
            _log.info("%s was not answered: %s", id_, error)
            self._reporter.failed(id_, str(error), is_changed=isinstance(error, NotOpen))

    async def _give(self, id_: str, command: str, decision: Decision) -> None:
        """Through the door that asked; on the screen, where the door cannot or there is none."""
        if self._confirmations.answer(id_, decision):
            return
        door = self._doors.current
        asked, digest = self._requests.door_id_of(id_), self._requests.digest_of(id_)
        is_screens = bool(decision.option) and not self._requests.is_doors_option(id_, decision.option)
        if asked and door is not None and not is_screens:
            try:
                await door.answer(asked, decision)
                return
            except NotOpen:
                raise
            except DoorError:
                if not digest:
                    raise
        if not digest:
            raise NotOpen("It was already answered or withdrawn.")
        with self._requests.answering(id_, command):
            await self._answerer.answer(digest, decision)


class WrapperControls:
    """`stopping` is set when the daemon asks the agent to stop."""

    def __init__(
        self, link: RelayLink, stopping: asyncio.Event, queue: DeliveryQueue, typist: Typist, answers: RequestAnswers,
        terminal: Terminal[Screen], profile: Profile, reporter: Reporter,
    ) -> None:  # fmt: skip
        self._link = link
        self._stopping = stopping
        self._queue = queue
        self._typist = typist
        self._answers = answers
        self._terminal = terminal
        self._interrupt_key = profile.submit.interrupt_key
        self._reporter = reporter
        self._pauses = Pauses(self._note_paused)
        self._works: set[asyncio.Task[None]] = set()
        self.was_touched = False  # somebody typed into the agent's terminal from elsewhere

    async def run(self) -> None:
        while True:
            self._handle(await self._link.events.get())

    def finish(self) -> None:
        """Deals with what came last: the agent may have been asked to stop."""
        while not self._link.events.empty():
            self._handle(self._link.events.get_nowait())

    def _handle(self, event: DaemonEvent) -> None:
        match event:
            case ControlPayload():
                self._obey(event)
            case AgentEventPayload(type=type_, fields=fields):
                text = fields.get("text")
                if type_ in {"loop.detected", "message.waits"} and isinstance(text, str):
                    self._queue.notify(text)
            case BusyPayload():
                # At once, and again when it is over: whoever goes on writing ends with messages that are refused.
                has_room = f"{event.to} has room for messages again ({event.queue_depth} waiting)."
                self._queue.notify(has_room if event.cleared else describe_busy(event))

    def _obey(self, control: ControlPayload) -> None:
        _log.info("asked to %s", control.command)
        match control.command:
            case "pause":
                self._pauses.pause(control.for_ms, control.by or "")
            case "resume":
                self._pauses.resume()
            case "stop":
                self._stopping.set()
            case "interrupt":
                self.was_touched = True
                self._do(self._interrupt())
            case "input":
                self.was_touched = True
                self._do(self._terminal.write((control.text or "").replace("\n", "\r").encode("utf-8", "replace")))
            case "approve" | "deny" | "answer":
                self._do(self._answers.give(control))
            case other:
                _log.warning("the daemon asked for %r, which this version does not know", other)

    def _note_paused(self, is_paused: bool, by: str, has_keyboard: bool) -> None:
        if is_paused:
            self._typist.pause()
        else:
            self._typist.resume()
        self._reporter.paused(is_paused, by, has_keyboard=has_keyboard)

    async def _interrupt(self) -> None:
        key = self._interrupt_key
        await (self._terminal.write(key.encode()) if key else self._terminal.interrupt())

    def _do(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._works.add(task)
        task.add_done_callback(self._works.discard)


class Pauses:
    """Pauses of delivery: until somebody says otherwise, or until a time that was given has passed.

    The second is for whoever takes the keyboard. They ask again and again; when they are gone, the agent gets its messages.
    `tell` is called with whether the agent is kept from its messages, by whom, and whether only while somebody has its keyboard,
    whenever that may have changed.
    """

    def __init__(self, tell: Callable[[bool, str, bool], None]) -> None:
        self._tell = tell
        self._is_paused = False
        self._by = ""
        self._timer: asyncio.TimerHandle | None = None

    def pause(self, for_ms: int | None = None, by: str = "") -> None:
        """With a time, it takes the place of the one before; none at all ends it. The other kind of pause stays."""
        if for_ms is None:
            self._is_paused, self._by = True, by
        else:
            self._stop_timer()
            if for_ms:
                self._timer = asyncio.get_running_loop().call_later(for_ms / 1000, self._run_out)
        self._tell_all()

    def resume(self) -> None:
        """Ends both kinds."""
        self._is_paused = False
        self._stop_timer()
        self._tell_all()

    def _run_out(self) -> None:
        self._timer = None
        self._tell_all()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell_all(self) -> None:
        has_keyboard = not self._is_paused and self._timer is not None
        self._tell(self._is_paused or has_keyboard, self._by if self._is_paused else "", has_keyboard)
