"""Permissions and questions of opencode: open until somebody answers, here or at the terminal.

The first answer counts, and opencode says to the others that they are late. A question may be several at once; each is
a request of its own here, and opencode is answered when all of them are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from agent_relay.protocol.requests import PERMISSION, QUESTION, AgentRequest, PermissionRequest, QuestionRequest
from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.doors.door import Decision, DoorError, DoorListener, NotOpen, Resolution
from agent_relay.terminal.doors.requests import DOOR, LATE, PERSON, Asked, DoorRequests, cut, refusal
from agent_relay.terminal.output.json_fields import as_dict, as_list, as_text
from agent_relay.terminal.output.observations import Observation

MAX_ID = 100
_SUBJECTS = ("command", "filepath", "file", "path", "url", "query", "pattern")

Post = Callable[[str, dict[str, Any]], Awaitable[bool]]  # whether it was still open; raises DoorError


class _ServerRequest(Asked):
    def __init__(self, id_: str, kind: str, session: str, requests: Sequence[AgentRequest]) -> None:
        super().__init__(requests)
        self.id = id_
        self.kind = kind
        self.session = session
        self.is_being_answered = False
        self.outcome: Resolution | None = None  # told by opencode while our answer was on its way

    @property
    def can_be_answered(self) -> bool:
        return not self.is_being_answered


class OpencodeRequests(DoorRequests[_ServerRequest]):
    def __init__(self, listener: DoorListener[Observation], post: Post) -> None:
        super().__init__(listener, "opencode")
        self._post = post
        self._swept: set[str] = set()  # permissions that our refusal of another one refused as well

    @property
    def waiting_for(self) -> str:
        """The text of what is asked first; empty where nothing is."""
        if not self._open:
            return ""
        first = self._open[0].requests[0]
        return first.question if isinstance(first, QuestionRequest) else first.description

    # --- what opencode tells -----------------------------------------------------------------------------------------

    def note_asked(self, kind: str, given: dict[str, Any]) -> None:
        id_ = as_text(given.get("id"))
        if not id_ or len(id_) > MAX_ID or "/" in id_ or self._get(id_) is not None:
            return
        requests: Sequence[AgentRequest] = _questions(id_, given) if kind == QUESTION else [_permission(id_, given)]
        if requests:
            self._tell(_ServerRequest(id_, kind, as_text(given.get("sessionID")), requests))

    def _get(self, id_: str) -> _ServerRequest | None:
        return next((asked for asked in self._open if asked.id == id_), None)

    def note_ended(self, id_: str, resolution: Resolution) -> None:
        asked = self._get(id_)
        if asked is not None and asked.is_being_answered:
            asked.outcome = resolution  # whose it was is known when our own answer is answered
        elif asked is not None:
            self._settle(asked, resolution, DOOR if id_ in self._swept else PERSON)

    def note_idle(self, session: str) -> None:
        """A session with nothing to do asks nothing any more: somebody stopped it."""
        for asked in [asked for asked in self._open if asked.session == session and not asked.is_being_answered]:
            self._settle(asked, Resolution.GONE, "")

    def note_all(self, kind: str, listed: list[dict[str, Any]]) -> None:
        """The whole list, after a time in which nothing was heard."""
        there = {as_text(given.get("id")) for given in listed}
        for asked in [asked for asked in self._open if asked.kind == kind and asked.id not in there]:
            if not asked.is_being_answered:
                self._settle(asked, Resolution.GONE, "")
        for given in listed:
            self.note_asked(kind, given)

    def _settle(self, asked: _ServerRequest, resolution: Resolution, by: str) -> None:
        self._swept.discard(asked.id)
        super()._settle(asked, resolution, by)

    # --- answering ---------------------------------------------------------------------------------------------------

    async def answer(self, request_id: str, decision: Decision) -> None:
        asked, request = self._find(request_id)
        if isinstance(request, PermissionRequest):
            await self._answer_permission(asked, decision)
        elif not decision.is_allowed:
            await self._reply(asked, f"/question/{asked.id}/reject", {}, Resolution.DENIED)
        elif not decision.answer:
            raise DoorError("Answer a question with one of its options, or with text.")
        elif asked.add_answer(request, decision.answer):
            answers = [[asked.answers[each.id]] for each in asked.requests]
            await self._reply(asked, f"/question/{asked.id}/reply", {"answers": answers}, Resolution.ANSWERED)

    async def _answer_permission(self, asked: _ServerRequest, decision: Decision) -> None:
        path = f"/permission/{asked.id}/reply"
        if decision.is_allowed:
            await self._reply(asked, path, {"reply": "once"}, Resolution.ALLOWED)
            return
        # opencode refuses with it whatever else this session asks permission for.
        others = {each.id for each in self._open if each.kind == PERMISSION and each.session == asked.session} - {asked.id}
        self._swept |= others
        try:
            await self._reply(asked, path, {"reply": "reject", "message": refusal(decision)}, Resolution.DENIED)
        except DoorError:
            self._swept -= others
            raise

    async def _reply(self, asked: _ServerRequest, path: str, body: dict[str, Any], resolution: Resolution) -> None:
        asked.is_being_answered = True
        try:
            was_open = await self._post(path, body)
        finally:
            asked.is_being_answered = False
        if was_open:
            self._settle(asked, resolution, DOOR)
            return
        if asked.outcome is not None:
            self._settle(asked, asked.outcome, PERSON)
        raise NotOpen(LATE)


def _permission(id_: str, given: dict[str, Any]) -> PermissionRequest:
    tool = _line(given.get("permission")) or "a tool"
    metadata = as_dict(given.get("metadata"))
    patterns = given.get("patterns")
    subjects = [as_text(metadata.get(key)) for key in _SUBJECTS]
    subjects.append(", ".join(as_text(pattern) for pattern in patterns) if isinstance(patterns, list) else "")
    whole = next((subject for subject in subjects if subject), "")
    subject = cut(whole)
    text = f"opencode asks to use {tool}{': ' + subject if subject else ''}"
    is_exact = any(subjects[:-1]) and subject == whole  # patterns need not be the whole command
    return PermissionRequest(id_, text, tool, subject or None, options=("allow", "deny"), is_exact=is_exact)


def _questions(id_: str, given: dict[str, Any]) -> list[QuestionRequest]:
    questions = as_list(given.get("questions"))
    return [
        QuestionRequest(
            id=id_ if len(questions) == 1 else f"{id_}-{number}",
            question=cut(question.get("question")),
            options=tuple(cut(option.get("label")) for option in as_list(question.get("options"))),
        )
        for number, question in enumerate(questions, 1)
    ]


def _line(value: object) -> str:
    return " ".join(clean(as_text(value)).split())[:200]
