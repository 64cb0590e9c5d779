"""One agent under the relay: a program in a terminal on one side, a client of the daemon on the other.

What runs here, each a task of its own: `_watch` reads the screen when there is something to read, `_follow` the CLI's
session file, `_receive` takes messages from the daemon, `_deliver` types them in one by one, `_send` carries out what the
agent asked for, and the outbox folder is watched. A message is acknowledged when it was seen to be taken, not before: if
the program or this process ends first, the daemon still owes it. A daemon that goes away is waited for; the agent goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

from msgspec import Struct

from agent_relay.ports.terminal import ExitStatus, SessionExists, Terminal, TerminalEnded, TerminalListener
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.payloads import Control
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.messages import Message
from agent_relay.terminal.backends.tmux import TmuxTerminal
from agent_relay.terminal.inbox_file import InboxFile
from agent_relay.terminal.injection import Done, Failed
from agent_relay.terminal.launch import Home
from agent_relay.terminal.message_text import Room, Shown, render, render_introduction, render_notice, short_id
from agent_relay.terminal.observations import MessageTaken
from agent_relay.terminal.parser import DEFAULT_PREFIX
from agent_relay.terminal.profile import Profile
from agent_relay.terminal.screen import Screen
from agent_relay.terminal.screen_log import ScreenLog
from agent_relay.terminal.speaking import Speaker
from agent_relay.terminal.transcripts.find import home_of
from agent_relay.terminal.transcripts.follow import SessionFollower
from agent_relay.terminal.typist import Typist
from agent_relay.terminal.watch import CommandSeen, CommandUnfinished, Event, Noticed, StateChanged, Watcher

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


class _Notice(Struct, frozen=True):
    text: str


class _Introduction(Struct, frozen=True):
    pass


_Item: TypeAlias = Message | _Notice | _Introduction
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
        self._watcher = Watcher(profile, prefix=setup.prefix, expects_transcript=profile.transcript is not None)
        self._typist = Typist(self._terminal, self._watcher, profile, self._read)
        self._inbox = InboxFile(setup.home.team)
        self._log = ScreenLog(setup.home.team)
        self._speaker = Speaker(setup.home, lambda: self._relay, self._tell)
        self._items: asyncio.Queue[_Item] = asyncio.Queue()
        self._item: _Item | None = None
        self._mark = secrets.token_hex(4)
        self._direct: list[str] = []
        self._woken = asyncio.Event()
        self._stopping = asyncio.Event()
        self._reading = asyncio.Lock()
        self._over = asyncio.Event()
        self.inbox_path = self._inbox.path
        relay.on_control = self._control

    # --- the whole ---------------------------------------------------------------------------------------------------

    async def run(self, is_ready: Callable[[], None] | None = None) -> ExitStatus:
        """Until the program ends, or `stop` is called; raises TerminalError when it cannot be started."""
        await self._start()
        if is_ready is not None:
            is_ready()
        jobs = [self._watch, self._follow, self._receive, self._deliver, self._speaker.run, self._watch_outbox]
        tasks = [asyncio.create_task(self._keep(job)) for job in jobs]
        try:
            status = await self._until_the_end()
            _log.info("the program ended with status %d", status.code)
            await self._last_words()
        finally:
            self._over.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._log.flush()
            with contextlib.suppress(TerminalEnded):
                await self._terminal.stop(STOP_GRACE_S)
        return status

    def stop(self) -> None:
        self._stopping.set()

    async def _start(self) -> None:
        setup = self._setup
        try:
            await self._terminal.start(setup.argv, cwd=setup.cwd, environment=setup.environment)
        except SessionExists:
            # We hold the name, so no other wrapper does: the one that started the program has died.
            if not isinstance(self._terminal, TmuxTerminal):
                raise
            await self._terminal.reattach()
            self._watcher.saw(await self._terminal.screen(), self._now)
            self._watcher.adopt()
            _log.info("took up the program that was still running")
            return
        if setup.has_introduction:
            self._items.put_nowait(_Introduction())

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
            self._handle(self._watcher.heard(self._follower.poll(), self._now) if self._follower is not None else [])
            await self._read_screen(late_s=_FAR_S)
        await self._speaker.drain(LAST_WORDS_S)

    @property
    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    # --- what the terminal tells -------------------------------------------------------------------------------------

    def output(self, data: bytes) -> None:
        del data
        self.output_lost()

    def output_lost(self) -> None:
        t = self._now
        self._watcher.note_output(t)
        self._typist.note_output(t)
        self._woken.set()

    def person_typed(self) -> None:
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
            screen = await self._terminal.screen()
            t = self._now + late_s
            events = self._watcher.saw(screen, t)
            self._typist.note_screen(screen, t)
            self._log.note(screen, t)
        self._handle(events)

    # --- what the session file tells ---------------------------------------------------------------------------------

    _follower: SessionFollower | None = None

    async def _follow(self) -> None:
        setup = self._setup
        if setup.profile.transcript is None:
            return
        if self._follower is None:
            self._follower = SessionFollower(
                setup.profile, setup.cwd, home=home_of(setup.profile.transcript, setup.environment),
                since_ms=time.time_ns() // 1_000_000, is_shared=lambda: True, evidence=self._evidence,
            )  # fmt: skip
        async for records in self._follower.follow(self._over):
            self._handle(self._watcher.heard(records, self._now))

    def _evidence(self) -> list[str]:
        """Words that only this agent was given. The id of a message to several is in all their files."""
        return [self._mark] if self._setup.has_introduction else self._direct[-50:]

    def _handle(self, events: Sequence[Event]) -> None:
        for event in events:
            match event:
                case CommandSeen():
                    self._speaker.say(event.command)
                case CommandUnfinished():
                    to = f" to {event.to}" if event.to else ""
                    self._tell(f"Your message{to} was not sent. {event.reason}")
                case StateChanged():
                    _log.info("state: %s", event.state.value)
                case Noticed(observation=MessageTaken(text=text)):
                    self._typist.note_taken(text)
                case Noticed():
                    pass

    # --- messages in -------------------------------------------------------------------------------------------------

    def _tell(self, text: str) -> None:
        """A notice for the agent. Never silence: what it asked for and did not get, it hears of."""
        self._items.put_nowait(_Notice(text))

    async def _receive(self) -> None:
        while True:
            try:
                message = await self._relay.receive()
            except ConnectionLost as error:
                _log.warning("the daemon let go of us: %s", error.message)
                await asyncio.sleep(_RETRY_S)
                await self._rejoin()
                continue
            self._inbox.add(_shown(message))
            self._items.put_nowait(message)

    async def _rejoin(self) -> None:
        relay = self._make_client()
        relay.on_control = self._control
        await relay.connect(wait=True)
        self._relay = relay

    def _control(self, control: Control) -> None:
        match control.command:
            case "pause":
                self._typist.pause()
            case "resume":
                self._typist.resume()
            case "stop":
                self.stop()
            case other:
                _log.warning("the daemon asked for %r, which this version does not know", other)

    async def _deliver(self) -> None:
        while True:
            # Kept until it is dealt with: should the terminal fail in between, it is the first one to be tried again.
            self._item = self._item or await self._items.get()
            match self._item:
                case Message() as message:
                    await self._deliver_message(message)
                case _Notice(text):
                    await self._type("a notice", partial(render_notice, text), text)
                case _Introduction():
                    await self._type("the introduction", self._introduce, self._mark)
            self._item = None

    def _introduce(self, room: Room) -> str:
        return render_introduction(self._setup.home.name, self._mark, room, self._setup.prefix)

    async def _deliver_message(self, message: Message) -> None:
        shown = _shown(message)
        if self._inbox.was_taken(message.delivery_id):
            await message.ack()
            return
        mark = f"[{short_id(message.id)}]"
        if shown.channel is None:
            self._direct.append(mark)

        def give(room: Room) -> str:
            if shown.awaits_answer:  # from now on: the answer may be there before it is seen that the question was taken
                self._speaker.expect_answer(message.from_, message.id)
            return render(shown, room, self._setup.prefix)

        outcome = await self._type(message.id, give, mark)
        if isinstance(outcome, Done):
            self._inbox.mark_taken(message.delivery_id)
            self._inbox.note(shown, f"given to the agent (seen by: {outcome.evidence})")
            await message.ack()
        else:
            self._inbox.note(shown, f"could not be given to the agent. {outcome.reason}")
            await message.nack(ErrorCode.REJECTED, f"{outcome.reason} It stands in the agent's inbox file.")

    async def _type(self, name: str, text: Callable[[Room], str], mark: str) -> Done | Failed:
        outcome = await self._typist.type_in(text, mark)
        _log.info("%s: %s", name, outcome)
        return outcome

    # --- messages out ------------------------------------------------------------------------------------------------

    async def _watch_outbox(self) -> None:
        await self._speaker.outbox.watch(self._over)


def _shown(message: Message) -> Shown:
    to = message.to if isinstance(message.to, str) else ""
    return Shown(
        id=message.id,
        sender=message.from_,
        body=message.body,
        kind=message.kind,
        thread=message.thread,
        channel=to if to.startswith("#") else "to all" if to == "*" else None,
        priority=message.meta.priority,
        awaits_answer=message.correlation_id is not None,
    )
