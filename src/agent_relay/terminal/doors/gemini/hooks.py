"""Gemini CLI's hooks as a way in: what waits is given to the agent with the result of a tool, or when its turn would end.

They reach only an agent that works; an idle one is typed to. What a tool's result carries has its angle brackets replaced by
the CLI, so a message with one waits for the end of the turn, where it is taken as it is, and those after it wait too. That
the agent has a message stands in the session file. The state of the agent is left to the screen: a turn that a person breaks
off runs no hook.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.doors.door import DoorListener, DoorMessage, DoorShut, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.gemini.record import KNOWN, GeminiSignals, was_given
from agent_relay.terminal.doors.gemini.requests import QUESTION_TOOL, GeminiRequests, tool_of
from agent_relay.terminal.doors.hooks import HookedSession, marker_path
from agent_relay.terminal.doors.known import KnownSession
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed, HandoverLedger
from agent_relay.terminal.doors.signals import Decided, Given, ModelAnswered, Signal, TurnEnded
from agent_relay.terminal.doors.spool import Spool
from agent_relay.terminal.doors.versions import is_known
from agent_relay.terminal.output.json_fields import as_dict, as_text
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.tail import TranscriptTail
from agent_relay.terminal.profiles.profile import load_profiles

START_S = 60.0  # a start with its first dialogs; a program of which no hook was heard by then runs none
QUIET_S = 30.0  # with no sign of work for so long, messages wait no longer: typed ones are queued by the CLI itself
UNTAKEN_S = 20.0  # the CLI goes on within a second of the end of the turn that we prevented
UNHEARD_ANSWERS = 4  # of a working agent, none of them with a hook: they are not run any more
MAX_CONTEXT_CHARACTERS = 8_000  # with a tool's result, which the CLI may shorten
MAX_TRIES = 2
_HELPER_TOOL = "invoke_agent"
_SHORT = 8  # characters of its id that stand in the name of a session's file
_SIGNS = " (In this note &lt; and &gt; stand for the less-than and the greater-than sign: write the signs themselves.)"
_AGAIN = "These messages arrived during the cancelled request:"


class GeminiHooks(HookedSession[GeminiRequests]):
    name = "gemini hooks"
    can_start_turns = False

    def __init__(self, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]) -> None:
        super().__init__("Gemini CLI", facts["hooks"], GeminiRequests(listener))
        self._folder = place.folder
        self._facts = facts
        self._listener = listener
        self._known = KNOWN.load(place.folder)
        self._reader = GeminiSignals()
        self._tail: TranscriptTail | None = None
        self._started = asyncio.Event()
        self._spool = Spool(marker_path(place.folder, "gemini"), lambda: bool(self._helpers) or self.requests.is_open)
        self._handed: HandoverLedger[Handed] = HandoverLedger(listener)
        self._tries: dict[str, int] = {}
        self._in_turn: list[DoorMessage] = []  # read in the turn that runs
        self._again: list[DoorMessage] = []  # read in a turn that was taken out of the conversation
        self._is_working: bool | None = None  # None: nobody has told
        self._was_introduced_in_turn = False
        self._helpers = 0  # agents of the agent's own that run
        self._unheard = 0
        self._last_sign = 0.0
        # Whether the session file shows what the agent was given, in a way that is understood.
        self._has_proof = is_known(facts.get("version", ""), load_profiles()["gemini"].recorded)

    # --- opening and closing ---------------------------------------------------------------------------------------------

    async def open(self) -> Probe:
        try:
            await self.listen()
        except OSError as error:
            raise DoorShut(f"The hooks cannot be listened to ({error.strerror or type(error).__name__}).") from None
        self._mark()
        if self._known.sessions:  # it was started under a wrapper before this one
            self._follow(self._known.sessions[-1])
        else:
            try:
                async with asyncio.timeout(START_S):
                    await self._started.wait()
            except TimeoutError:
                raise DoorShut(
                    f"Gemini CLI ran none of the relay's hooks within {START_S:.0f} s.",
                    "See `/hooks` and `/extensions` in Gemini CLI: they may be disabled.",
                ) from None
        self.watch()
        return Probe(self._facts.get("version", ""), introduces=bool(self._facts.get("introduction")))

    async def close(self) -> None:
        await super().close()
        self._spool.take_all()
        self._spool.close()

    def _fail(self, reason: str) -> None:
        if not self.is_over:
            self.is_over = True
            self._listener.door_lost(reason)

    # --- messages --------------------------------------------------------------------------------------------------------

    async def deliver(self, message: DoorMessage) -> str:
        if not self.is_open:
            raise DoorShut("The hooks of Gemini CLI are not open.")
        if self._is_working is False:
            raise NotTaken("The agent is idle, and its hooks run only while it works.")
        self._spool.add(message)
        self._note_sign()
        self.hurry()
        return "waits for the next tool or the end of the turn"

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        if not self._known.paths:
            return Whereabouts.UNKNOWN
        for path in reversed(self._known.paths):
            if await asyncio.to_thread(was_given, path, message):
                return Whereabouts.READ
        is_ours = message in self._spool or message.uuid in self._handed
        is_alive = not self.is_over and (self.requests.is_open or _now() - self._last_sign <= QUIET_S)
        return Whereabouts.HELD if is_ours and is_alive else Whereabouts.NOWHERE

    def _refuse(self, messages: list[DoorMessage], reason: str, *, were_given: bool = False) -> None:
        for message in messages:
            self._tries.pop(message.uuid, None)
            if not self.is_over:
                self._listener.door_refused(message.id, reason, was_given=were_given)

    def _hand(self, message: DoorMessage, *, is_at_end: bool) -> str:
        self._tries[message.uuid] = self._tries.get(message.uuid, 0) + 1
        self._handed.add(Handed(message, _now(), is_at_end=is_at_end))
        return message.text

    def _mark(self) -> None:
        self.hurry()
        self._spool.mark()

    def _note_sign(self) -> None:
        self._unheard = 0
        self._last_sign = _now()

    # --- the session file ------------------------------------------------------------------------------------------------

    @property
    def _is_busy(self) -> bool:
        return bool(self._handed or self._spool) or super()._is_busy

    async def _look(self) -> None:
        if self._tail is not None:
            await asyncio.to_thread(self._tail.poll)
        for signal in self._reader.take():
            if not self.is_over:
                self._note(signal)

    def _note(self, signal: Signal) -> None:
        self._last_sign = _now()
        match signal:
            case Given(text):
                for handed in self._handed.find(text):
                    self._read(handed, "transcript")
            case TurnEnded():
                self._cancel()
            case ModelAnswered():
                self._unheard += 1
                if self._spool and self._unheard >= UNHEARD_ANSWERS:
                    self._fail("Gemini CLI no longer runs the relay's hooks.")
            case Decided():
                self.requests.note_decided(signal)
                self._mark()
            case _:
                pass

    def _read(self, handed: Handed, evidence: str) -> None:
        self._has_proof = True
        self._tries.pop(handed.message.uuid, None)
        self._in_turn.append(handed.message)
        self._handed.read(handed.message.uuid, evidence)

    def _cancel(self) -> None:
        """Nobody was told what came too late; what was read is not remembered by the agent, and is told with the next prompt."""
        self._again += self._in_turn
        if self._was_introduced_in_turn:
            self._known.introduced = self._known.introduced[:-1]
            KNOWN.save(self._folder, self._known)
        self._end_turn("The turn was cancelled before it was read.")

    def _end_turn(self, reason: str) -> None:
        given, waiting, self._in_turn = self._handed.take_all(), self._spool.take_all(), []
        self._is_working, self._was_introduced_in_turn, self._helpers = False, False, 0
        self._refuse(given, reason, were_given=True)
        self._refuse(waiting, reason)
        if not self.is_over:
            self.requests.note_turn_over()
        self._mark()

    def _tend(self) -> None:
        """Gives back what the CLI does not take."""
        now = _now()
        late = [handed for handed in self._handed if handed.is_at_end and not handed.is_taken and now - handed.at > UNTAKEN_S]
        if late:
            self._end_turn("Gemini CLI got it but did not continue.")
        elif self._spool and not self.requests.is_open and now - self._last_sign > QUIET_S:
            self._refuse(self._spool.take_all(), "No hook asked for it for a while.")

    # --- hooks -----------------------------------------------------------------------------------------------------------

    async def _take_hook(self, event: str, given: dict[str, Any]) -> str | None:
        if self.is_over:
            return None
        self._meet(given)
        await self.look()
        self._note_sign()
        self._started.set()
        match event:
            case "SessionStart" | "SessionEnd":
                self._end_turn("The session ended before it was read.")
                self._again = []
                return None
            case "BeforeAgent":
                return self._begin_turn(as_text(given.get("prompt")))
            case "AfterAgent":
                return self._give_at_end()
            case "BeforeTool" | "AfterTool" | "BeforeAnyTool":
                return await self._take_tool(event, given)
            case "Notification" if given.get("notification_type") == "ToolPermission":
                self.requests.ask(as_dict(given.get("details")))
                self._mark()
                return None
            case _:
                return None

    def _meet(self, given: dict[str, Any]) -> None:
        """Remembers the session, which is another one after `/clear`."""
        id_, path = as_text(given.get("session_id")), as_text(given.get("transcript_path"))
        session = KnownSession(id_, path if os.path.isabs(path) else "")
        if id_ and self._known.add(session):
            KNOWN.save(self._folder, self._known)
            self._follow(session)

    def _follow(self, session: KnownSession) -> None:
        self._tail = TranscriptTail(Path(session.path), self._reader, from_end=True) if session.path else None
        self._listener.door_session(session.id[:_SHORT])

    @property
    def _keeps_file(self) -> bool:
        return self._tail is not None and self._tail.path.exists()

    async def _take_tool(self, event: str, given: dict[str, Any]) -> str | None:
        tool, tool_input = tool_of(given)
        match event:
            case "BeforeAnyTool":
                return await self.requests.hold(tool, tool_input, float(self._facts.get("veto_s", 0)))
            case "BeforeTool" if tool == QUESTION_TOOL:
                self.requests.expect_question(tool_input)
                return None
            case "BeforeTool":
                self._helpers += tool == _HELPER_TOOL
                self._mark()
                return None
        self._helpers = max(self._helpers - (tool == _HELPER_TOOL), 0)
        self.requests.note_ran(tool, tool_input)
        output = None
        # A tool of a helper's would tell the helper, and one that failed nobody.
        if not self._helpers and not as_dict(given.get("tool_response")).get("error") and self._keeps_file:
            output = self._give_with_tool()
        self._mark()
        return output

    def _begin_turn(self, prompt: str) -> str | None:
        for handed in self._handed.find(prompt):
            handed.is_taken = True
            if not self._keeps_file:
                self._read(handed, "hook")  # there is no other record
        if not any(handed.is_taken for handed in self._handed):  # another turn: it ended in a way that we did not hear of
            given, self._in_turn = self._handed.take_all(), []
            if self._has_proof:
                self._spool.put_back(given)
            else:
                self._refuse(given, "Its turn ended without a sign that it was read.", were_given=True)
        self._is_working = True
        return self._context()

    def _context(self) -> str | None:
        texts = []
        session = self._known.sessions[-1].id if self._known.sessions else ""
        if self._facts.get("introduction") and session not in self._known.introduced:
            self._known.introduced = [*self._known.introduced, session]
            self._was_introduced_in_turn = True
            KNOWN.save(self._folder, self._known)
            texts.append(self._facts["introduction"])
        if self._again:
            texts += [_AGAIN, *(message.text for message in self._again)]
            self._in_turn += self._again
            self._again = []
        text = "\n\n".join(texts)
        return _output("BeforeAgent", text + (_SIGNS if "<" in text or ">" in text else "")) if text else None

    def _give_with_tool(self) -> str | None:
        messages = self._spool.take(MAX_CONTEXT_CHARACTERS, _room_with_tool)
        texts = [self._hand(message, is_at_end=False) for message in messages]
        return _output("AfterTool", "\n\n".join(texts)) if texts else None

    def _give_at_end(self) -> str | None:
        # What went with a tool and does not stand in the session file by now got lost on the way.
        lost = self._handed.take_all()
        tries = MAX_TRIES if self._has_proof else 1
        hopeless = [message for message in lost if self._tries.get(message.uuid, 0) >= tries]
        self._refuse(hopeless, "Gemini CLI got it but did not give it to the agent.", were_given=True)
        self._spool.put_back([message for message in lost if message not in hopeless])
        waiting = self._spool.take_all()
        if not waiting:
            self._end_turn("")
            return None
        texts = [self._hand(message, is_at_end=True) for message in waiting]
        self.hurry()
        senders = ", ".join(dict.fromkeys(clean(message.sender)[:64] for message in waiting))
        notice = f"Agent Relay hands over {len(texts)} message{'s' if len(texts) > 1 else ''} from {senders}."
        return msgspec.json.encode({"decision": "block", "reason": "\n\n".join(texts), "systemMessage": notice}).decode()


def _room_with_tool(message: DoorMessage) -> int:
    """In characters. One with an angle bracket never goes with a tool."""
    return MAX_CONTEXT_CHARACTERS + 1 if "<" in message.text or ">" in message.text else len(message.text)


def _output(event: str, context: str) -> str:
    return msgspec.json.encode({"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}).decode()


def _now() -> float:
    return asyncio.get_running_loop().time()
