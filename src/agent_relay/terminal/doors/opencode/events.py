"""opencode's stream of events, and what it tells: of the messages and the words of the agent, and of its work.

The stream is followed for as long as the program runs: begun again when it breaks, given up when it is over.

A message of ours is stored as soon as it is handed over, and that is no reading. It is read when an answer has begun
whose request held it: an answer names the last message of its request, and every message stored before that one was in
it too. A text of the agent is whole once something comes after it, or its answer is complete; one that was broken off
is not passed on, since half a command is none.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import string
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeVar

from msgspec import Struct

from agent_relay.terminal.doors.opencode.loopback_http import HttpFailed, HttpRefused, LoopbackHttp
from agent_relay.terminal.output.json_fields import as_count, as_dict, as_list, as_text, decode_object
from agent_relay.terminal.output.observations import Observation, TranscriptObserver
from agent_relay.terminal.output.transcripts.file_changes import MAX_CHANGES, FileChange, read_content, read_diff
from agent_relay.terminal.output.transcripts.records import Record, Seen, Spending, Thinking, ToolCall, ToolResult
from agent_relay.terminal.profiles.profile import Transcript

SILENCE_S = 45.0  # it sends a sign of life every ten seconds
AGAIN_S = 0.3
REFUSED_S = 2.0  # nobody listens any more: the program has ended
BROKEN_S = 30.0
_log = logging.getLogger("agent_relay.terminal")
_MAX_MESSAGES = 2_000
V = TypeVar("V")
_TOOLS = Transcript(
    shape="opencode", home="", commands=("bash",), reads=("read",), writes=("write",), edits=("edit", "apply_patch"),
    searches=("grep", "glob", "websearch", "codesearch"), plans=("todowrite",),
)  # fmt: skip
_ENDED = ("completed", "error")
_MAX_MODELS = 500
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
_TAIL = 14
_STEPS = 0x1000  # ids within a millisecond
_TIME_BITS = 48  # opencode keeps so many of the time, twelve digits


class Feed:
    """`catch_up` asks for what may have been missed, whenever the stream has begun; it may raise HttpFailed. `lost` is called
    once, with the reason."""

    def __init__(
        self, http: LoopbackHttp, catch_up: Callable[[], Awaitable[None]], take: Callable[[dict[str, Any]], None],
        lost: Callable[[str], None],
    ) -> None:  # fmt: skip
        self._http = http
        self._catch_up = catch_up
        self._take = take
        self._lost = lost
        self._task: asyncio.Task[None] | None = None
        self._broken_at: float | None = None
        self._caught_up = asyncio.Event()

    async def open(self, seconds: float) -> bool:
        """False: nothing was told within that time."""
        self._task = asyncio.create_task(self._run())
        waiting = asyncio.create_task(self._caught_up.wait())
        try:
            await asyncio.wait([self._task, waiting], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        return self._caught_up.is_set() and not self._task.done()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        reason = ""
        try:
            while not reason:
                reason = await self._follow()
                await asyncio.sleep(AGAIN_S)
        except Exception:  # noqa: BLE001 - a fault must end as a lost door, not as silence
            _log.exception("the events of opencode cannot be followed")
            reason = "The events of opencode can no longer be followed."
        self._lost(reason)

    async def _follow(self) -> str:
        """One stream, from its beginning to its end. Says why there should not be another one."""
        trouble, patience_s = "it ended the stream of events", BROKEN_S
        try:
            events = self._http.events("/event", SILENCE_S)
            async with aclosing(events):
                async for data in events:
                    if self._broken_at is not None or not self._caught_up.is_set():
                        await self._catch_up()
                        self._broken_at = None
                        self._caught_up.set()
                    event = decode_object(data)
                    if event is not None:
                        self._take(event)
        except HttpRefused as error:
            trouble, patience_s = str(error), REFUSED_S
        except HttpFailed as error:
            trouble = str(error)
        now = asyncio.get_running_loop().time()
        self._broken_at = now if self._broken_at is None else self._broken_at
        return f"The server of opencode is gone: {trouble}." if now - self._broken_at >= patience_s else ""


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
    """The messages and the words of the agent. `stored`, `read` and `heard` are called with what is new; `heard` is given the
    part's id and when it ended."""

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
    if len(known) > _MAX_MESSAGES:
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


