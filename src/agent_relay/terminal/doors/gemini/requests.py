"""Permissions and questions of Gemini CLI. A hook is told of it and cannot answer: the dialog is the person's.

The only moment in which others can refuse something is before the dialog. It is there when the agent was started with a time
for it (`veto_s`): so long every tool that can do harm waits, and the person at the terminal with it, who can only break the
turn off meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from agent_relay.protocol.requests import AgentRequest, PermissionRequest, QuestionRequest
from agent_relay.terminal.doors.door import Decision, DoorError, DoorListener, Resolution
from agent_relay.terminal.doors.requests import DOOR, PERSON, Asked, HookRequests, cut, refusal
from agent_relay.terminal.doors.signals import Decided
from agent_relay.terminal.output.json_fields import as_dict, as_list, as_text
from agent_relay.terminal.output.observations import Observation

QUESTION_TOOL = "ask_user"
HARMLESS = frozenset({
    QUESTION_TOOL, "activate_skill", "complete_task", "enter_plan_mode", "exit_plan_mode", "get_internal_docs", "glob",
    "google_web_search", "grep_search", "invoke_agent", "list_directory", "list_mcp_resources", "read_file", "read_many_files",
    "read_mcp_resource", "update_topic", "write_todos",
})  # fmt: skip
_TOOLS = {"exec": "run_shell_command", "info": "web_fetch", "ask_user": QUESTION_TOOL}
_BLOCKED = "Tool execution blocked"
_SUBJECTS = ("command", "file_path", "path", "url", "prompt", "query")


class _Dialog(Asked):
    """`output`: a tool waits for a refusal."""

    def __init__(
        self, requests: Sequence[AgentRequest], tool: str, subject: str = "", output: asyncio.Future[str | None] | None = None
    ) -> None:  # fmt: skip
        super().__init__(requests)
        self.tool = tool
        self.subject = subject
        self.output = output

    def release(self, by: str = "") -> None:
        del by
        if self.output is not None and not self.output.done():
            self.output.set_result(None)

    def fits(self, tool: str, given: dict[str, Any]) -> bool:
        subject = self.subject
        if self.tool and tool != self.tool:
            return False
        # A file is named by its whole path in one place and as the agent wrote it in another.
        texts = [cut(given.get(name)) for name in _SUBJECTS]
        return not subject or any(text and (text == subject or subject.endswith(f"/{text.removeprefix('./')}")) for text in texts)


class GeminiRequests(HookRequests[_Dialog]):
    def __init__(self, listener: DoorListener[Observation]) -> None:
        super().__init__(listener, "gemini")
        self._questions: list[dict[str, Any]] = []

    # --- what is asked ---------------------------------------------------------------------------------------------------

    def expect_question(self, given: dict[str, Any]) -> None:
        """The agent is about to ask these, which the notification does not say."""
        self._questions = as_list(given.get("questions"))[:10]

    def ask(self, details: dict[str, Any]) -> None:
        """A dialog opens."""
        kind = as_text(details.get("type"))
        tool = cut(_TOOLS.get(kind) or details.get("toolName"))
        subject = cut(as_text(details.get("command")) or as_text(details.get("filePath")) or details.get("prompt"))
        if any(asked.output is not None and asked.subject == subject for asked in self._open):
            return  # it was told already, when it could still be refused
        if kind == QUESTION_TOOL and self._questions:
            id_ = self._new_id()
            questions = [_question(f"{id_}-{number}", entry) for number, entry in enumerate(self._questions, 1)]
            self._tell(_Dialog(questions, QUESTION_TOOL))
            self._questions = []
        else:
            self._tell(_Dialog([self._permission(tool, subject, cut(details.get("title")))], tool, subject))

    async def hold(self, tool: str, given: dict[str, Any], seconds: float) -> str | None:
        """The output of the hook for a tool that is about to run; None lets it take its way."""
        if tool in HARMLESS:
            return None
        subject = next((cut(text) for text in (as_text(given.get(name)) for name in _SUBJECTS) if text), "")
        output: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._tell(_Dialog([self._permission(cut(tool), subject, "")], cut(tool), subject, output))
        try:
            async with asyncio.timeout(seconds):
                return await output
        except TimeoutError:
            return None

    def _permission(self, tool: str, subject: str, title: str) -> PermissionRequest:
        text = f"Gemini CLI asks to use {tool or title or 'a tool'}{': ' + subject if subject else ''}"
        return PermissionRequest(
            self._new_id(), text, tool, subject or None, options=("deny",), can_allow=False, is_exact=True
        )  # fmt: skip

    # --- what is answered ------------------------------------------------------------------------------------------------

    def answer(self, request_id: str, decision: Decision) -> None:
        asked, _ = self._find(request_id)
        if decision.is_allowed:
            raise DoorError("With Gemini CLI, only the person at its terminal can approve requests and answer questions.")
        if asked.output is None or asked.output.done():
            raise DoorError("Its dialog is open; with Gemini CLI, only the person at its terminal can answer it.")
        asked.ours = Resolution.DENIED
        asked.output.set_result(msgspec.json.encode({"decision": "deny", "reason": refusal(decision)}).decode())

    def note_ran(self, tool: str, given: dict[str, Any]) -> None:
        self._end(tool, given, was_run=True)

    def note_decided(self, decided: Decided) -> None:
        self._end(decided.call.name, decided.call.arguments, was_run=decided.was_run and not decided.output.startswith(_BLOCKED))

    def _end(self, tool: str, given: dict[str, Any], *, was_run: bool) -> None:
        for asked in self._open:
            if asked.fits(tool, given):
                by = DOOR if asked.ours and not was_run else PERSON
                self._settle(asked, asked.granted if was_run else Resolution.DENIED, by)
                return

    def note_turn_over(self) -> None:
        for asked in list(self._open):
            self._settle(asked, Resolution.GONE, "")


def tool_of(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return as_text(given.get("tool_name")), as_dict(given.get("tool_input"))


def _question(id_: str, entry: dict[str, Any]) -> QuestionRequest:
    options = tuple(cut(option.get("label")) for option in as_list(entry.get("options")))[:20]
    return QuestionRequest(id_, cut(entry.get("question")), options, can_allow=False)
