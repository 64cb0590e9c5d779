"""What opencode asks a person: permissions and questions, open until somebody answers, here or at the terminal.

The first answer counts, and opencode says to the others that they are late. A question may be several at once; each is
a request of its own here, and opencode is answered when all of them are.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Struct

from agent_relay.protocol.visible_text import clean
from agent_relay.terminal.doors.door import Decision, DoorError, DoorListener, NotOpen, Request, RequestKind, Resolution
from agent_relay.terminal.output.observations import Observation
from agent_relay.terminal.output.transcripts.records import as_dict, as_list, as_text

MAX_TEXT = 2_000
MAX_ID = 100
PERMISSION, QUESTION = "permission", "question"
_PERSON, _DOOR = "person", "door"
_LATE = "It was already answered or withdrawn."
_SUBJECTS = ("command", "filepath", "file", "path", "url", "query", "pattern")

Post = Callable[[str, dict[str, Any]], Awaitable[bool]]  # whether it was still open; raises DoorError


class _Open(Struct):
    id: str
    kind: str
    session: str
    requests: list[Request]
    answers: dict[str, str] = {}
    is_being_answered: bool = False
    outcome: Resolution | None = None  # told by opencode while our answer was on its way


class Requests:
    def __init__(self, listener: DoorListener[Observation], post: Post) -> None:
        self._listener = listener
        self._post = post
        self._open: dict[str, _Open] = {}
        self._swept: set[str] = set()  # permissions that our refusal of another one refused as well
        self._is_over = False

    @property
    def waiting_for(self) -> str:
        """What is asked first; empty where nothing is."""
        return next((one.requests[0].text for one in self._open.values()), "")

    # --- what opencode tells -----------------------------------------------------------------------------------------

    def note_asked(self, kind: str, given: dict[str, Any]) -> None:
        id_ = as_text(given.get("id"))
        if not id_ or len(id_) > MAX_ID or "/" in id_ or id_ in self._open:
            return
        requests = _questions(id_, given) if kind == QUESTION else [_permission(id_, given)]
        if requests:
            self._open[id_] = _Open(id_, kind, as_text(given.get("sessionID")), requests)
            for request in requests:
                self._listener.door_asked(request)

    def note_ended(self, id_: str, resolution: Resolution) -> None:
        one = self._open.get(id_)
        if one is not None and one.is_being_answered:
            one.outcome = resolution  # whose it was is known when our own answer is answered
        elif one is not None:
            self._settle(one, resolution, _DOOR if id_ in self._swept else _PERSON)

    def note_idle(self, session: str) -> None:
        """A session with nothing to do asks nothing any more: somebody stopped it."""
        for one in [one for one in self._open.values() if one.session == session and not one.is_being_answered]:
            self._settle(one, Resolution.GONE, "")

    def note_all(self, kind: str, listed: list[dict[str, Any]]) -> None:
        """The whole list, after a time in which nothing was heard."""
        there = {as_text(given.get("id")) for given in listed}
        for one in [one for one in self._open.values() if one.kind == kind and one.id not in there]:
            if not one.is_being_answered:
                self._settle(one, Resolution.GONE, "")
        for given in listed:
            self.note_asked(kind, given)

    def _settle(self, one: _Open, resolution: Resolution, by: str) -> None:
        self._open.pop(one.id, None)
        self._swept.discard(one.id)
        for request in one.requests if not self._is_over else ():
            self._listener.door_resolved(request.id, resolution, by)

    def close(self) -> None:
        """Nothing is told any more. What is open stays so, for the person."""
        self._is_over = True

    # --- answering ---------------------------------------------------------------------------------------------------

    async def answer(self, request_id: str, decision: Decision) -> None:
        one, request = self._find(request_id)
        if request.kind is RequestKind.PERMISSION:
            await self._answer_permission(one, decision)
        elif not decision.is_allowed:
            await self._reply(one, f"/question/{one.id}/reject", {}, Resolution.DENIED)
        elif not decision.answer:
            raise DoorError("Answer a question with one of its options, or with text.")
        else:
            one.answers[request.id] = decision.answer
            if len(one.answers) == len(one.requests):
                answers = [[one.answers[each.id]] for each in one.requests]
                await self._reply(one, f"/question/{one.id}/reply", {"answers": answers}, Resolution.ANSWERED)

    async def _answer_permission(self, one: _Open, decision: Decision) -> None:
        path = f"/permission/{one.id}/reply"
        if decision.is_allowed:
            await self._reply(one, path, {"reply": "once"}, Resolution.ALLOWED)
            return
        said = f"Denied by {decision.by or 'the relay'}"
        message = f"{said}: {decision.reason}" if decision.reason else f"{said}."
        # opencode refuses with it whatever else this session asks permission for.
        others = {each.id for each in self._open.values() if each.kind == PERMISSION and each.session == one.session} - {one.id}
        self._swept |= others
        try:
            await self._reply(one, path, {"reply": "reject", "message": message}, Resolution.DENIED)
        except DoorError:
            self._swept -= others
            raise

    async def _reply(self, one: _Open, path: str, body: dict[str, Any], resolution: Resolution) -> None:
        one.is_being_answered = True
        try:
            was_open = await self._post(path, body)
        finally:
            one.is_being_answered = False
        if was_open:
            self._settle(one, resolution, _DOOR)
            return
        if one.outcome is not None:
            self._settle(one, one.outcome, _PERSON)
        raise NotOpen(_LATE)

    def _find(self, request_id: str) -> tuple[_Open, Request]:
        for one in self._open.values():
            for request in one.requests:
                if request.id == request_id and not one.is_being_answered:
                    return one, request
        raise NotOpen(_LATE)


def _permission(id_: str, given: dict[str, Any]) -> Request:
    tool = _line(given.get("permission")) or "a tool"
    metadata = as_dict(given.get("metadata"))
    patterns = given.get("patterns")
    subjects = [as_text(metadata.get(key)) for key in _SUBJECTS]
    subjects.append(", ".join(as_text(pattern) for pattern in patterns) if isinstance(patterns, list) else "")
    whole = next((subject for subject in subjects if subject), "")
    subject = clean(whole)[:MAX_TEXT]
    text = f"opencode asks to use {tool}{': ' + subject if subject else ''}"
    is_exact = any(subjects[:-1]) and subject == whole  # patterns need not be the whole command
    return Request(id_, RequestKind.PERMISSION, text, tool, subject, ("allow", "deny"), is_exact=is_exact)


def _questions(id_: str, given: dict[str, Any]) -> list[Request]:
    questions = as_list(given.get("questions"))
    return [
        Request(
            id=id_ if len(questions) == 1 else f"{id_}-{number}",
            kind=RequestKind.QUESTION,
            text=clean(as_text(question.get("question")))[:MAX_TEXT],
            tool=QUESTION,
            subject=_line(question.get("header")),
            options=tuple(clean(as_text(option.get("label")))[:MAX_TEXT] for option in as_list(question.get("options"))),
            details={"takes_several": question.get("multiple") is True},
        )
        for number, question in enumerate(questions, 1)
    ]


def _line(value: object) -> str:
    return " ".join(clean(as_text(value)).split())[:200]
