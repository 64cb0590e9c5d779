"""One running session of Claude Code, watched: its record, its session files and its hooks, for the doors that lead into it.

The session file tells of tools what the hooks tell, only later; each is reported once.

Files are read in a thread, one look at a time. A look is due when the file system says that something was written, when a
hook came, and every second besides, because a notice can be lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from watchfiles import awatch

from agent_relay.terminal.doors.claude.record import (
    KNOWN,
    ClaudeKnown,
    ClaudeSignals,
    SessionRecord,
    find_session,
    look_up,
    project_folders,
    read_session,
    transcript_paths,
)
from agent_relay.terminal.doors.claude.requests import ClaudeRequests
from agent_relay.terminal.doors.door import DoorListener, DoorMessage, DoorShut, DoorState, Whereabouts
from agent_relay.terminal.doors.hooks import HookedSession
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed, HandoverLedger
from agent_relay.terminal.doors.signals import Decided, Given, NotGiven, Signal
from agent_relay.terminal.output.item_types import find_item_type
from agent_relay.terminal.output.json_fields import as_dict, as_text
from agent_relay.terminal.output.observations import MAX_OUTPUT_CHARACTERS, Observation, ToolEnded, ToolStarted, show_input
from agent_relay.terminal.output.transcripts.tail import TranscriptTail
from agent_relay.terminal.profiles.profile import profile_for

TOOL_STARTED, TOOL_ENDED = "ToolStarted", "ToolEnded"
START_S = 60.0  # a start with its first dialogs; a program that shows no record by then keeps none
STARTED_S = 10.0  # the same, once a hook has told that the session is there
STARTING_POLL_S = 0.1
GONE_S = 2.0  # a record that is missing for so long is no record that is being written
UNREAD_S = 20.0  # an idle session takes up a message in a second
_GOES_ON = frozenset({"clear", "resume"})  # the program stays, with another session
_UPDATE = "Update Claude Code, and see `agent-relay doctor`."
UNWRITTEN_S = 2.0  # after which a session that keeps no file is believed by its hooks


def observe_tool(event: str, given: dict[str, Any]) -> ToolStarted | ToolEnded | None:
    """None for a tool of a helper's, which is none of the agent's own, and for what cannot be told apart."""
    id_, name = as_text(given.get("tool_use_id")), as_text(given.get("tool_name"))
    if not id_ or given.get("agent_id"):
        return None
    if event == TOOL_STARTED:
        arguments = as_dict(given.get("tool_input"))
        transcript = profile_for("claude").transcript
        item_type = find_item_type(transcript, name, arguments) if transcript is not None else "tool_call"
        return ToolStarted(id_, name, show_input(arguments), item_type)
    response = given.get("tool_response")
    was_stopped = bool(as_dict(response).get("interrupted"))
    return ToolEnded(id_, name, was_stopped, _output_of(response)[:MAX_OUTPUT_CHARACTERS])


def _output_of(response: Any) -> str:
    """As the agent is given it: what a command printed; of other tools their answer as it is."""
    if isinstance(response, str):
        return response
    printed = [as_text(as_dict(response).get(name)) for name in ("stdout", "stderr")]
    if any(printed):
        return "\n".join(text for text in printed if text)
    return "" if "stdout" in as_dict(response) or response is None else msgspec.json.encode(response).decode()


class RecordWait(Struct):
    """The time for which the record of a session has been waited for, by all doors of a program together."""

    begun: float | None = None
    hook_heard_at: float | None = None

    def is_over(self, now: float) -> bool:
        self.begun = now if self.begun is None else self.begun
        heard = self.hook_heard_at
        return now > self.begun + START_S or (heard is not None and now > heard + STARTED_S)


class ClaudeSession(HookedSession[ClaudeRequests]):
    """A door adds how messages are handed over."""

    def __init__(
        self, home: Path, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation],
        wait: RecordWait | None = None,
    ) -> None:  # fmt: skip
        super().__init__("Claude Code", facts.get("hooks", ""), ClaudeRequests(listener))
        self._home = home
        self._place = place
        self._facts = facts
        self._listener = listener
        self._known = ClaudeKnown()
        self._reader = ClaudeSignals()
        self._tails: dict[Path, TranscriptTail] = {}
        self._stop = asyncio.Event()
        self._missing_since: float | None = None
        self._idle_since: float | None = None
        self._told: tuple[DoorState, str] | None = None
        self._wait = wait or RecordWait()
        self._is_ending = False  # it said so itself
        self._record: SessionRecord | None = None
        self._handed: HandoverLedger[Handed] = HandoverLedger(listener)

    # --- opening and closing ---------------------------------------------------------------------------------------------

    async def _begin(self) -> SessionRecord:
        """Waits for the session; raises DoorShut."""
        self._known = self._load_known()
        await self.listen()
        self._record = record = await self._wait_for_record()
        self._know(record)
        for path in await asyncio.to_thread(transcript_paths, self._home, self._known.sessions):
            self._tails[path] = TranscriptTail(path, self._reader, from_end=True)
        self._tasks.append(asyncio.create_task(self._watch_files()))
        self.watch()
        return record

    def _load_known(self) -> ClaudeKnown:
        known = KNOWN.load(self._place.folder)
        known.add_session(self._facts.get("session", ""))
        return known

    async def _wait_for_record(self) -> SessionRecord:
        loop = asyncio.get_running_loop()
        while True:
            found = await asyncio.to_thread(find_session, self._home, self._known)
            if found is not None and found.state is not None:
                return found
            if self._wait.is_over(loop.time()):
                if found is not None:
                    raise DoorShut(f"The session record of Claude Code {found.version[:20]} has an unknown state.", _UPDATE)
                raise DoorShut("Claude Code has no session record of this agent.", _UPDATE)
            await asyncio.sleep(STARTING_POLL_S)

    async def close(self) -> None:
        self._stop.set()
        self._handed.close()
        await super().close()

    def _fail(self, reason: str) -> None:
        """It does not go on: told once, and nothing after it."""
        if not self.is_over:
            self.is_over = True
            self._stop.set()
            self._handed.close()
            self._listener.door_lost(reason)

    # --- messages --------------------------------------------------------------------------------------------------------

    def _hand(self, message: DoorMessage) -> Handed:
        """From now on its reading is looked for."""
        return self._handed.add(Handed(message, asyncio.get_running_loop().time()))

    def _reject(self, handed: Handed, reason: str) -> None:
        """A person, or a setting of theirs, does not want it."""
        if not self.is_over and not handed.is_refused:
            handed.is_refused = True
            self._listener.door_rejected(handed.message.id, reason)

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        found = await look_up(self._home, self._load_known(), message)
        if found is Whereabouts.HELD and not self.is_over and message.uuid not in self._handed:
            self._hand(message)  # a wrapper that died gave it; its reading is told like any other
        return found

    # --- watching --------------------------------------------------------------------------------------------------------

    async def _watch_files(self) -> None:
        """Says when to look. Folders that do not exist yet are watched as soon as they do."""
        while not self._stop.is_set():
            folders = self._folders()
            with contextlib.suppress(OSError):
                async for _ in awatch(
                    *folders, stop_event=self._stop, debounce=100, step=20, rust_timeout=1_000, yield_on_timeout=True,
                    recursive=False, watch_filter=None, ignore_permission_denied=True,
                ):  # fmt: skip
                    self._due.set()
                    if self._folders() != folders:
                        break
            await asyncio.sleep(STARTING_POLL_S)

    def _folders(self) -> list[Path]:
        project = project_folders(self._home, self._record.cwd) if self._record is not None else []
        projects = self._home / "projects"  # made by the first session of all
        above = projects if projects.is_dir() else self._home
        folders = {self._home / "sessions", above, *project, *(path.parent for path in self._tails)}
        return sorted(folder for folder in folders if folder.is_dir())

    @property
    def _is_busy(self) -> bool:
        return False  # the file system says when there is something to look for

    async def _look(self) -> None:
        record, signals = await asyncio.to_thread(self._read_files)
        if self.is_over:
            return
        now = asyncio.get_running_loop().time()
        for signal in signals:
            self._note_signal(signal)
        self._note_record(record, now)
        if not self.is_over:
            self._find_missed(now)

    def _read_files(self) -> tuple[SessionRecord | None, list[Signal]]:
        assert self._record is not None
        record = read_session(self._record.path)
        sessions = {*self._known.sessions, record.session_id} if record is not None else {*self._known.sessions}
        for path in transcript_paths(self._home, sorted(sessions - {path.stem for path in self._tails})):
            self._tails[path] = TranscriptTail(path, self._reader)
        for tail in self._tails.values():
            tail.poll()
        return record, self._reader.take()

    def _note_record(self, record: SessionRecord | None, now: float) -> None:
        if record is None or record.started_at != self._known.started_at or not record.is_alive:
            self._missing_since = self._missing_since if self._missing_since is not None else now
            if self._is_ending or now - self._missing_since >= GONE_S:
                self._fail("The session of Claude Code has ended.")
            return
        self._missing_since = None
        self._record = record
        self._know(record)
        if record.state is not DoorState.IDLE:
            self._idle_since = None
        elif self._idle_since is None:
            self._idle_since = now
        self.requests.note_state(record.state, now)
        if record.state is not None:
            self._tell_state(record.state, record.waiting_for)

    def _tell_state(self, state: DoorState, waiting_for: str) -> None:
        if (state, waiting_for) != self._told:
            self._told = (state, waiting_for)
            self._listener.door_state(state, waiting_for)
            self._heed(state)

    def _know(self, record: SessionRecord) -> None:
        is_new = self._known.add_session(record.session_id)
        if is_new:
            self._listener.door_session(record.session_id)  # as after /clear
        if is_new or self._known.pid != record.pid or self._known.started_at != record.started_at:
            self._known.pid, self._known.started_at = record.pid, record.started_at
            KNOWN.save(self._place.folder, self._known)

    def _note_signal(self, signal: Signal) -> None:
        match signal:
            case Given(text, uuid):
                for handed in self._handed.find(text, uuid):
                    self._handed.read(handed.message.uuid, "transcript")
            case NotGiven(text, reason):
                for handed in self._handed.find(text):
                    self._reject(handed, reason)
            case Decided():
                self.requests.note_decided(signal)
            case _:
                pass

    @abstractmethod
    def _miss(self, handed: Handed) -> None:
        """An idle session does not take it up."""

    def _heed(self, state: DoorState) -> None:
        """The state has changed, and the listener was told."""

    def _give(self, event: str, given: dict[str, Any]) -> str | None:
        """The answer at the end of a tool or a turn, which the agent is given; None where there is nothing."""
        del event, given
        return None

    def _find_missed(self, now: float) -> None:
        """Tells of what an idle session has had for long and did not take up."""
        if self._idle_since is None:
            return
        for handed in self._handed:
            since = max(self._idle_since, handed.at)
            if handed.is_taken and not handed.is_refused and now - since >= UNREAD_S and not self.is_over:
                self._miss(handed)

    # --- hooks -----------------------------------------------------------------------------------------------------------

    async def _take_hook(self, event: str, given: dict[str, Any]) -> str | None:
        self._wait.hook_heard_at = self._wait.hook_heard_at or asyncio.get_running_loop().time()
        if self._known.add_session(as_text(given.get("session_id"))):
            KNOWN.save(self._place.folder, self._known)
        self.hurry()
        match event:
            case "PermissionRequest" if not self.is_over:
                return await self.requests.ask(given)
            case "UserPromptSubmit":
                self._note_prompt(as_text(given.get("prompt")), as_text(given.get("transcript_path")))
                return None
            case "PostToolUse" | "Stop" if not self.is_over:
                return self._give(event, given)
            case _:
                self._note_told(event, given)
                return None

    def _note_told(self, event: str, given: dict[str, Any]) -> None:
        if self.is_over:
            return
        match event:
            case _ if event in (TOOL_STARTED, TOOL_ENDED):
                seen = observe_tool(event, given)
                if seen is not None:
                    self._listener.door_noticed(seen)
            case "Notification" if self._record is not None and self._record.state is None:
                # Its record says it sooner, in words that we know; this is for those that we do not.
                is_idle = given.get("notification_type") == "idle_prompt"
                state = DoorState.IDLE if is_idle else DoorState.WAITING
                self._tell_state(state, "" if is_idle else as_text(given.get("message")))
            case "SessionEnd":
                self._is_ending = as_text(given.get("reason")) not in _GOES_ON
            case _:
                pass

    def _note_prompt(self, prompt: str, transcript: str) -> None:
        """A prompt may still be blocked by somebody else's hook, which the session file would tell. Where there is no file,
        this is all there is to know."""

        def believe() -> None:
            if not os.path.exists(transcript):
                for handed in self._handed.find(prompt):
                    self._handed.read(handed.message.uuid, "hook")

        if self._handed.find(prompt):
            asyncio.get_running_loop().call_later(UNWRITTEN_S, believe)
