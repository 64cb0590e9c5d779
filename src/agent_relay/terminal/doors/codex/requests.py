"""Permissions and questions of Codex, as its app-server tells them, or its hooks where it has none.

Those of the app-server are shown in its terminal and told to us, and the first answer counts. The server says that a request
was answered, not how. How is seen by what becomes of the tool: one that was refused is declared so at once, and a turn that
was broken off was broken off by a person.

A hook is told the exact words before the dialog opens. It could answer, but the person would have to wait for it, since the
dialog comes only then. So it never does: the dialog is answered on the screen, by the person or by keys, and what became of
it stands in the session file.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_relay.protocol.requests import AgentRequest, PermissionRequest, QuestionRequest
from agent_relay.terminal.doors.codex.app_server import RequestId, Unreachable
from agent_relay.terminal.doors.door import Decision, DoorError, DoorListener, NotOpen, Resolution
from agent_relay.terminal.doors.requests import DOOR, PERSON, Asked, DoorRequests, HookRequests, cut
from agent_relay.terminal.doors.signals import Decided
from agent_relay.terminal.output.item_types import read_command
from agent_relay.terminal.output.json_fields import as_dict, as_list, as_text
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.records import ToolCall

COMMAND = "item/commandExecution/requestApproval"
FILE_CHANGE = "item/fileChange/requestApproval"
QUESTION = "item/tool/requestUserInput"
SETTLE_S = 1.0  # a refusal is told within milliseconds of the answer
CONFIRM_S = 10.0
_MAX_TOUCHED = 50

Reply = Callable[[RequestId, dict[str, Any]], Awaitable[None]]
_SHELLS = frozenset(f"{folder}/{name}" for folder in ("/bin", "/usr/bin") for name in ("bash", "sh", "zsh", "dash"))
PATCH = "apply_patch"
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


class _ServerRequest(Asked):
    """One request of the server's; a question may have several parts, each a request of ours."""

    def __init__(
        self, rpc_id: RequestId, turn_id: str, item_id: str, requests: Sequence[AgentRequest], keys: Mapping[str, str]
    ) -> None:  # fmt: skip
        super().__init__(requests, keys)
        self.rpc_id = rpc_id
        self.turn_id = turn_id
        self.item_id = item_id
        self.is_answered = False  # by anybody
        self.done: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # who answered

    @property
    def can_be_answered(self) -> bool:
        return self.ours is None and not self.is_answered

    def release(self, by: str = "") -> None:
        if not self.done.done():
            self.done.set_result(by)


class CodexRequests(DoorRequests[_ServerRequest]):
    """Those of the app-server."""

    def __init__(self, listener: DoorListener[Observation], reply: Reply) -> None:
        super().__init__(listener, "codex")
        self._reply = reply
        self._touched: OrderedDict[str, str] = OrderedDict()  # files, by the id of the change

    def ask(self, rpc_id: RequestId, method: str, params: dict[str, Any]) -> None:
        """Whatever is not known here is left to the person: any answer to it would be the answer."""
        item_id = as_text(params.get("itemId"))
        if any(held.rpc_id == rpc_id and held.item_id == item_id for held in self._open):
            return  # told once more, because we subscribed once more
        id_ = self._new_id()
        requests: list[AgentRequest] = []
        keys: dict[str, str] = {}
        if method == COMMAND:
            requests.append(_command(id_, params))
        elif method == FILE_CHANGE:
            requests.append(_file_change(id_, self._touched.get(item_id, "")))
        elif method == QUESTION:
            asked = _questions(params)
            keys = {f"{id_}-{number}": as_text(entry.get("id")) for number, entry in enumerate(asked, 1)}
            requests += map(_question, keys, asked)
        if requests:
            self._tell(_ServerRequest(rpc_id, as_text(params.get("turnId")), item_id, requests, keys))

    # --- answering -------------------------------------------------------------------------------------------------------

    async def answer(self, request_id: str, decision: Decision) -> None:
        held, request = self._find(request_id)
        if held.is_question:
            if not decision.is_allowed or not decision.answer:
                raise DoorError("Answer a question of Codex with one of its options, or with text.")
            if not held.add_answer(request, decision.answer):
                return
            answers = {key: {"answers": [said]} for key, said in held.answers.items()}
            await self._say(held, Resolution.ANSWERED, {"answers": answers})
        elif decision.is_allowed and not request.can_allow:
            raise DoorError("Codex does not let this be approved remotely.")
        elif decision.is_allowed:
            await self._say(held, Resolution.ALLOWED, {"decision": "accept"})
        else:
            await self._say(held, Resolution.DENIED, {"decision": "decline"})

    async def _say(self, held: _ServerRequest, ours: Resolution, result: dict[str, Any]) -> None:
        held.ours = ours
        try:
            await self._reply(held.rpc_id, result)
            async with asyncio.timeout(CONFIRM_S):
                by = await asyncio.shield(held.done)
        except Unreachable as error:
            raise NotOpen(str(error)) from None
        except TimeoutError:
            held.ours = None
            raise DoorError("Codex did not confirm the answer.") from None
        if by != DOOR:
            raise NotOpen("Somebody at the terminal answered first.")

    # --- how it ended ----------------------------------------------------------------------------------------------------

    def note_answered(self, rpc_id: object) -> None:
        for held in self._open:
            if held.rpc_id == rpc_id and not held.is_answered:
                held.is_answered = True
                if held.is_question:
                    self._end(held, Resolution.ANSWERED)
                else:
                    asyncio.get_running_loop().call_later(SETTLE_S, self._end, held, Resolution.ALLOWED)
                return

    def note_item(self, item: dict[str, Any], *, is_completed: bool) -> None:
        id_ = as_text(item.get("id"))
        if not is_completed:
            if item.get("type") == "fileChange":
                paths = [as_text(change.get("path")) for change in as_list(item.get("changes"))]
                self._touched[id_] = ", ".join(path for path in paths if path)
                if len(self._touched) > _MAX_TOUCHED:
                    self._touched.popitem(last=False)
            return
        for held in [held for held in self._open if held.item_id == id_ and not held.is_question]:
            self._end(held, Resolution.DENIED if item.get("status") == "declined" else Resolution.ALLOWED)

    def note_turn_over(self, turn: dict[str, Any]) -> None:
        for held in [held for held in self._open if held.turn_id == as_text(turn.get("id"))]:
            was_broken_off = held.is_answered and turn.get("status") == "interrupted"
            self._end(held, Resolution.DENIED if was_broken_off else Resolution.GONE)

    def drop(self) -> None:
        """Nothing more will be heard of them."""
        for held in list(self._open):
            self._end(held, Resolution.GONE)

    def _end(self, held: _ServerRequest, resolution: Resolution) -> None:
        by = "" if resolution is Resolution.GONE else DOOR if held.ours is resolution else PERSON
        self._settle(held, resolution, by)


