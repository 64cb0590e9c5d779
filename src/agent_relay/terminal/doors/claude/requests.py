"""Permissions and questions of Claude Code while their dialog is open: held as a hook, and answered from outside or dropped.

The dialog stands on the screen all the while, and the first answer counts. That a person was first is learnt from the
session file, or from the session's state: then the hook is let go without an answer.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from agent_relay.protocol.requests import PermissionRequest, QuestionRequest
from agent_relay.protocol.tool_names import FILE_TOOLS, GLOB, GREP, LIST, kind_of
from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.doors.door import Decision, DoorError, DoorListener, DoorState, Resolution
from agent_relay.terminal.doors.requests import DOOR, MAX_CHARACTERS, PERSON, Asked, HookRequests, cut, refusal
from agent_relay.terminal.doors.signals import Decided
from agent_relay.terminal.output.json_fields import as_dict, as_list, as_text
from agent_relay.terminal.output.observations import Observation

GRACE_S = 2.0  # after a dialog has closed: so long the session file may take to say how
UNSEEN_S = 15.0  # a dialog that was never seen open by then is none
QUESTION_TOOL = "AskUserQuestion"
_PATHS = ("file_path", "notebook_path", "path")
_SUBJECTS = ("command", "file_path", "notebook_path", "path", "url", "query", "pattern", "plan")


class _HeldHook(Asked):
    """One hook that waits."""

    def __init__(self, id_: str, tool: str, given: dict[str, Any], now: float) -> None:
        questions = _questions(id_, given) if tool == QUESTION_TOOL else []
        keys = {request.id: key for key, request in questions}
        super().__init__([request for _, request in questions] or [make_permission(id_, tool, given)], keys)
        self.tool = tool
        self.input = given
        self.output: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.was_seen = False
        self.closed_at = now

    def answer(self, resolution: Resolution, decision: dict[str, Any]) -> None:
        self.ours = resolution
        output = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
        if not self.output.done():
            self.output.set_result(msgspec.json.encode(output).decode())

    def release(self, by: str = "") -> None:
        del by
        if not self.output.done():
            self.output.set_result(None)


class ClaudeRequests(HookRequests[_HeldHook]):
    def __init__(self, listener: DoorListener[Observation]) -> None:
        super().__init__(listener, "claude")

    async def ask(self, given: dict[str, Any]) -> str | None:
        """The output of the hook; None leaves the dialog as it is."""
        now = asyncio.get_running_loop().time()
        held = _HeldHook(self._new_id(), as_text(given.get("tool_name")), as_dict(given.get("tool_input")), now)
        return await self._tell(held).output

    def answer(self, request_id: str, decision: Decision) -> None:
        held, request = self._find(request_id)
        if not decision.is_allowed:
            held.answer(Resolution.DENIED, {"behavior": "deny", "message": refusal(decision)})
        elif isinstance(request, PermissionRequest):
            held.answer(Resolution.ALLOWED, {"behavior": "allow"})
        elif not decision.answer:
            raise DoorError("Answer a question with one of its options, or with text.")
        elif held.add_answer(request, decision.answer):
            updated = {**held.input, "answers": held.answers}
            held.answer(Resolution.ANSWERED, {"behavior": "allow", "updatedInput": updated})

    # --- how it ended ----------------------------------------------------------------------------------------------------

    def note_decided(self, decided: Decided) -> None:
        held = self._match(decided)
        if held is None:
            return
        resolution = held.granted if decided.was_run else Resolution.DENIED
        self._settle(held, resolution, DOOR if decided.by_hook and held.ours is resolution else PERSON)

    def _match(self, decided: Decided) -> _HeldHook | None:
        same = [held for held in self._open if held.tool == decided.call.name]
        exact = [held for held in same if held.input == decided.call.arguments]
        # The hook may spell the input in another way; where only one is open there is no doubt.
        return exact[0] if exact else same[0] if len(same) == 1 else None

    def note_state(self, state: DoorState | None, now: float) -> None:
        """Called now and then, whether or not it has changed."""
        for held in list(self._open):
            if state is DoorState.WAITING:
                held.was_seen, held.closed_at = True, now
            elif now - held.closed_at >= (GRACE_S if held.was_seen or held.ours else UNSEEN_S):
                self._settle(held, *self._guess(held, state))

    def _guess(self, held: _HeldHook, state: DoorState | None) -> tuple[Resolution, str]:
        """Of a dialog that closed, where the session file does not say how: a refusal stands there at once, so a turn that
        goes on was allowed to."""
        if held.ours is not None:
            return held.ours, DOOR
        return (held.granted, PERSON) if held.was_seen and state is DoorState.WORKING else (Resolution.GONE, "")


def make_permission(id_: str, tool: str, given: dict[str, Any]) -> PermissionRequest:
    name = clean(tool)[:100] or "a tool"
    whole = next((text for text in (as_text(given.get(key)) for key in _SUBJECTS) if text), "")
    subject = cut(whole)
    path, pattern = _files(kind_of(tool), given)
    return PermissionRequest(
        id_, f"Claude Code asks to use {name}{': ' + subject if subject else ''}", name,
        (subject if path is None else pattern) or None, path, options=("allow", "deny"),
        is_exact=subject == whole,  # else a rule would judge a part of what is run
    )  # fmt: skip


def _files(kind: str, given: dict[str, Any]) -> tuple[str | None, str]:
    """The files that a tool is about: a path, None where it tells none, and a pattern of the files in there."""
    if kind not in FILE_TOOLS:
        return None, ""
    path = next((text for text in (as_text(given.get(key)) for key in _PATHS) if text), None)
    is_optional = kind in {GLOB, GREP, LIST}  # without a path they look at the working directory
    return "" if path is None and is_optional else path, as_text(given.get("pattern")) if kind == GLOB else ""


def _questions(id_: str, given: dict[str, Any]) -> list[tuple[str, QuestionRequest]]:
    """Each with its own words, by which Claude Code wants the answer."""
    asked = [entry for entry in as_list(given.get("questions")) if as_text(entry.get("question"))]
    return [(as_text(entry.get("question")), _question(f"{id_}-{number}", entry)) for number, entry in enumerate(asked, 1)]


def _question(id_: str, entry: dict[str, Any]) -> QuestionRequest:
    options = tuple(as_text(option.get("label"))[:MAX_CHARACTERS] for option in as_list(entry.get("options")))
    return QuestionRequest(id_, cut(entry.get("question")), options)
