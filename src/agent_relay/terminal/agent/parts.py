"""The parts of a wrapped agent, built in one order: each is given what it needs, and nothing is added to it later."""

from __future__ import annotations

import asyncio
from collections import deque

from agent_relay.terminal.agent.command_runner import CommandRunner, OpenQuestions
from agent_relay.terminal.agent.controls import RequestAnswers, WrapperControls
from agent_relay.terminal.agent.observer import AgentObserver
from agent_relay.terminal.agent.screen_reader import ScreenReader
from agent_relay.terminal.agent.setup import AgentSetup, StartPlan
from agent_relay.terminal.agent.status_line import StatusLine
from agent_relay.terminal.delivery.acknowledgements import Acknowledgements
from agent_relay.terminal.delivery.deliverer import Deliverer
from agent_relay.terminal.delivery.door_selection import DoorSelection
from agent_relay.terminal.delivery.handed_messages import HandedMessages
from agent_relay.terminal.delivery.inbox_file import InboxFile
from agent_relay.terminal.delivery.prompt_view import PromptView
from agent_relay.terminal.delivery.queue import DeliveryQueue
from agent_relay.terminal.delivery.typist import Typist
from agent_relay.terminal.doors.door import Door
from agent_relay.terminal.doors.versions import Versions
from agent_relay.terminal.output.transcripts.find import home_of
from agent_relay.terminal.output.transcripts.follow import SessionFollower
from agent_relay.terminal.output.watcher import Watcher
from agent_relay.terminal.profiles.tried_releases import whole_releases
from agent_relay.terminal.recordings.screen_log import ScreenLog
from agent_relay.terminal.reports.observed_events import ObservedEvents
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import Reporter
from agent_relay.terminal.requests.open_requests import Confirmations, OpenRequests
from agent_relay.terminal.requests.screen_answers import ScreenAnswerer


class AgentParts:
    """Those that whoever runs the agent uses. `stopping` is set to end it."""

    def __init__(
        self, setup: AgentSetup, plan: StartPlan, link: RelayLink, reporter: Reporter, queue: DeliveryQueue, log: ScreenLog,
        stopping: asyncio.Event,
    ) -> None:  # fmt: skip
        profile, run = setup.profile, plan.run
        self._setup = setup
        self._plan = plan
        # A door may tell the agent's words as exactly as a session file does.
        is_heard = profile.transcript is not None or setup.launcher is not None
        self.watcher = watcher = Watcher(
            profile, prefix=setup.prefix, nonce=run.nonce, is_strict=setup.is_strict, asks_for_reader=profile.is_generic,
            expects_transcript=is_heard,
        )  # fmt: skip

        versions = Versions(
            profile.title, profile.recorded, setup.is_strict_about_doors, whole_releases(profile.name)
        )  # fmt: skip
        notes = [*setup.notes, *plan.prepared.notes]
        self.doors = doors = DoorSelection(reporter, notes, versions, profile.doors, setup.findings)
        note_version = setup.note_version
        if note_version is not None:
            doors.call_when_changed(lambda: note_version(doors.version))
        acknowledgements = Acknowledgements(queue, InboxFile(setup.home.team), run, reporter)
        self.handed = handed = HandedMessages(queue, acknowledgements, doors, reporter)

        questions = OpenQuestions()
        confirmations = Confirmations(reporter)
        self.runner = CommandRunner(setup.home, link, run, queue.notify, questions, handed.note_answered, confirmations)

        requests = OpenRequests(reporter, profile)
        view = PromptView(watcher)
        self.observer = observer = AgentObserver(
            watcher, view, _make_follower(setup, plan, handed), ObservedEvents(run.id), self.runner, requests, queue, handed,
            doors, reporter, is_catching_up=plan.is_taken_up and plan.is_run_known,
        )  # fmt: skip
        self.reader = reader = ScreenReader(setup, log, watcher, view, observer.handle)
        self.terminal = terminal = reader.terminal

        show = terminal.show_status if setup.has_status else None
        self.status = StatusLine(setup.home.name, reporter, link, queue, show)

        keyboard = asyncio.Lock()
        typist = Typist(terminal, watcher, view, profile, reader.read, keyboard)
        answerer = ScreenAnswerer(terminal, watcher, profile, reader.read, keyboard)
        self.deliverer = Deliverer(
            plan.wording, profile, queue, handed, acknowledgements, doors, typist, run, reporter, questions.add,
            observer.was_seen, observer.is_idle,
        )  # fmt: skip
        answers = RequestAnswers(confirmations, requests, doors, answerer, reporter)
        self.controls = WrapperControls(link, stopping, queue, typist, answers, terminal, profile, reporter)

    def make_doors(self) -> deque[Door]:
        """Of the program that runs; they are tried while it starts, and until then nothing is handed in."""
        setup, prepared = self._setup, self._plan.prepared
        if setup.launcher is None:
            return deque()
        return deque(setup.launcher.doors(prepared.program, setup.place, prepared.facts, self.observer))


def _make_follower(setup: AgentSetup, plan: StartPlan, handed: HandedMessages) -> SessionFollower | None:
    transcript = setup.profile.transcript
    if transcript is None:
        return None
    mark = [plan.run.mark]
    return SessionFollower(
        setup.profile, setup.cwd, home=home_of(transcript, setup.environment), since_ms=plan.run.heard_since_ms,
        session_id=plan.prepared.session_id, is_shared=lambda: True,
        evidence=(lambda: mark) if setup.has_introduction else handed.direct_marks,
    )  # fmt: skip
