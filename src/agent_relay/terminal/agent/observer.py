"""The observer of an agent: hears of it from its screen, its session file and its door, and tells whoever has to know."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from agent_relay.protocol.requests import AgentRequest
from agent_relay.terminal.agent.command_runner import CommandRunner
from agent_relay.terminal.delivery.door_selection import DoorSelection
from agent_relay.terminal.delivery.handed_messages import HandedMessages
from agent_relay.terminal.delivery.prompt_view import PromptView
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.doors.door import DoorState, Resolution
from agent_relay.terminal.output.commands import SendCommand
from agent_relay.terminal.output.observations import MessageTaken, Observation
from agent_relay.terminal.output.transcripts.follow import SessionFollower
from agent_relay.terminal.output.transcripts.records import Saying
from agent_relay.terminal.output.watcher import DOOR, CommandSeen, CommandUnfinished, Event, Noticed, StateChanged, Watcher
from agent_relay.terminal.reports.observed_events import ObservedEvents
from agent_relay.terminal.reports.reporter import Reporter
from agent_relay.terminal.requests.open_requests import OpenRequests
from agent_relay.terminal.screen.state import State

_STATES = {State.STARTING: "starting", State.IDLE: "idle", State.WORKING: "working", State.DIALOG: "waiting"}
_log = logging.getLogger("agent_relay.terminal")


class AgentObserver:
    """Listens to the doors too. `is_catching_up`: the session file holds what a wrapper before us has dealt with, but for
    commands that it could not carry out."""

    def __init__(
        self, watcher: Watcher, view: PromptView, follower: SessionFollower | None, events: ObservedEvents,
        runner: CommandRunner, requests: OpenRequests, queue: DeliveryQueue, handed: HandedMessages, doors: DoorSelection,
        reporter: Reporter, *, is_catching_up: bool = False,
    ) -> None:  # fmt: skip
        self._watcher = watcher
        self._view = view
        self._follower = follower
        self._events = events
        self._runner = runner
        self._requests = requests
        self._queue = queue
        self._handed = handed
        self._doors = doors
        self._reporter = reporter
        self._is_catching_up = is_catching_up
        self._door_state: DoorState | None = None
        self._door_waits_for = ""
        self._input_told_at = float("-inf")
        doors.call_when_changed(self._note_door)

    def is_idle(self) -> bool:
        if self._door_state is not None:
            return self._door_state is DoorState.IDLE
        return self._watcher.state is State.IDLE

    def was_seen(self, words: str) -> bool:
        return self._watcher.shows(words) or (self._follower is not None and self._follower.holds(words))

    # --- the screen and the session file -------------------------------------------------------------------------------

    def handle(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case CommandSeen():
                    self._runner.say(event)
                case CommandUnfinished():
                    to = f" to {event.to}" if event.to else ""
                    self._queue.notify(f"Your message{to} was not sent. {event.reason}")
                case StateChanged():
                    self._note_state(event)
                case Noticed(observation=observation):
                    self.door_noticed(observation)
                    self._note_dialog()

    def _note_state(self, event: StateChanged) -> None:
        _log.info("state: %s", event.state.value)
        if event.state is State.WORKING:
            self._handed.note_working()
        self._report_state()
        self._note_dialog()
        typed_at = self._view.person_typed_at
        if event.state is State.WORKING and typed_at > max(self._view.last_enter, self._input_told_at):
            self._input_told_at = typed_at
            self._reporter.input()

    def _note_dialog(self) -> None:
        """Asks what the screen asks by the relay too. A door that tells states tells everything that is asked, and better."""
        if self._door_state is not None:
            self._requests.saw(None, has_two_views=False)
        else:
            self._requests.saw(self._watcher.dialog, has_two_views=self._doors.current is not None)

    async def follow(self, over: asyncio.Event) -> None:
        """Hears what the session file tells, until `over` is set."""
        if self._follower is None:
            return
        async for records in self._follower.follow(over):
            events = self._watcher.heard(records, _now())
            if self._is_catching_up:
                events = [event for event in events if isinstance(event, CommandSeen)]
                self._is_catching_up = False
            self.handle(events)

    def hear_last_words(self) -> None:
        if self._follower is not None:
            self.handle(self._watcher.heard(self._follower.poll(), _now()))

    # --- the door ------------------------------------------------------------------------------------------------------

    def door_state(self, state: DoorState, waiting_for: str = "") -> None:
        self._door_state, self._door_waits_for = state, waiting_for
        if state is DoorState.WORKING:
            self._handed.note_working()
        self._note_dialog()
        self._report_state()
        self._queue.wake()

    def door_read(self, message_id: str, evidence: str) -> None:
        self._handed.note_read(message_id, evidence)

    def door_refused(self, message_id: str, reason: str, *, was_given: bool = False) -> None:
        self._handed.note_refused(message_id, reason, was_given=was_given)

    def door_rejected(self, message_id: str, reason: str) -> None:
        self._handed.note_rejected(message_id, reason)

    def door_asked(self, request: AgentRequest) -> None:
        self._requests.door_asked(request)

    def door_resolved(self, request_id: str, resolution: Resolution, by: str) -> None:
        self._requests.door_resolved(request_id, resolution, by)

    def door_noticed(self, observation: Observation) -> None:
        if isinstance(observation, MessageTaken):
            self._view.note_taken(observation.text)
            self._handed.note_taken(observation.text)
        for told in self._events.of(observation):
            self._reporter.noticed(*told)

    def door_said(self, to: str, body: str, id_: str) -> None:
        self._runner.say(CommandSeen(_now(), SendCommand((to,), body), DOOR, f"said:{id_}"))

    def door_heard(self, text: str, id_: str) -> None:
        self.handle(self._watcher.heard([Saying(id_, text, 0)], _now()))

    def door_session(self, session_id: str) -> None:
        if self._follower is not None:
            self._follower.add_session(session_id)

    def door_lost(self, reason: str) -> None:
        self._handed.lose_door(reason)
        self._note_door()

    def _note_door(self) -> None:
        """Another door is in use. While it is none, the screen is all there is."""
        if self._doors.current is None:
            self._door_state, self._door_waits_for = None, ""
            self._requests.door_gone()
        self._note_dialog()
        self._report_state()
        self._queue.wake()

    def _report_state(self) -> None:
        """A dialog that either of them sees is one; for the rest the door knows better than the screen."""
        dialog = self._watcher.dialog
        if self._watcher.state is State.DIALOG and dialog is not None:
            self._reporter.state("waiting", dialog.question or dialog.kind)
        elif self._door_state is not None:
            self._reporter.state(self._door_state.value, self._door_waits_for)
        else:
            self._reporter.state(_STATES[self._watcher.state])


def _now() -> float:
    return asyncio.get_running_loop().time()
