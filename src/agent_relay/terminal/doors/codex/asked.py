"""What Codex asks a person, as its hook tells it: the exact words, before its dialog opens.

The hook could answer, but the person would have to wait for it, since the dialog comes only then. So it never does: the
dialog is answered on the screen, by the person or by keys, and what became of it stands in the session file.
"""

from __future__ import annotations

import os
import re
from typing import Any

from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.doors.codex.signals import Decided
from agent_relay.terminal.doors.door import Decision, DoorError, DoorListener, NotOpen, Request, RequestKind, Resolution
from agent_relay.terminal.output.observations import Observation, command_of
from agent_relay.terminal.output.transcripts.records import ToolCall, as_dict, as_text

MAX_CHARACTERS = 2_000
PATCH = "apply_patch"
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


class _Asked:
    def __init__(self, request: Request, command: str) -> None:
        self.request = request
        self.command = command

    def fits(self, call: ToolCall) -> bool:
        """A patch may be part of a command."""
        ran = command_of(call) or as_text(call.arguments.get("input"))
        return self.command in ran if self.request.tool == PATCH else self.command == ran


class HookRequests:
    def __init__(self, listener: DoorListener[Observation]) -> None:
        self._listener = listener
        self._open: list[_Asked] = []
        self._count = 0

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    def ask(self, given: dict[str, Any]) -> None:
        tool, command = as_text(given.get("tool_name")), as_text(as_dict(given.get("tool_input")).get("command"))
        self._count += 1
        request = _request(f"codex-hook-{self._count}", tool, command, as_text(given.get("cwd")))
        self._open.append(_Asked(request, command))
        self._listener.door_asked(request)

    def answer(self, request_id: str, decision: Decision) -> None:
        del decision
        if not any(asked.request.id == request_id for asked in self._open):
            raise NotOpen("It was already answered or withdrawn.")
        raise DoorError("A Codex hook would keep the person waiting: answer the dialog on the screen.")

    def note_decided(self, decided: Decided) -> None:
        found = next((asked for asked in self._open if asked.fits(decided.call)), None)
        if found is not None:
            self._settle(found, Resolution.ALLOWED if decided.was_run else Resolution.DENIED)

    def note_turn_over(self, *, is_broken_off: bool) -> None:
        """Refusing something in its dialog breaks the turn off."""
        for asked in list(self._open):
            self._settle(asked, Resolution.DENIED if is_broken_off else Resolution.GONE)

    def close(self) -> None:
        self._open.clear()

    def _settle(self, asked: _Asked, resolution: Resolution) -> None:
        self._open.remove(asked)
        self._listener.door_resolved(asked.request.id, resolution, "person")


def _request(id_: str, tool: str, command: str, folder: str) -> Request:
    """In the words of the app-server's requests."""
    name, subject = _cut(tool), command
    match tool:
        case "Bash":
            name, deed = "shell", "run"
        case "apply_patch":
            subject, deed = _files_of(command, folder), "change"
        case _:
            deed = f"use {name or 'a tool'}:"
    shown = _cut(subject)
    text = f"Codex asks to {deed} {shown}".rstrip(": ")
    return Request(id_, RequestKind.PERMISSION, text, name, shown, can_allow=False, is_exact=shown == subject)


def _files_of(patch: str, folder: str) -> str:
    """By their whole paths, as its dialog shows them."""
    return ", ".join(os.path.join(folder, path.strip()) for path in _PATCHED.findall(patch))


def _cut(text: str) -> str:
    return clean(text)[:MAX_CHARACTERS]
