"""What is heard of an agent, from its screen, its session file and its door, and who has to know of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from agent_relay.terminal.agent.command_runner import Speaker
from agent_relay.terminal.doors.door import DoorState, Request, Resolution
from agent_relay.terminal.output.commands import SendCommand
from agent_relay.terminal.output.observations import MessageTaken, Observation
from agent_relay.terminal.output.transcripts.follow import SessionFollower
from agent_relay.terminal.output.transcripts.records import Saying
from agent_relay.terminal.output.watcher import DOOR, CommandSeen, CommandUnfinished, Event, Noticed, StateChanged, Watcher
from agent_relay.terminal.reports.observed_events import Teller
from agent_relay.terminal.reports.reporter import Reporter
from agent_relay.terminal.requests.open_requests import Asking
from agent_relay.terminal.screen.state import State

if TYPE_CHECKING:
    from agent_relay.terminal.delivery.deliverer import Deliverer

_STATES = {State.STARTING: "starting", State.IDLE: "idle", State.WORKING: "working", State.DIALOG: "waiting"}
_log = logging.getLogger("agent_relay.terminal")


class Hearing:
    """Listens to the doors too. `typed_at`: when a person last typed; `entered_at`: when we last pressed Enter."""

    def __init__(
        self, watcher: Watcher, speaker: Speaker, reporter: Reporter, teller: Teller, now: Callable[[], float]
    ) -> None:  # fmt: skip
        self._teller = teller
        self._watcher = watcher
        self._speaker = speaker
        self._reporter = reporter
        self._now = now
        self._typed_at = float("-inf")
        self._door_state: DoorState | None = None
        self._door_waits_for = ""
        self._is_catching_up = False
        self.asking = Asking(reporter, watcher.profile)
        self.deliverer: Deliverer  # set once, right after both were made
        self.follower: SessionFollower | None = None

    @property
    def is_idle(self) -> bool:
        if self._door_state is not None:
            return self._door_state is DoorState.IDLE
        return self._watcher.state is State.IDLE

    def was_seen(self, words: str) -> bool:
        return self._watcher.shows(words) or (self.follower is not None and self.follower.holds(words))

    def person_typed(self) -> None:
        self._typed_at = self._now()

    # --- the screen and the session file -------------------------------------------------------------------------------

    def handle(self, events: Sequence[Event], entered_at: float) -> None:
        for event in events:
            match event:
                case CommandSeen():
                    self._speaker.say(event)
                case CommandUnfinished():
                    to = f" to {event.to}" if event.to else ""
                    self.deliverer.notify(f"Your message{to} was not sent. {event.reason}")
                case StateChanged():
                    self._note_state(event, entered_at)
                case Noticed(observation=observation):
                    self.door_noticed(observation)
                    self._note_dialog()

    def _note_state(self, event: StateChanged, entered_at: float) -> None:
        _log.info("state: %s", event.state.value)
        if event.state is State.WORKING:
            self.deliverer.note_working()
        self._report_state()
        self._note_dialog()
        if event.state is State.WORKING and self._typed_at > entered_at:
            self._typed_at = float("-inf")
            self._reporter.input()

    def _note_dialog(self) -> None:
        """What the screen asks is asked by the relay too. A door that tells states tells everything that is asked, and better."""
        if self._door_state is not None:
            self.asking.saw(None, has_two_views=False)
        else:
            self.asking.saw(self._watcher.dialog, has_two_views=self.deliverer.doorway.current is not None)

    def catch_up(self) -> None:
        """The session file holds what a wrapper before us has dealt with, but for commands that it could not carry out."""
        self._is_catching_up = True

    async def follow(self, over: asyncio.Event, entered_at: Callable[[], float]) -> None:
        if self.follower is None:
            return
        async for records in self.follower.follow(over):
            events = self._watcher.heard(records, self._now())
            if self._is_catching_up:
                events = [event for event in events if isinstance(event, CommandSeen)]
                self._is_catching_up = False
            self.handle(events, entered_at())

    def last_words(self) -> list[Event]:
        return self._watcher.heard(self.follower.poll(), self._now()) if self.follower is not None else []

    # --- the door ------------------------------------------------------------------------------------------------------

    def door_state(self, state: DoorState, waiting_for: str = "") -> None:
        self._door_state, self._door_waits_for = state, waiting_for
        if state is DoorState.WORKING:
            self.deliverer.note_working()
        self._note_dialog()
        self._report_state()
        self.deliverer.wake()

    def door_read(self, message_id: str, evidence: str) -> None:
        self.deliverer.note_read(message_id, evidence)

    def door_refused(self, message_id: str, reason: str, *, was_given: bool = False) -> None:
        self.deliverer.note_refused(message_id, reason, was_given=was_given)

    def door_rejected(self, message_id: str, reason: str) -> None:
        self.deliverer.note_rejected(message_id, reason)

    def door_asked(self, request: Request) -> None:
        self.asking.door_asked(request)

    def door_resolved(self, request_id: str, resolution: Resolution, by: str) -> None:
        self.asking.door_resolved(request_id, resolution, by)

    def door_noticed(self, observation: Observation) -> None:
        if isinstance(observation, MessageTaken):
            self.deliverer.note_taken(observation.text)
        for told in self._teller.tell(observation):
            self._reporter.noticed(*told)

    def door_said(self, to: str, body: str, id_: str) -> None:
        self._speaker.say(CommandSeen(self._now(), SendCommand((to,), body), DOOR, f"said:{id_}"))

    def door_heard(self, text: str, id_: str) -> None:
        self.handle(self._watcher.heard([Saying(id_, text, 0)], self._now()), self._now())

    def door_session(self, session_id: str) -> None:
        if self.follower is not None:
            self.follower.add_session(session_id)

    def door_lost(self, reason: str) -> None:
        self.deliverer.lose_door(reason)
        self.door_changed()

    def door_changed(self) -> None:
        """Another door is in use. While it is none, the screen is all there is."""
        if self.deliverer.doorway.current is None:
            self._door_state, self._door_waits_for = None, ""
            self.asking.door_gone()
        self._note_dialog()
        self._report_state()
        self.deliverer.wake()

    def _report_state(self) -> None:
        """A dialog that either of them sees is one; for the rest the door knows better than the screen."""
        dialog = self._watcher.dialog
        if self._watcher.state is State.DIALOG and dialog is not None:
            self._reporter.state("waiting", dialog.question or dialog.kind)
        elif self._door_state is not None:
            self._reporter.state(self._door_state.value, self._door_waits_for)
        else:
            self._reporter.state(_STATES[self._watcher.state])

    def evidence(self, mark: str, *, has_introduction: bool) -> Collection[str]:
        """Words that only this agent was given. The id of a message to several is in all their files."""
        return [mark] if has_introduction else self.deliverer.direct_marks[-50:]
