"""Updates of an ACP agent about its session: text and thoughts in pieces, tool calls, plans and usage, each told once it can be.

Text is told twice: in pieces, for whoever watches, and whole, as the agent's words, in which commands to the relay are found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    PromptResponse,
    TextContentBlock,
    ToolCall,
    ToolCallUpdate,
    UserMessageChunk,
)

from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.acp.tool_calls import Call
from agent_relay.terminal.acp.transcript import Look, Transcript
from agent_relay.terminal.doors.acp import wire
from agent_relay.terminal.output.item_types import ItemType
from agent_relay.terminal.output.observations import SpeechPart, TokensUsed, Uttered

PART_S = 0.25  # text is told in pieces of so much time: an event for each token would be too many
MAX_PART_CHARACTERS = 2_000
_DONE, _FAILED, _OPEN = "✓", "✗", "⚙"
_PLAN = {"completed": "✓", "in_progress": "▸", "pending": "·"}
_MAX_TITLE = 200

_OF_TURNS = (AgentMessageChunk, AgentThoughtChunk, ToolCall, ToolCallUpdate, AgentPlanUpdate)

Tell = Callable[[wire.Event], None]


class _Speech:
    """A message or a thought, as far as it has come."""

    def __init__(self, id_: str, item_type: ItemType, message_id: str | None) -> None:
        self.id, self.item_type, self.message_id = id_, item_type, message_id
        self.text = ""
        self.told = 0  # characters of it

    def fits(self, item_type: ItemType, message_id: str | None) -> bool:
        return self.item_type == item_type and self.message_id == message_id


class Updates:
    """`run_id` begins all ids: those of another run of the agent are others."""

    def __init__(self, run_id: str, tell: Tell, transcript: Transcript) -> None:
        self._run_id = run_id
        self._tell = tell
        self._transcript = transcript
        self._speech: _Speech | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._calls: dict[str, Call] = {}
        self._plan = ""
        self._count = 0
        self.replayed: list[str] = []  # what a session that is gone on with was given before
        self.is_replaying = False

    def _next_id(self) -> str:
        self._count += 1
        return f"{self._run_id}-{self._count}"

    # --- what the agent tells --------------------------------------------------------------------------------------------

    def is_of_turn(self, update: Any) -> bool:
        """Whether it shows that a turn has begun; much else is told at any time."""
        return not self.is_replaying and isinstance(update, _OF_TURNS)

    def take(self, update: Any) -> None:
        if self.is_replaying:
            if isinstance(update, UserMessageChunk):
                self.replayed.append(_text_of(update.content))
            return
        match update:
            case AgentMessageChunk():
                self._say("message", update.message_id, _text_of(update.content))
            case AgentThoughtChunk():
                self._say("thinking", update.message_id, _text_of(update.content))
            case ToolCall() | ToolCallUpdate():
                self.take_call(update)
            case AgentPlanUpdate():
                self._take_plan(update)
            case _:
                pass

    def _say(self, item_type: ItemType, message_id: str | None, text: str) -> None:
        if not text:
            return
        if self._speech is not None and not self._speech.fits(item_type, message_id):
            self.end_speech()
        if self._speech is None:
            self._speech = _Speech(self._next_id(), item_type, message_id)
        self._speech.text += text
        self._transcript.stream(clean(text), Look.THOUGHT if item_type == "thinking" else Look.AGENT)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PART_S, self._tell_part)

    def _tell_part(self, *, is_last: bool = False) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        speech = self._speech
        if speech is None:
            return
        rest = speech.text[speech.told :]
        speech.told = len(speech.text)
        pieces = [rest[start : start + MAX_PART_CHARACTERS] for start in range(0, len(rest), MAX_PART_CHARACTERS)] or [""]
        for number, piece in enumerate(pieces, 1):
            self._tell(
                wire.Noticed(SpeechPart(speech.id, speech.item_type, piece, is_last=is_last and number == len(pieces)))
            )  # fmt: skip

    def end_speech(self) -> None:
        """The text that was being said is whole now."""
        speech = self._speech
        if speech is None:
            return
        self._tell_part(is_last=True)
        self._speech = None
        self._transcript.end_stream()
        if speech.item_type == "message":
            self._tell(wire.Heard(speech.id, speech.text))

    def take_call(self, update: ToolCall | ToolCallUpdate) -> Call:
        self.end_speech()
        call = self._calls.get(update.tool_call_id)
        if call is None:
            call = self._calls[update.tool_call_id] = Call(f"{self._run_id}-{update.tool_call_id}", began=_now())
        was_over, had_title = call.is_over, bool(call.title)
        call.take(update)
        if not call.is_told:
            call.is_told = True
            self._tell(wire.Noticed(call.begin()))
        if call.title and not had_title and not call.is_over:
            self._transcript.say(f"{_OPEN} {_line(call.title)}", Look.TOOL)
        if call.is_over and not was_over:
            for found in call.end(_now()):
                self._tell(wire.Noticed(found))
            self._show_end(call)
        return call

    def _show_end(self, call: Call) -> None:
        mark = _DONE if call.status == "completed" else _FAILED
        self._transcript.say(f"{mark} {_line(call.title or call.tool)}", Look.TOOL)
        for touched in call.diffs:
            self._transcript.say(f"  {touched.operation} {_line(touched.path)}", Look.TOOL)
            self._transcript.diff(clean(touched.diff))

    def _take_plan(self, plan: AgentPlanUpdate) -> None:
        text = "\n".join(f"{_PLAN.get(entry.status, '·')} {_line(entry.content)}" for entry in plan.entries)
        if not text or text == self._plan:
            return
        self.end_speech()
        self._plan = text
        self._tell(wire.Noticed(Uttered(self._next_id(), "plan", text[:MAX_PART_CHARACTERS], 0)))
        self._transcript.say(f"Plan\n{text}", Look.TOOL)

    # --- turns -----------------------------------------------------------------------------------------------------------

    def end_turn(self, answer: PromptResponse | None) -> None:
        """`answer`: none where the agent ended in the middle of it."""
        self.end_speech()
        for call in self._calls.values():
            if call.is_told and not call.is_over:
                call.status = "failed"
                for found in call.end(_now()):
                    self._tell(wire.Noticed(found))
        self._calls.clear()
        self._plan = ""
        if answer is not None and answer.usage is not None:
            usage = answer.usage
            self._tell(
                wire.Noticed(
                    TokensUsed(
                        usage.input_tokens, usage.output_tokens, None, usage.cached_read_tokens, usage.cached_write_tokens,
                        id=self._next_id(),
                    )
                )
            )  # fmt: skip


def _text_of(content: Any) -> str:
    return content.text if isinstance(content, TextContentBlock) else f"[{content.type}]"


def _line(text: str) -> str:
    return " ".join(clean(text).split())[:_MAX_TITLE]


def _now() -> float:
    return asyncio.get_running_loop().time()