def _command(id_: str, params: dict[str, Any]) -> PermissionRequest:
    subject = cut(_unwrapped(as_text(params.get("command"))))
    host = cut(as_dict(params.get("networkApprovalContext")).get("host"))
    decisions = params.get("availableDecisions")
    can_allow = not isinstance(decisions, list) or "accept" in decisions
    text = f"Codex asks to run {subject or 'a command'}" + (f", which wants to reach {host}" if host else "")
    is_exact = not host and subject == _unwrapped(as_text(params.get("command")))
    return PermissionRequest(
        id_, text, "shell", subject or None, options=("allow", "deny"), can_allow=can_allow, is_exact=is_exact
    )  # fmt: skip


def _unwrapped(command: str) -> str:
    """Without the shell it is run by, where that is one of the system's: another program may do anything with the words."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    return words[2] if len(words) == 3 and words[0] in _SHELLS and words[1] in {"-lc", "-c"} else command


def _file_change(id_: str, touched: str) -> PermissionRequest:
    subject = cut(touched)
    text = f"Codex asks to change {subject or 'files'}"
    return PermissionRequest(id_, text, PATCH, subject or None, options=("allow", "deny"), is_exact=subject == touched)


def _questions(params: dict[str, Any]) -> list[dict[str, Any]]:
    asked = [entry for entry in as_list(params.get("questions")) if as_text(entry.get("id"))]
    return [] if any(entry.get("isSecret") for entry in asked) else asked  # a password has no business on the relay


def _question(id_: str, entry: dict[str, Any]) -> QuestionRequest:
    options = tuple(cut(option.get("label")) for option in as_list(entry.get("options")))
    return QuestionRequest(id_, cut(entry.get("question")), options)


class _HookRequest(Asked):
    """A request that a hook told of."""

    def __init__(self, request: PermissionRequest, command: str) -> None:
        super().__init__([request])
        self.is_patch = request.tool == PATCH
        self.command = command

    def fits(self, call: ToolCall) -> bool:
        """A patch may be part of a command."""
        ran = read_command(call.arguments) or as_text(call.arguments.get("input"))
        return self.command in ran if self.is_patch else self.command == ran


class CodexHookRequests(HookRequests[_HookRequest]):
    """Those that hooks tell of, which only the dialog can answer."""

    def __init__(self, listener: DoorListener[Observation]) -> None:
        super().__init__(listener, "codex-hook")

    def ask(self, given: dict[str, Any]) -> None:
        tool, command = as_text(given.get("tool_name")), as_text(as_dict(given.get("tool_input")).get("command"))
        self._tell(_HookRequest(_request(self._new_id(), tool, command, as_text(given.get("cwd"))), command))

    def answer(self, request_id: str, decision: Decision) -> None:
        del decision
        self._find(request_id)
        raise DoorError("A Codex hook would keep the person waiting: answer the dialog on the screen.")

    def note_decided(self, decided: Decided) -> None:
        found = next((told for told in self._open if told.fits(decided.call)), None)
        if found is not None:
            self._settle(found, Resolution.ALLOWED if decided.was_run else Resolution.DENIED, PERSON)

    def note_turn_over(self, *, is_broken_off: bool) -> None:
        """Refusing something in its dialog breaks the turn off."""
        for told in list(self._open):
            self._settle(told, Resolution.DENIED if is_broken_off else Resolution.GONE, PERSON)


def _request(id_: str, tool: str, command: str, folder: str) -> PermissionRequest:
    """In the words of the app-server's requests."""
    name, subject = cut(tool), command
    match tool:
        case "Bash":
            name, deed = "shell", "run"
        case "apply_patch":
            subject, deed = _files_of(command, folder), "change"
        case _:
            deed = f"use {name or 'a tool'}:"
    shown = cut(subject)
    text = f"Codex asks to {deed} {shown}".rstrip(": ")
    return PermissionRequest(id_, text, name, shown or None, can_allow=False, is_exact=shown == subject)


def _files_of(patch: str, folder: str) -> str:
    """By their whole paths, as its dialog shows them."""
    return ", ".join(os.path.join(folder, path.strip()) for path in _PATCHED.findall(patch))
