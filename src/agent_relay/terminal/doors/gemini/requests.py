"""What Gemini CLI asks a person. A hook is told of it and cannot answer: the dialog is the person's.

The only moment in which others can refuse something is before the dialog. It is there when the agent was started with a time
for it (`veto_s`): so long every tool that can do harm waits, and the person at the terminal with it, who can only break the
turn off meanwhile.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.doors.door import Decision, DoorError, DoorListener, NotOpen, Request, RequestKind, Resolution
from agent_relay.terminal.doors.gemini.record import Decided
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.records import as_dict, as_list, as_text

MAX_CHARACTERS = 2_000
QUESTION_TOOL = "ask_user"
HARMLESS = frozenset({
    QUESTION_TOOL, "activate_skill", "complete_task", "enter_plan_mode", "exit_plan_mode", "get_internal_docs", "glob",
    "google_web_search", "grep_search", "invoke_agent", "list_directory", "list_mcp_resources", "read_file", "read_many_files",
    "read_mcp_resource", "update_topic", "write_todos",
})  # fmt: skip
_TOOLS = {"exec": "run_shell_command", "info": "web_fetch", "ask_user": QUESTION_TOOL}
_BLOCKED = "Tool execution blocked"
_SUBJECTS = ("command", "file_path", "path", "url", "prompt", "query")


class _Asked:
    """One thing that is asked: one request, or one for each question. `output`: a tool waits for a refusal."""

    def __init__(self, requests: list[Request], output: asyncio.Future[str | None] | None = None) -> None:
        self.requests = requests
        self.output = output
        self.is_denied = False

    @property
    def kind(self) -> RequestKind:
        return self.requests[0].kind

    def fits(self, tool: str, given: dict[str, Any]) -> bool:
        subject = self.requests[0].subject
        if self.requests[0].tool and tool != self.requests[0].tool:
            return False
        # A file is named by its whole path in one place and as the agent wrote it in another.
        texts = [_cut(as_text(given.get(name))) for name in _SUBJECTS]
        return not subject or any(text and (text == subject or subject.endswith(f"/{text.removeprefix('./')}")) for text in texts)


class GeminiRequests:
    def __init__(self, listener: DoorListener[Observation]) -> None:
        self._listener = listener
        self._open: list[_Asked] = []
        self._questions: list[dict[str, Any]] = []
        self._count = 0

    @property
    def is_open(self) -> bool:
        return bool(self._open)

    # --- what is asked ---------------------------------------------------------------------------------------------------

    def expect_question(self, given: dict[str, Any]) -> None:
        """What the agent is about to ask, which the notification does not say."""
        self._questions = as_list(given.get("questions"))[:10]

    def ask(self, details: dict[str, Any]) -> None:
        """A dialog opens."""
        kind = as_text(details.get("type"))
        tool = _cut(_TOOLS.get(kind) or as_text(details.get("toolName")))
        subject = _cut(as_text(details.get("command")) or as_text(details.get("filePath")) or as_text(details.get("prompt")))
        if any(asked.output is not None and asked.requests[0].subject == subject for asked in self._open):
            return  # it was told already, when it could still be refused
        if kind == QUESTION_TOOL and self._questions:
            self._count += 1
            id_ = f"gemini-{self._count}"
            self._tell(_Asked([_question(f"{id_}-{number}", entry) for number, entry in enumerate(self._questions, 1)]))
            self._questions = []
        else:
            title = _cut(as_text(details.get("title")))
            self._tell(_Asked([self._permission(tool, subject, title)]))

    async def hold(self, tool: str, given: dict[str, Any], seconds: float) -> str | None:
        """What the hook prints for a tool that is about to run; None lets it take its way."""
        if tool in HARMLESS:
            return None
        subject = next((_cut(text) for text in (as_text(given.get(name)) for name in _SUBJECTS) if text), "")
        asked = _Asked([self._permission(_cut(tool), subject, "")], asyncio.get_running_loop().create_future())
        self._tell(asked)
        assert asked.output is not None
        try:
            async with asyncio.timeout(seconds):
                return await asked.output
        except TimeoutError:
            return None

    def _permission(self, tool: str, subject: str, title: str) -> Request:
        self._count += 1
        text = f"Gemini CLI asks to use {tool or title or 'a tool'}{': ' + subject if subject else ''}"
        return Request(f"gemini-{self._count}", RequestKind.PERMISSION, text, tool, subject, ("deny",), can_allow=False)

    def _tell(self, asked: _Asked) -> None:
        self._open.append(asked)
        for request in asked.requests:
            self._listener.door_asked(request)

    # --- what is answered ------------------------------------------------------------------------------------------------

    def answer(self, request_id: str, decision: Decision) -> None:
        found = [asked for asked in self._open if any(request.id == request_id for request in asked.requests)]
        if not found or found[0].is_denied:
            raise NotOpen("It was already answered or withdrawn.")
        asked = found[0]
        if decision.is_allowed:
            raise DoorError("With Gemini CLI, only the person at its terminal can approve requests and answer questions.")
        if asked.output is None or asked.output.done():
            raise DoorError("Its dialog is open; with Gemini CLI, only the person at its terminal can answer it.")
        said = f"Denied by {decision.by or 'the relay'}"
        reason = f"{said}: {decision.reason}" if decision.reason else f"{said}."
        asked.is_denied = True
        asked.output.set_result(msgspec.json.encode({"decision": "deny", "reason": reason}).decode())

    def note_ran(self, tool: str, given: dict[str, Any]) -> None:
        self._end(tool, given, was_run=True)

    def note_decided(self, decided: Decided) -> None:
        self._end(decided.tool, decided.input, was_run=decided.was_run and not decided.output.startswith(_BLOCKED))

    def _end(self, tool: str, given: dict[str, Any], *, was_run: bool) -> None:
        for asked in self._open:
            if asked.fits(tool, given):
                allowed = Resolution.ANSWERED if asked.kind is RequestKind.QUESTION else Resolution.ALLOWED
                by = "door" if asked.is_denied and not was_run else "person"
                self._settle(asked, allowed if was_run else Resolution.DENIED, by)
                return

    def _settle(self, asked: _Asked, resolution: Resolution, by: str) -> None:
        self._open.remove(asked)
        _release(asked)
        for request in asked.requests:
            self._listener.door_resolved(request.id, resolution, by)

    def note_turn_over(self) -> None:
        for asked in list(self._open):
            self._settle(asked, Resolution.GONE, "")

    def close(self) -> None:
        for asked in self._open:
            _release(asked)
        self._open.clear()


def _release(asked: _Asked) -> None:
    if asked.output is not None and not asked.output.done():
        asked.output.set_result(None)


def _cut(text: str) -> str:
    return clean(text)[:MAX_CHARACTERS]


def tool_of(given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return as_text(given.get("tool_name")), as_dict(given.get("tool_input"))


def _question(id_: str, entry: dict[str, Any]) -> Request:
    options = tuple(_cut(as_text(option.get("label"))) for option in as_list(entry.get("options")))[:20]
    question = _cut(as_text(entry.get("question")))
    return Request(id_, RequestKind.QUESTION, question, QUESTION_TOOL, "", options, {"question": question}, can_allow=False)
