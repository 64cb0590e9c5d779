"""One agent under the relay: a program in a terminal on one side, a client of the daemon on the other.

What runs here, each a task of its own: `_watch` reads the screen when there is something to read, `_follow` the CLI's
session file, `_receive` takes messages from the daemon, the deliverer hands them in one by one, the speaker carries out
what the agent asked for, and the outbox folder is watched. A daemon that goes away is waited for; the agent goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_relay.protocol.payloads import AgentEvent, Busy, Control
from agent_relay.protocol.places import ENV_TOKEN
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.terminal.agent.command_runner import Speaker, describe_busy
from agent_relay.terminal.agent.launch import Home
from agent_relay.terminal.agent.observer import Hearing
from agent_relay.terminal.agent.plain_start import FailedStart, announce, find_failed_start, last_lines
from agent_relay.terminal.backends.program import check_program
from agent_relay.terminal.backends.terminal import ExitStatus, Terminal, TerminalEnded, TerminalError, TerminalListener
from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.delivery.consoles import waits_for_line
from agent_relay.terminal.delivery.deliverer import Deliverer, Manners
from agent_relay.terminal.delivery.doorway import Doorway
from agent_relay.terminal.delivery.inbox_file import InboxFile
from agent_relay.terminal.delivery.message_text import introduction_for_start
from agent_relay.terminal.delivery.pauses import Pauses
from agent_relay.terminal.delivery.typist import Typist
from agent_relay.terminal.doors.door import Decision, DoorError, NotOpen
from agent_relay.terminal.doors.launch import AgentPlace, Launcher, Note, PreparedStart, Program
from agent_relay.terminal.doors.versions import Versions
from agent_relay.terminal.files.project_files import ProjectFiles
from agent_relay.terminal.files.run_file import RunFile, digest
from agent_relay.terminal.output.commands import words_of
from agent_relay.terminal.output.parser import DEFAULT_PREFIX, Syntax
from agent_relay.terminal.output.transcripts.find import home_of
from agent_relay.terminal.output.transcripts.follow import SessionFollower
from agent_relay.terminal.output.watcher import CommandSeen, Event, Watcher
from agent_relay.terminal.profiles.profile import Profile
from agent_relay.terminal.recordings.live_screen import LiveScreen
from agent_relay.terminal.recordings.recorder import Recorder
from agent_relay.terminal.recordings.screen_log import ScreenLog
from agent_relay.terminal.reports.observed_events import Teller
from agent_relay.terminal.reports.reporter import Reporter
from agent_relay.terminal.requests.confirmations import Confirmations
from agent_relay.terminal.requests.screen_answers import ScreenAnswerer
from agent_relay.terminal.screen.contents import Screen

STOP_GRACE_S = 5.0
LAST_WORDS_S = 5.0  # for what the agent said last to be sent
_RETRY_S = 1.0
_FAR_S = 60.0

_log = logging.getLogger("agent_relay.terminal")


class Setup(Struct, frozen=True):
    home: Home
    profile: Profile
    argv: Sequence[str]
    cwd: str
    environment: Mapping[str, str]
    prefix: str = DEFAULT_PREFIX
    has_introduction: bool = True
    is_strict: bool = False  # on the screen only commands with the run's nonce count
    project_id: str = ""
    root: str = ""  # of the project
    recorder: Recorder | None = None
    launcher: Launcher | None = None  # the CLI's doors; without, everything is typed
    is_strict_about_doors: bool = False  # only those of a tested version
    notes: tuple[Note, ...] = ()  # why there is no launcher
    is_changed: bool = False  # flags or variables were added to what the person wrote
    announcement: str = ""  # shown in the terminal before the program
    enclose: Callable[[Program], Program] | None = None  # puts the program behind a wall


MakeTerminal = Callable[[TerminalListener], Terminal[Screen]]
MakeClient = Callable[[], RelayClient]


class Wrapper:
    """`relay` is connected. `make_client` makes another one, should the daemon refuse this one for good."""

    def __init__(self, setup: Setup, relay: RelayClient, make_client: MakeClient, make_terminal: MakeTerminal) -> None:
        self._setup = setup
        self._relay = relay
        self._make_client = make_client
        self._terminal = make_terminal(self)
        profile = setup.profile
        # A door may tell the agent's words as exactly as a session file does.
        is_heard = profile.transcript is not None or setup.launcher is not None
        self._watcher = Watcher(profile, prefix=setup.prefix, expects_transcript=is_heard)
        self._watcher.asks_for_reader = profile.is_generic
        keyboard = asyncio.Lock()
        self._typist = Typist(self._terminal, self._watcher, profile, self._read, keyboard)
        self._log = ScreenLog(setup.home.team)
        self._live = LiveScreen(setup.home.team, self._terminal.draw)
        self._run_file = RunFile(setup.home.team)
        self._reporter = Reporter(lambda: self._relay, ProjectFiles(setup.cwd, setup.root, (setup.home.state_dir,)))
        self._confirmations = Confirmations(self._reporter)
        self._speaker = Speaker(
            setup.home, lambda: self._relay, self._run_file, self._tell, self._note_answered, self._confirmations
        )  # fmt: skip
        self._hearing = Hearing(
            self._watcher, self._speaker, self._reporter, Teller(lambda: self._run_file.id), lambda: self._now
        )  # fmt: skip
        self._deliverer = self._hearing.deliverer = Deliverer(
            Manners(setup.home.name, profile, setup.prefix), self._typist, InboxFile(setup.home.team), self._run_file,
            self._reporter, self._speaker.expect_answer, self._hearing.was_seen, lambda: self._hearing.is_idle,
        )  # fmt: skip
        self._answerer = ScreenAnswerer(self._terminal, self._watcher, profile, self._read, keyboard)
        self._pauses = Pauses(self._note_paused)
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._reading = asyncio.Lock()
        self._over = asyncio.Event()
        self._works: set[asyncio.Task[None]] = set()
        self._started_at = 0.0
        self._has_doors = False  # the program was prepared for them
        self._was_touched = False  # somebody typed into it from elsewhere
        self._rows: tuple[str, ...] = ()  # on the screen, when it was last read
        self.failed_start: FailedStart | None = None  # known once the program has ended
        self._listen_to(relay)

    # --- the whole ---------------------------------------------------------------------------------------------------

    async def run(self, is_ready: Callable[[], None] | None = None) -> ExitStatus:
        """Until the program ends, or `stop` is called; raises TerminalError when it cannot be started."""
        await self._start()
        if is_ready is not None:
            is_ready()
        self._reporter.joined()
        jobs = [
            self._watch, self._follow, self._receive, self._deliverer.run, self._speaker.run, self._watch_outbox,
            self._deliverer.doorway.run, self._live.run,
        ]  # fmt: skip
        tasks = [asyncio.create_task(self._keep(job)) for job in jobs]
        try:
            status = await self._until_the_end()
            _log.info("the program ended with status %d", status.code)
            failed = await self._judge(status)
            self._watcher.has_finished = not self._stopping.is_set() and not status.was_killed
            await self._last_words()
            if failed is not None:
                self.failed_start = replace(failed, last_lines=last_lines(self._rows))
                _log.warning("%s", self.failed_start.text)
        finally:
            self._over.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._log.close()
            self._live.close()
            with contextlib.suppress(TerminalEnded):
                await self._terminal.stop(STOP_GRACE_S)
            await self._deliverer.doorway.close()
        return status

    def stop(self) -> None:
        self._stopping.set()

    def type_in(self, text: str) -> None:
        """As the person would type it, once the program is ready."""
        self._deliverer.type_in(text)

    def kill(self) -> None:
        """From any thread, where the loop is of no use any more."""
        self._terminal.kill()

    async def _judge(self, status: ExitStatus) -> FailedStart | None:
        after_s = self._now - self._started_at
        typed_ms_ago: int | None = None
        with contextlib.suppress(TerminalError):
            typed_ms_ago = (await self._terminal.person()).typed_ms_ago
        return find_failed_start(
            self._setup.argv, status, after_s, self._watcher.state, is_changed=self._setup.is_changed, has_doors=self._has_doors,
            was_touched=self._was_touched or self._stopping.is_set() or typed_ms_ago is not None,
        )  # fmt: skip

    def take_over(self, other: Wrapper) -> None:
        """The messages that another wrapper of this agent has left over. Before `run`."""
        self._deliverer.take_over(other._deliverer)

    @property
    def relay(self) -> RelayClient:
        return self._relay

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    async def _start(self) -> None:
        self._reporter.process(None)
        await self._start_program()
        self._reporter.process(self._terminal.pid)

    async def _start_program(self) -> None:
        if isinstance(self._terminal, TmuxTerminal) and await self._terminal.is_running():
            # We hold the name, so no other wrapper does: the one that started the program has died.
            await self._terminal.reattach()
            await self._take_up()
            return
        setup = self._setup
        self._run_file.begin()
        self._use_nonce()
        self._log.begin()
        place = AgentPlace(setup.home.name, setup.home.team, setup.project_id)
        program = Program(tuple(setup.argv), setup.cwd, {**setup.environment, ENV_TOKEN: self._run_file.token})
        prepared = PreparedStart(program)
        if setup.launcher is not None:
            introduction = (
                introduction_for_start(setup.home.name, self._prefix, self._signed_prefix) if setup.has_introduction else ""
            )
            prepared = await asyncio.to_thread(setup.launcher.prepare, program, place, introduction)  # it may ask for a version
            self._run_file.note_facts(prepared.facts)
        started = prepared.program
        self._has_doors = started != program
        if setup.enclose is not None:
            check_program(started.argv, started.cwd, started.environment)
            started = setup.enclose(started)
        if setup.announcement:
            self._watcher.expect_echo(setup.announcement)
            started = announce(started, setup.announcement)
        self._started_at = self._now
        await self._terminal.start(started.argv, cwd=started.cwd, environment=started.environment)
        self._open_doors(prepared)
        if setup.has_introduction and not prepared.is_introduced:
            self._deliverer.introduce()

    @property
    def _signed_prefix(self) -> str:
        return Syntax(self._setup.prefix, nonce=self._run_file.nonce).signed_prefix

    @property
    def _prefix(self) -> str:
        """What the agent is taught to begin a message with."""
        return self._signed_prefix if self._setup.is_strict else self._setup.prefix

    def _use_nonce(self) -> None:
        """Once it is known which run this is."""
        self._watcher.use_nonce(self._run_file.nonce, is_strict=self._setup.is_strict)
        self._deliverer.manners = Manners(self._setup.home.name, self._setup.profile, self._prefix, self._signed_prefix)

    async def _take_up(self) -> None:
        """What was said while nobody listened is in the session file; without one it is not to be told from what was sent."""
        if self._run_file.take_up():
            self._hearing.catch_up()
        self._use_nonce()
        events = self._watcher.saw(await self._terminal.screen(), self._now)
        self._watcher.adopt()
        _log.info("took up the program that was still running")
        said = [event.command for event in events if isinstance(event, CommandSeen)]
        if self._setup.profile.transcript is None and said and digest(words_of(said[-1])) != self._run_file.last_said:
            self._tell("The relay was away for a while. Messages you wrote meanwhile were not sent; send them again.")
        setup = self._setup
        facts = self._run_file.facts
        self._open_doors(
            PreparedStart(Program(tuple(setup.argv), setup.cwd, setup.environment), facts, session_id=facts.get("session"))
        )

    def _open_doors(self, prepared: PreparedStart) -> None:
        """They are tried while the program starts; until then nothing is handed in."""
        setup = self._setup
        place = AgentPlace(setup.home.name, setup.home.team, setup.project_id)
        doors = [] if setup.launcher is None else setup.launcher.doors(prepared.program, place, prepared.facts, self._hearing)
        versions = Versions(setup.profile.title, setup.profile.recorded, setup.is_strict_about_doors)
        self._deliverer.doorway = Doorway(
            doors, self._reporter, self._hearing.door_changed, [*setup.notes, *prepared.notes], versions, setup.profile.doors
        )  # fmt: skip
        if setup.profile.transcript is not None:
            self._hearing.follower = SessionFollower(
                setup.profile, setup.cwd, home=home_of(setup.profile.transcript, setup.environment),
                since_ms=self._run_file.heard_since_ms, session_id=prepared.session_id, is_shared=lambda: True,
                evidence=lambda: self._hearing.evidence(self._run_file.mark, has_introduction=setup.has_introduction),
            )  # fmt: skip

    async def _until_the_end(self) -> ExitStatus:
        ending = asyncio.create_task(self._terminal.wait())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait([ending, stopping], return_when=asyncio.FIRST_COMPLETED)
            return await self._terminal.stop(STOP_GRACE_S) if not ending.done() else ending.result()
        finally:
            ending.cancel()
            stopping.cancel()

    async def _keep(self, job: Callable[[], Awaitable[None]]) -> None:
        """One part that fails is begun again, and does not take the others along."""
        while not self._over.is_set():
            try:
                await job()
                return
            except TerminalEnded:
                return
            except Exception:  # noqa: BLE001 - it is logged with its traceback, and the agent goes on
                _log.exception("%s failed, and is begun again", getattr(job, "__name__", job))
                await asyncio.sleep(_RETRY_S)

    async def _last_words(self) -> None:
        """What was said right before the end, and waited for a pause or for the session file."""
        with contextlib.suppress(Exception):
            self._handle(self._hearing.last_words())
            await self._read_screen(late_s=_FAR_S)
        await self._speaker.drain(LAST_WORDS_S)

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # --- what the terminal tells -------------------------------------------------------------------------------------

    def output(self, data: bytes) -> None:
        if self._setup.recorder is not None:
            self._setup.recorder.output(data, self._now)
        self._live.output(data)
        self._note_output()

    def output_lost(self) -> None:
        if self._setup.recorder is not None:
            self._setup.recorder.mark("output is missing here", self._now)
        self._live.output_lost()
        self._note_output()

    def _note_output(self) -> None:
        t = self._now
        self._watcher.note_output(t)
        self._typist.note_output(t)
        self._woken.set()

    def person_typed(self) -> None:
        self._hearing.person_typed()
        self._watcher.note_person()
        self._typist.note_person()

    async def _watch(self) -> None:
        while True:
            due = self._watcher.due_at
            self._woken.clear()
            if due is not None and due <= self._now:
                await self._read()
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._woken.wait()

    async def _read(self) -> None:
        await self._read_screen()

    async def _read_screen(self, late_s: float = 0.0) -> None:
        async with self._reading:
            if self._watcher.asks_for_reader:
                self._watcher.is_waiting = await self._waits_for_line()
            screen = await self._terminal.screen()
            if self._setup.recorder is not None:
                self._setup.recorder.resize(screen.columns, len(screen.visible), self._now)
            self._live.resized(screen.columns, len(screen.visible))
            t = self._now + late_s
            events = self._watcher.saw(screen, t)
            self._rows = tuple(line.text for line in screen.visible)
            self._typist.note_screen(screen, t)
            self._log.note(screen, t)
        self._handle(events)

    async def _waits_for_line(self) -> bool:
        try:
            reader = await self._terminal.foreground()
        except TerminalEnded:
            return False
        return reader is not None and waits_for_line(reader)

    async def _follow(self) -> None:
        await self._hearing.follow(self._over, lambda: self._typist.last_enter)

    def _handle(self, events: Sequence[Event]) -> None:
        self._hearing.handle(events, self._typist.last_enter)

    def _note_answered(self, message_id: str) -> None:
        self._deliverer.note_read(message_id, "answered")

    # --- messages in -------------------------------------------------------------------------------------------------

    def _tell(self, text: str) -> None:
        self._deliverer.notify(text)

    def _listen_to(self, relay: RelayClient) -> None:
        relay.on_control = self._control
        relay.on_event = self._note_event
        relay.on_state = self._note_connection
        relay.on_busy = self._note_busy

    def _note_connection(self, state: ClientState) -> None:
        if state is ClientState.READY:
            self._reporter.joined()

    def _note_event(self, event: AgentEvent) -> None:
        text = event.fields.get("text")
        if event.type in {"loop.detected", "message.waits"} and isinstance(text, str):
            self._tell(text)

    def _note_busy(self, busy: Busy) -> None:
        """At once, and again when it is over: whoever goes on writing ends with messages that are refused."""
        if busy.cleared:
            self._tell(f"{busy.to} has room for messages again ({busy.queue_depth} waiting).")
        else:
            self._tell(describe_busy(busy))

    async def _receive(self) -> None:
        while True:
            try:
                self._deliverer.put(await self._relay.receive())
            except ConnectionLost as error:
                _log.warning("the daemon let go of us: %s", error.message)
                await asyncio.sleep(_RETRY_S)
                await self._rejoin()

    async def _rejoin(self) -> None:
        relay = self._make_client()
        self._listen_to(relay)
        await relay.connect(wait=True)
        self._relay = relay
        self._reporter.joined()

    # --- control -----------------------------------------------------------------------------------------------------

    def _control(self, control: Control) -> None:
        _log.info("asked to %s", control.command)
        match control.command:
            case "pause":
                self._pauses.pause(control.for_ms, control.by or "")
            case "resume":
                self._pauses.resume()
            case "stop":
                self.stop()
            case "interrupt":
                self._was_touched = True
                self._do(self._interrupt())
            case "input":
                self._was_touched = True
                self._do(self._terminal.write((control.text or "").replace("\n", "\r").encode("utf-8", "replace")))
            case "approve" | "deny" | "answer":
                self._do(self._answer(control))
            case other:
                _log.warning("the daemon asked for %r, which this version does not know", other)

    def _note_paused(self, is_paused: bool, by: str, has_keyboard: bool) -> None:
        if is_paused:
            self._typist.pause()
        else:
            self._typist.resume()
        self._reporter.paused(is_paused, by, has_keyboard=has_keyboard)

    async def _answer(self, control: Control) -> None:
        """What somebody decided elsewhere. On any doubt nothing is decided: the CLI's own dialog stays."""
        id_, text = control.id or "", control.text or ""
        decision = Decision(control.command != "deny", text, text if control.command == "answer" else "", control.by or "")
        try:
            await self._answer_request(id_, control.command, decision)
        except (DoorError, TerminalError) as error:
            _log.info("%s was not answered: %s", id_, error)
            self._reporter.failed(id_, str(error), is_changed=isinstance(error, NotOpen))

    async def _answer_request(self, id_: str, command: str, decision: Decision) -> None:
        """Through the door that asked; on the screen, where the door cannot or there is none."""
        if self._confirmations.answer(id_, decision):
            return
        asking, door = self._hearing.asking, self._deliverer.doorway.current
        asked, digest = asking.door_id_of(id_), asking.digest_of(id_)
        if asked and door is not None:
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
        with asking.answering(id_, command):
            await self._answerer.answer(digest, decision)

    async def _interrupt(self) -> None:
        key = self._setup.profile.submit.interrupt_key
        await (self._terminal.write(key.encode()) if key else self._terminal.interrupt())

    def _do(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._works.add(task)
        task.add_done_callback(self._works.discard)

    # --- messages out ------------------------------------------------------------------------------------------------

    async def _watch_outbox(self) -> None:
        await self._speaker.outbox.watch(self._over)
