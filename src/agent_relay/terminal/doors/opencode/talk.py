"""What opencode's events tell of messages: which of ours the agent has, and what the agent says.

A message of ours is stored as soon as it is handed over, and that is no reading. It is read when an answer has begun
whose request held it: an answer names the last message of its request, and every message stored before that one was in
it too. A text of the agent is whole once something comes after it, or its answer is complete; one that was broken off
is not passed on, since half a command is none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from agent_relay.terminal.output.transcripts.records import Seen, as_count, as_dict, as_text

_REMEMBERED = 2_000
V = TypeVar("V")


class Stored(Struct, frozen=True):
    """A message somebody gave the agent."""

    id: str
    session: str


class _Answer(Struct):
    session: str
    parent: str
    is_summary: bool
    is_whole: bool = False
    texts: dict[str, tuple[str, int]] = {}  # by part: the text and when it ended; not passed on yet


class Talk:
    """`stored`, `read` and `heard` are called with what is new. `heard` is given the part's id and when it ended."""

    def __init__(
        self, stored: Callable[[Stored], None], read: Callable[[str], None], heard: Callable[[str, str, str, int], None]
    ) -> None:  # fmt: skip
        self._stored = stored
        self._read = read
        self._heard = heard
        self._count = 0
        self._order: dict[str, tuple[str, int]] = {}  # given messages: their session, and when they were stored
        self._answers: dict[str, _Answer] = {}
        self._waiting: dict[str, None] = {}  # messages of ours, in order
        self._told = Seen()

    def expect(self, message_id: str) -> None:
        self._waiting[message_id] = None

    def forget(self, message_id: str) -> None:
        self._waiting.pop(message_id, None)

    def note_message(self, info: dict[str, Any]) -> None:
        id_, session = as_text(info.get("id")), as_text(info.get("sessionID"))
        if info.get("role") == "user" and id_:
            if id_ not in self._order:
                self._count += 1
                _keep(self._order, id_, (session, self._count))
            self._stored(Stored(id_, session))
        elif info.get("role") == "assistant" and id_:
            answer = self._answers.get(id_)
            if answer is None:
                answer = _Answer(session, as_text(info.get("parentID")), info.get("summary") is True)
                _keep(self._answers, id_, answer)
            answer.is_whole = bool(as_count(as_dict(info.get("time")).get("completed"))) and not info.get("error")
            if answer.is_whole:
                self._tell(answer)

    def note_part(self, part: dict[str, Any]) -> None:
        answer = self._answers.get(as_text(part.get("messageID")))
        if answer is None:
            return
        id_ = as_text(part.get("id"))
        if not answer.is_summary:
            self._note_begun(answer)
        earlier = {known for known in answer.texts if known < id_}
        self._tell(answer, earlier)
        ended_ms = as_count(as_dict(part.get("time")).get("end"))
        if part.get("type") == "text" and ended_ms and not part.get("synthetic") and not part.get("ignored"):
            answer.texts[id_] = (as_text(part.get("text")), ended_ms)
            if answer.is_whole:
                self._tell(answer)

    def _note_begun(self, answer: _Answer) -> None:
        session, last = self._order.get(answer.parent, (answer.session, 0))
        for id_ in list(self._waiting):
            where, number = self._order.get(id_, ("", 0))
            if where == session and number and (number <= last or id_ == answer.parent):
                del self._waiting[id_]
                self._read(id_)

    def _tell(self, answer: _Answer, only: set[str] | None = None) -> None:
        for id_ in [id_ for id_ in answer.texts if only is None or id_ in only]:
            text, ended_ms = answer.texts.pop(id_)
            if text.strip() and not answer.is_summary and self._told.is_new(id_):
                self._heard(answer.session, text, id_, ended_ms)


def _keep(known: dict[str, V], key: str, value: V) -> None:
    known[key] = value
    if len(known) > _REMEMBERED:
        del known[next(iter(known))]


def find_given(messages: list[dict[str, Any]], tail: str) -> tuple[str, bool] | None:
    """The id of the message whose id ends so, among those of a session, oldest first, and whether it was read."""
    infos = [as_dict(message.get("info")) for message in messages]
    ids = [as_text(info.get("id")) for info in infos]
    found = next((number for number, id_ in enumerate(ids) if id_.startswith("msg_") and id_.endswith(tail)), None)
    if found is None:
        return None
    after = set(ids[found:])
    for info, message in zip(infos, messages, strict=True):
        is_answer = info.get("role") == "assistant" and info.get("summary") is not True and as_text(info.get("parentID")) in after
        if is_answer and message.get("parts"):
            return ids[found], True
    return ids[found], False
