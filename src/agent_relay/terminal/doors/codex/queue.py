"""`codex queue`: a command of Codex's that puts a message into a conversation, whoever runs it.

It gives the message an id of its own, so that the reading is found by the text, which has ours in it. The conversation
must have begun: before its first turn nobody can say which one is the agent's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import subprocess
from pathlib import Path

from agent_relay.terminal.doors.codex.hooks import HookedConversation
from agent_relay.terminal.doors.codex.record import KNOWN, Codex, CodexSignals, find_message, is_of, remember
from agent_relay.terminal.doors.door import Decision, DoorListener, DoorMessage, DoorShut, NotOpen, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.known import KnownSession
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed, HandoverLedger
from agent_relay.terminal.doors.signals import Given
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.find import find_sessions, holds, read_head
from agent_relay.terminal.output.transcripts.tail import TranscriptTail

RUN_S = 15.0
LOOK_S = 1.0
MAX_CHARACTERS = 30_000  # a single word of a command line holds 128 KiB, in any script
_NOT_RUN = 127  # as shells say it
_OPTIONS = ("--thread", "--message")
_USAGE = 2  # it does not know what it was asked for, and has done nothing
_log = logging.getLogger("agent_relay.terminal")


class CodexQueue:
    name = "codex queue"
    can_start_turns = True

    def __init__(self, codex: Codex, place: AgentPlace, listener: DoorListener[Observation], hooks: str = "") -> None:
        """`hooks`: the socket where they are heard, for a program that was started with them."""
        self._codex = codex
        self._hooked = HookedConversation(hooks, place, listener) if hooks else None
        self._folder = place.folder
        self._listener = listener
        self._thread: KnownSession | None = None
        self._reader = CodexSignals()
        self._tail: TranscriptTail | None = None
        self._handed: HandoverLedger[Handed] = HandoverLedger(listener)
        self._order = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._is_over = False

    async def open(self) -> Probe:
        status, said = await run_codex(self._codex, "queue", "--help")
        if status is None:
            raise DoorShut(f"`codex queue --help` did not answer within {RUN_S:.0f} s.")
        # A Codex without it takes the word for a prompt, and exits with 0: its help is about something else then.
        if status != 0 or any(option not in said for option in _OPTIONS):
            raise DoorShut("This version of Codex has no `codex queue`.", "Update Codex.", lasts=True)
        if self._hooked is not None:
            try:
                await self._hooked.begin()
            except OSError as error:  # they only add to what is known without them
                _log.warning("the hooks cannot be listened to: %s", error.strerror or type(error).__name__)
        await self._look()
        self._watching = asyncio.create_task(self._watch())
        note = "" if self._thread else "until the agent's first turn messages are typed"
        return Probe(await self._codex.version(), note)

    async def close(self) -> None:
        self._is_over = True
        self._handed.close()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._hooked is not None:
            await self._hooked.close()

    # --- delivering ------------------------------------------------------------------------------------------------------

    async def deliver(self, message: DoorMessage) -> str:
        async with self._order:
            if self._is_over:
                raise DoorShut("`codex queue` is not open.")
            thread = self._hooked_thread or self._thread
            if thread is None:
                raise NotTaken("The conversation has not begun.")
            if len(message.text) > MAX_CHARACTERS:
                raise NotTaken("It is too long for a command line.")
            self._handed.add(Handed(message))
            status, _ = await run_codex(self._codex, "queue", "--thread", thread.id, "--message", message.text)
            if status is None and await self.look_up(message) is not Whereabouts.NOWHERE:
                return "queued, it seems"
            if status == _USAGE:
                self._handed.drop(message.uuid)
                raise DoorShut(
                    "`codex queue` does not take `--thread` and `--message` in this version of Codex.",
                    "Update Codex.",
                    lasts=True,
                )
            if status != 0:
                self._handed.drop(message.uuid)
                raise NotTaken(f"`codex queue` failed ({'no answer' if status is None else status}).")
            return "queued in the conversation"

    # --- the conversation ------------------------------------------------------------------------------------------------

    @property
    def _hooked_thread(self) -> KnownSession | None:
        """As a hook told it, who has told it already."""
        return self._hooked.thread if self._hooked is not None else None

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            with contextlib.suppress(OSError, sqlite3.Error):
                await self._look()

    async def _look(self) -> None:
        thread = await asyncio.to_thread(self._find)
        if thread is not None and thread != self._thread:
            is_other = thread != self._hooked_thread and (self._thread is None or thread.id != self._thread.id)
            self._thread = thread
            self._tail = TranscriptTail(Path(thread.path), self._reader)
            if is_other and not self._is_over:
                self._listener.door_session(thread.id)
        if self._tail is not None and self._handed:
            await asyncio.to_thread(self._tail.poll)
            given = [signal for signal in self._reader.take() if isinstance(signal, Given)]
            for handed in self._handed:
                if any(is_of(signal, handed.message) for signal in given):
                    self._handed.read(handed.message.uuid, "transcript")

    def _find(self) -> KnownSession | None:
        """The one that a hook named; the latest that holds our words; else the one that a door before this one knew."""
        codex = self._codex
        if self._hooked_thread is not None:
            return self._hooked_thread
        if codex.mark:
            for path in find_sessions(codex.profile, codex.cwd, home=codex.home, since_ms=codex.since_ms):
                head = read_head(codex.profile, path) if holds(path, codex.mark) else None
                if head is not None and head.session_id:
                    found = KnownSession(head.session_id, str(path))
                    remember(self._folder, found)
                    return found
        known = [thread for thread in KNOWN.load(self._folder) if thread.path and Path(thread.path).exists()]
        return known[-1] if known else None

    # --- the rest --------------------------------------------------------------------------------------------------------

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        found = await find_message(self._folder, self._codex.home, message)
        if found is Whereabouts.HELD and message.uuid not in self._handed:
            self._handed.add(Handed(message))
        return found

    async def answer(self, request_id: str, decision: Decision) -> None:
        if self._hooked is None:
            raise NotOpen("`codex queue` takes messages only.")
        await self._hooked.answer(request_id, decision)


async def run_codex(codex: Codex, *words: str) -> tuple[int | None, str]:
    """Its exit status, and what it said; None: not in time, and whether it did what it should nobody can say."""
    try:
        done = await asyncio.to_thread(
            subprocess.run, [codex.command, *words], cwd=codex.cwd, env=dict(codex.environment), timeout=RUN_S,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, ""
    except (OSError, ValueError) as error:
        _log.warning("`codex %s` cannot be run: %s", words[0], type(error).__name__)
        return _NOT_RUN, ""
    return done.returncode, done.stdout.decode(errors="replace")