class Notices:
    """The agent's work: tools that start and end, commands, files, tokens. `noticed` is called with what is new."""

    def __init__(self, noticed: Callable[[Observation], None]) -> None:
        self._noticed = noticed
        self._observer = TranscriptObserver(_TOOLS)
        self._models: dict[str, str] = {}  # by answer
        self._seen = Seen()

    def note_message(self, info: dict[str, Any]) -> None:
        if info.get("role") == "assistant":
            self._models[as_text(info.get("id"))] = as_text(info.get("modelID"))
            if len(self._models) > _MAX_MODELS:
                del self._models[next(iter(self._models))]

    def note_part(self, part: dict[str, Any]) -> None:
        if part.get("type") == "tool":
            self._note_tool(part, as_dict(part.get("state")))
        elif part.get("type") == "reasoning" and as_text(part.get("messageID")) in self._models:
            times, id_ = as_dict(part.get("time")), as_text(part.get("id"))
            ended_ms = as_count(times.get("end"))
            if ended_ms:
                self._tell(id_, Thinking(id_, as_text(part.get("text")), ended_ms, as_count(times.get("start"))))
        elif part.get("type") == "step-finish":
            tokens, id_ = as_dict(part.get("tokens")), as_text(part.get("id"))
            cache = as_dict(tokens.get("cache"))
            model = self._models.get(as_text(part.get("messageID"))) or None
            counts = (as_count(tokens.get("input")), as_count(tokens.get("output")))
            self._tell(id_, Spending(id_, model, 0, *counts, as_count(cache.get("read")), as_count(cache.get("write"))))

    def _note_tool(self, part: dict[str, Any], state: dict[str, Any]) -> None:
        """It is pending until its input is whole, and runs also while a person is asked whether it may."""
        id_, times, status = as_text(part.get("callID")), as_dict(state.get("time")), state.get("status")
        if status == "running" or status in _ENDED:
            given = as_dict(state.get("input"))
            arguments = {**given, "file_path": given["filePath"]} if "filePath" in given else given
            self._tell(f"{id_}:start", ToolCall(id_, as_text(part.get("tool")), arguments, as_count(times.get("start"))))
        if status in _ENDED:
            told = as_dict(state.get("metadata"))
            is_error, code = status == "error", told.get("exit")
            output = as_text(state.get("error") if is_error else state.get("output"))
            result = ToolResult(
                id_, as_count(times.get("end")), is_error, was_run=not is_error, output=output,
                exit_code=code if isinstance(code, int) else None, changes=_read_changes(told, as_dict(state.get("input"))),
            )  # fmt: skip
            self._tell(f"{id_}:end", result)

    def _tell(self, id_: str, record: Record) -> None:
        if self._seen.is_new(id_):
            for observation in self._observer.observe(record):
                self._noticed(observation)


def _read_changes(told: dict[str, Any], given: dict[str, Any]) -> tuple[FileChange, ...] | None:
    """Changes that a tool made: of a patch each file, else the one it was given."""
    if isinstance(told.get("files"), list):
        found = [_read_file(file) for file in as_list(told["files"])[:MAX_CHANGES]]
        return tuple(change for change in found if change.path)
    path, diff = as_text(given.get("filePath")), as_text(told.get("diff"))
    if not path or not (diff or "exists" in told):
        return None
    if told.get("exists") is False:
        return (read_content(path, as_text(given.get("content"))),)
    return (read_diff("", path, diff),)


def _read_file(file: dict[str, Any]) -> FileChange:
    operation = {"add": "create", "delete": "delete"}.get(as_text(file.get("type")), "edit")
    path = as_text(file.get("movePath")) or as_text(file.get("filePath"))
    return read_diff(operation, path, as_text(file.get("patch")) or as_text(file.get("diff")))


class HandedIds(Struct, frozen=True):
    message: str
    part: str


class IdMaker:
    """Ids of opencode's own form for what we hand over: a time and a tail.

    The time puts a message where it belongs, should two be stored in the same millisecond. The tail is made from the message
    and a secret of this run of the program, so that a later wrapper knows its own again, and takes no other agent's for it:
    a message to several has the same id everywhere, and sessions of one project are seen by all.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._last = 0

    def tail(self, uuid: str) -> str:
        number = int.from_bytes(hashlib.sha256(f"{self._secret}:{uuid}".encode()).digest(), "big")
        digits = []
        for _ in range(_TAIL):
            number, digit = divmod(number, len(_DIGITS))
            digits.append(_DIGITS[digit])
        return "".join(digits)

    def make(self, uuid: str, now_ms: int) -> HandedIds:
        """Later ones are greater, also when the clock is not."""
        self._last = max(self._last + 1, now_ms * _STEPS)
        name = f"{self._last % (1 << _TIME_BITS):012x}{self.tail(uuid)}"
        return HandedIds(f"msg_{name}", f"prt_{name}")
