"""Codex's hooks: their text, whether the person trusts them, and the way in that they are.

They come with the start (`-c hooks.…`), so that no file of the person's is changed. Codex runs a hook once the person has
trusted its exact text, and asks about it at the start; what was trusted it keeps itself, by a digest. So the text names no
agent: it runs the script that we name in the environment of the programs we start, does nothing in any other session, and
one trust holds for all agents. What Codex keeps is read, so that it never asks about ours unless somebody wanted it to.

A hook says which conversation it is, with the first prompt of each, and what is asked. Everything else stands in the session
file, as soon as a hook could tell it: whether a turn runs, and what the agent was given.

What waits is given to the agent when its turn would end, and the turn goes on with it. So the stop hook reaches only an agent
that works; an idle one is typed to. With a tool's result Codex would take a message as well, but gives it to the agent as a
word of its developer, which a colleague's is not.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from agent_relay.private_files import replace_private
from agent_relay.terminal.doors.codex.record import KNOWN, Codex, CodexSignals, find_message, remember
from agent_relay.terminal.doors.codex.requests import CodexHookRequests
from agent_relay.terminal.doors.door import DoorListener, DoorMessage, DoorShut, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.hooks import HookedSession, event_script, hook_command, marker_path, notice_command, while_marked
from agent_relay.terminal.doors.known import KnownSession
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed, HandoverLedger
from agent_relay.terminal.doors.signals import Decided, Given, Signal, TurnBegan, TurnEnded
from agent_relay.terminal.doors.spool import MAX_BYTES, Spool, size_of
from agent_relay.terminal.output.json_fields import as_dict, as_text
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.tail import TranscriptTail

FLAG = "--codex-hooks"
VARIABLE = "AGENT_RELAY_CODEX_HOOK"  # as the hooks spell it: with another text Codex would ask anew
SCRIPT_FILE = "codex-hook.sh"
HOOK_S = 10  # so long Codex waits for one
ANSWER_S = HOOK_S - 1
PROMPT, PERMISSION, STOP = "UserPromptSubmit", "PermissionRequest", "Stop"
_EVENTS = {PROMPT: "user_prompt_submit", PERMISSION: "permission_request", STOP: "stop"}  # and as Codex keeps them
_KEY = "/<session-flags>/config.toml:{}:0:0"  # where Codex keeps what was trusted of hooks that came with the start
_REWRITTEN = frozenset("<>&")  # by Codex, in what a hook says


# --- their text and their trust ----------------------------------------------------------------------------------------


def hook_flags() -> list[str]:
    """Flags that Codex is started with: the same for every agent."""
    return [word for event in _EVENTS for word in ("-c", f"hooks.{event}={_toml(event)}")]


def are_trusted(home: Path) -> bool:
    """Whether Codex would run all of them without asking, by its own settings file in `home`."""
    try:
        settings = tomllib.loads((home / "config.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    kept = as_dict(as_dict(settings.get("hooks")).get("state"))
    return all(_is_trusted(as_dict(kept.get(_KEY.format(name))), event) for event, name in _EVENTS.items())


def write_script(place: AgentPlace, socket: str) -> str:
    """Writes what the hooks run for this agent, with the event as its only word; returns where it is. The end of a turn is asked
    about, while something waits; of the rest we are only told, and Codex does not wait for it."""
    commands = {event: notice_command(socket, event, ANSWER_S) for event in (PROMPT, PERMISSION)}
    commands[STOP] = while_marked(marker_path(place.folder, "codex"), hook_command(socket, STOP, ANSWER_S))
    path = os.path.join(place.folder, SCRIPT_FILE)
    replace_private(path, event_script(commands))
    return path


def _command(event: str) -> str:
    """For any shell. It ends with 0 whatever happens: with 2 Codex would take it for a refusal."""
    return f'sh -c \'if [ -f "${VARIABLE}" ]; then sh "${VARIABLE}" {event} 2>/dev/null; fi; exit 0\''


def _toml(event: str) -> str:
    return f'[{{hooks=[{{type="command",command={json.dumps(_command(event))},timeout={HOOK_S}}}]}}]'


def _is_trusted(kept: dict[str, object], event: str) -> bool:
    return kept.get("trusted_hash") == f"sha256:{_digest(event)}" and kept.get("enabled") is not False


def _digest(event: str) -> str:
    """As Codex counts it: of the hook with all that it was not told, as JSON without spaces, in the order of the names."""
    hook = {"type": "command", "command": _command(event), "timeout": HOOK_S, "async": False}
    text = json.dumps({"event_name": _EVENTS[event], "hooks": [hook]}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


# --- the way in --------------------------------------------------------------------------------------------------------


class HookedConversation(HookedSession[CodexHookRequests]):
    """The conversation of one Codex whose hooks reach us at `socket`: which it is, whether a turn runs, what is asked."""

    def __init__(self, socket: str, place: AgentPlace, listener: DoorListener[Observation]) -> None:
        super().__init__("Codex", socket, CodexHookRequests(listener))
        self._folder = place.folder
        self._listener = listener
        self._reader = CodexSignals()
        self._tail: TranscriptTail | None = None
        self._is_new = False  # nothing of its file was read so far
        self.thread: KnownSession | None = None
        self.is_working = False

    async def begin(self) -> None:
        """Raises OSError where the hooks cannot be listened to."""
        await self.listen()
        known = KNOWN.load(self._folder)
        if known:  # the conversation went on under a wrapper, or a door, before this one
            self._follow(known[-1])
            await self.look()
        self.watch()

    async def _take_hook(self, event: str, given: dict[str, Any]) -> str | None:
        if self.is_over:
            return None
        is_helpers = bool(given.get("agent_id"))  # a helper of the agent's own, in a conversation of its own
        if not is_helpers:
            self._meet(given)
        await self.look()
        if event == PERMISSION:
            self.requests.ask(given)
            self.hurry()
        return self._give() if event == STOP and not is_helpers else None

    def _meet(self, given: dict[str, Any]) -> None:
        """Remembers the conversation, which is another one after `/new`."""
        thread = KnownSession(as_text(given.get("session_id")), as_text(given.get("transcript_path")))
        if thread.id and thread.path.endswith(".jsonl") and thread != self.thread:
            remember(self._folder, thread)
            self._follow(thread)
            self._listener.door_session(thread.id)

    def _follow(self, thread: KnownSession) -> None:
        self.thread, self._is_new = thread, True
        self._reader = CodexSignals()
        self._tail = TranscriptTail(Path(thread.path), self._reader) if thread.path else None

    async def _look(self) -> None:
        if self._tail is not None:
            await asyncio.to_thread(self._tail.poll)
        signals = self._reader.take()
        if self._is_new and signals:
            self._is_new = False
            signals = _latest(signals)
        for signal in signals:
            if not self.is_over:
                self._note(signal)

    def _note(self, signal: Signal) -> None:
        match signal:
            case TurnBegan():
                self.is_working = True
            case TurnEnded(is_broken_off):
                self.is_working = False
                self.requests.note_turn_over(is_broken_off=is_broken_off)
            case Decided():
                self.requests.note_decided(signal)
            case _:
                pass

    def _give(self) -> str | None:
        """The answer at the end of a turn, with which the agent goes on; None where it does not."""
        return None


def _latest(signals: list[Signal]) -> list[Signal]:
    """Of a conversation that went on before we came: what the agent was given, and whether a turn runs."""
    turns = [signal for signal in signals if isinstance(signal, TurnBegan | TurnEnded)]
    return [*(signal for signal in signals if isinstance(signal, Given)), *turns[-1:]]


class CodexStopHook(HookedConversation):
    name = "codex stop hook"
    can_start_turns = False

    def __init__(self, codex: Codex, socket: str, place: AgentPlace, listener: DoorListener[Observation]) -> None:
        super().__init__(socket, place, listener)
        self._codex = codex
        self._spool = Spool(marker_path(place.folder, "codex"))
        self._handed: HandoverLedger[Handed] = HandoverLedger(listener)

    async def open(self) -> Probe:
        if not are_trusted(self._codex.home):
            how = f"Start it with `wrap {FLAG}`, and choose “Trust all and continue”."
            raise DoorShut("Codex was not told to trust the relay's hooks.", how)
        try:
            await self.begin()
        except OSError as error:
            raise DoorShut(f"The hooks cannot be listened to ({error.strerror or type(error).__name__}).") from None
        self._spool.mark()
        note = "" if self.thread else "it is heard of with the agent's first turn"
        return Probe(await self._codex.version(), note)

    async def close(self) -> None:
        await super().close()
        self._spool.take_all()

    async def deliver(self, message: DoorMessage) -> str:
        if not self.is_open:
            raise DoorShut("The hooks of Codex are not open.")
        await self.look()
        if not self.is_working:
            raise NotTaken("The agent is idle, and the hook runs only at the end of a turn.")
        if size_of(message) > MAX_BYTES:
            raise NotTaken("It is too long for a Codex hook.")
        if _REWRITTEN & set(message.text):
            raise NotTaken("Codex would escape its angle brackets and ampersands.")
        self._spool.add(message)
        self.hurry()
        return "waits for the end of the turn"

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        found = await find_message(self._folder, self._codex.home, message)
        is_held = self.is_open and (message in self._spool or message.uuid in self._handed)
        return Whereabouts.HELD if is_held and found is not Whereabouts.READ else found

    @property
    def _is_busy(self) -> bool:
        return bool(self._spool or self._handed) or super()._is_busy

    def _give(self) -> str | None:
        messages = self._spool.take(MAX_BYTES)
        for message in messages:
            self._handed.add(Handed(message))
        reason = "\n\n".join(message.text for message in messages)
        return msgspec.json.encode({"decision": "block", "reason": reason}).decode() if messages else None

    def _note(self, signal: Signal) -> None:
        super()._note(signal)
        match signal:
            case Given(text):
                for handed in self._handed.find(text):
                    self._handed.read(handed.message.uuid, "transcript")
            case TurnEnded():
                given, waiting = self._handed.take_all(), self._spool.take_all()
                for message in [*given, *waiting]:
                    self._listener.door_refused(message.id, "The turn ended before it was read.", was_given=message in given)
            case _:
                pass
