"""opencode's own server: takes messages whatever the agent does, tells everything that happens, and takes answers.

It is the server of the terminal program itself, on a port of the loopback that we chose. Messages go into the session
that the terminal shows; where it shows none, one is begun and shown. Everything is learnt from the stream of events; when
that breaks, what may have been missed is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from typing import Any

from agent_relay.protocol.requests import PERMISSION, QUESTION
from agent_relay.terminal.doors.door import (
    Decision,
    DoorError,
    DoorListener,
    DoorMessage,
    DoorShut,
    DoorState,
    NotTaken,
    Probe,
    Resolution,
    Whereabouts,
)
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed, HandoverLedger
from agent_relay.terminal.doors.opencode.events import Feed, HandedIds, IdMaker, Notices, Stored, Talk, find_given
from agent_relay.terminal.doors.opencode.loopback_http import (
    REQUEST_S,
    HttpAnswer,
    HttpFailed,
    HttpRefused,
    LoopbackHttp,
    owner_of_port,
)
from agent_relay.terminal.doors.opencode.requests import OpencodeRequests
from agent_relay.terminal.doors.opencode.sessions import OwnSessions, Sessions, session_id, wait_for_view
from agent_relay.terminal.output.json_fields import as_dict, as_list, as_text
from agent_relay.terminal.output.observations import Observation, utter
from agent_relay.terminal.output.transcripts.records import Saying

START_S = 120.0  # a first start fetches things; nothing can be typed meanwhile either
FIRST_ANSWER_S = 1.0  # who asks while it is starting is never answered, who asks again is; a busy machine needs longer
VIEW_S = 60.0  # the terminal is drawn long after the server answers
POLL_S = 0.1
STORED_S = 20.0
LATEST = 100  # messages that are looked at first
MAX_LOOKED_UP = 12  # sessions
EVIDENCE = "session"


class OpencodeServer:
    name = "opencode server"
    can_start_turns = True

    def __init__(self, place: AgentPlace, facts: Mapping[str, str], listener: DoorListener[Observation]) -> None:
        self._place = place
        self._facts = facts
        self._listener = listener
        port = int(facts["port"])
        self._http = LoopbackHttp(port, facts.get("username", ""), facts.get("password", ""))
        self._ids = IdMaker(facts["secret"])
        self._requests = OpencodeRequests(listener, self._post_answer)
        self._talk = Talk(self._note_stored, self._note_read, self._note_heard)
        self._notices = Notices(listener.door_noticed)
        self._own = OwnSessions(place.folder, int(facts.get("since_ms", "0")))
        self._sessions = Sessions(self._http, place.folder, self._own, facts.get("session", ""))
        self._given: dict[str, HandedIds] = {}  # by uuid: asked for again, it must be the same message
        self._handed: HandoverLedger[Handed] = HandoverLedger(listener)  # by opencode's id
        self._storing: dict[str, asyncio.Future[str]] = {}  # by opencode's id: empty, or why it was not stored
        self._order = asyncio.Lock()
        self._feed = Feed(self._http, self._catch_up, self._take, self._lose)
        self._told: tuple[DoorState, str] | None = None
        self._is_open = False
        self._is_over = False

    # --- opening and closing -----------------------------------------------------------------------------------------

    async def open(self) -> Probe:
        version = await self._wait_for_server()
        await self._check()
        if not await self._feed.open(START_S):
            raise DoorShut("The server of opencode sends no events.")
        note = await self._note()
        if self._is_over:
            raise DoorShut("The server of opencode ended during its probe.")
        self._is_open = True
        return Probe(version, note)

    async def _wait_for_server(self) -> str:
        """Its version. Nothing is said to a server of another user's."""
        until = _now() + START_S
        reason, patience_s = "", FIRST_ANSWER_S
        while _now() < until:
            owner = await asyncio.to_thread(owner_of_port, self._http.port)
            if owner is not None and owner != os.getuid():
                raise DoorShut(f"Another user's program listens at port {self._http.port}, not opencode.")
            try:
                answer = await self._http.request("GET", "/global/health", timeout_s=patience_s)
            except HttpFailed as error:
                reason = str(error)
                patience_s = patience_s if isinstance(error, HttpRefused) else min(2 * patience_s, REQUEST_S)
                await asyncio.sleep(POLL_S)
                continue
            return _version(answer)
        raise DoorShut(f"The server of opencode does not answer: {reason}.")

    async def _check(self) -> None:
        """That it is the server we know, by asking what we will ask for later."""
        for path, shape in (("/session/status", dict), ("/permission", list), ("/question", list)):
            try:
                answer = await self._http.request("GET", path)
            except HttpFailed as error:
                raise DoorShut(f"The server of opencode does not answer: {error}.") from None
            if answer.status != 200 or not isinstance(answer.json(), shape):
                raise DoorShut(f"The server of opencode answers {path} in an unknown way (status {answer.status}).")

    async def _note(self) -> str:
        if not self._facts.get("view"):
            return ""
        is_there = await wait_for_view(self._place.folder, lambda view: view is not None or self._is_over, VIEW_S)
        return "" if is_there is not None else "it does not say which session it shows; messages go where the last ones went"

    async def close(self) -> None:
        self._is_over = True
        self._handed.close()
        self._requests.close()
        await self._feed.close()
        self._fail_storing("The door was closed.")

    def _lose(self, reason: str) -> None:
        """Told once, and nothing after it."""
        if not self._is_over:
            self._is_over = True
            self._handed.close()
            self._requests.close()
            self._fail_storing(reason)
            if self._is_open:
                self._listener.door_lost(reason)

    # --- delivering --------------------------------------------------------------------------------------------------

    async def deliver(self, message: DoorMessage) -> str:
        async with self._order:
            if self._is_over or not self._is_open:
                raise DoorShut("The server of opencode is not open.")
            try:
                return await self._deliver(message)
            except HttpRefused as error:
                reason = f"The server of opencode is gone: {error}."
                self._lose(reason)
                raise DoorShut(reason) from None
            except HttpFailed as error:
                raise NotTaken(f"The server of opencode did not take it: {error}.") from None

    async def _deliver(self, message: DoorMessage) -> str:
        if message.uuid in self._given and await self._is_stored(message):
            return "stored in the session"
        session = await self._sessions.find_or_begin()
        if session is None:
            raise NotTaken("opencode shows no session and starts none.")
        ids = self._given.get(message.uuid) or self._ids.make(message.uuid, time.time_ns() // 1_000_000)
        self._given[message.uuid] = ids
        self._hand(ids.message, message)
        stored = self._storing[ids.message] = asyncio.get_running_loop().create_future()
        try:
            body = {"messageID": ids.message, "parts": [{"id": ids.part, "type": "text", "text": message.text}], **session.mode}
            answer = await self._http.request("POST", f"/session/{session.id}/prompt_async", body)
            if not 200 <= answer.status < 300:
                raise NotTaken(f"opencode refused it (status {answer.status}).")
            await self._wait_until_stored(session.id, ids.message, stored)
        except (DoorError, HttpFailed):
            self._unhand(ids.message)
            raise
        finally:
            self._storing.pop(ids.message, None)
        return "stored in the session"

    async def _wait_until_stored(self, session: str, id_: str, stored: asyncio.Future[str]) -> None:
        """Only then may the next one go: opencode answers before it has done anything."""
        trouble = "opencode accepted it but did not store it."
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STORED_S):
                trouble = await asyncio.shield(stored)
        if not trouble or (await self._http.request("GET", f"/session/{session}/message/{id_}")).status == 200:
            return
        raise NotTaken(trouble)

    async def _is_stored(self, message: DoorMessage) -> bool:
        """Whether an earlier try has arrived after all."""
        where = await self.look_up(message)
        return where in (Whereabouts.READ, Whereabouts.HELD)

    def _hand(self, id_: str, message: DoorMessage) -> None:
        self._handed.add(Handed(message), id_)
        self._talk.expect(id_)

    def _unhand(self, id_: str) -> None:
        self._handed.drop(id_)
        self._talk.forget(id_)

    def _fail_storing(self, reason: str) -> None:
        for stored in self._storing.values():
            if not stored.done():
                stored.set_result(reason)

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        tail = self._ids.tail(message.uuid)
        try:
            for session in (await self._sessions.own() or await self._sessions.latest())[:MAX_LOOKED_UP]:
                found = await self._find_given(session, tail)
                if found is not None:
                    id_, is_read = found
                    if not is_read and id_ not in self._handed and not self._is_over:
                        self._talk.note_message({"role": "user", "id": id_, "sessionID": session})
                        self._hand(id_, message)  # its reading is told like any other
                    elif is_read:
                        self._note_read(id_)
                    return Whereabouts.READ if is_read else Whereabouts.HELD
        except HttpFailed:
            return Whereabouts.UNKNOWN
        return Whereabouts.NOWHERE

    async def _find_given(self, session: str, tail: str) -> tuple[str, bool] | None:
        """Among the latest first: a session may be long."""
        latest = await self._messages(session, LATEST)
        found = find_given(latest, tail)
        return find_given(await self._messages(session), tail) if found is None and len(latest) >= LATEST else found

    async def _messages(self, session: str, limit: int = 0) -> list[dict[str, Any]]:
        """All, or the latest. None of a session that is not there; that they cannot be told is another matter."""
        answer = await self._http.request("GET", f"/session/{session}/message{f'?limit={limit}' if limit else ''}")
        if answer.status == 404:
            return []
        found = await asyncio.to_thread(answer.json)
        if answer.status != 200 or not isinstance(found, list):
            raise HttpFailed(f"the messages of a session were not told (status {answer.status})")
        return as_list(found)

    # --- answering ---------------------------------------------------------------------------------------------------

    async def answer(self, request_id: str, decision: Decision) -> None:
        if self._is_over:
            raise DoorShut("The server of opencode is not open.")
        await self._requests.answer(request_id, decision)
        self._tell_state()

    async def _post_answer(self, path: str, body: dict[str, Any]) -> bool:
        try:
            answer = await self._http.request("POST", path, body)
        except HttpFailed as error:
            raise DoorError(f"opencode did not take the answer: {error}.") from None
        if answer.status == 404:
            return False
        if not 200 <= answer.status < 300:
            raise DoorError(f"opencode refused the answer (status {answer.status}).")
        return True

    # --- listening ---------------------------------------------------------------------------------------------------

    async def _catch_up(self) -> None:
        """Asks for what may have happened while nobody listened."""
        status = as_dict((await self._http.request("GET", "/session/status")).json())
        self._sessions.note_all_statuses({id_: as_text(as_dict(value).get("type")) for id_, value in status.items()})
        for kind in (PERMISSION, QUESTION):
            self._requests.note_all(kind, as_list((await self._http.request("GET", f"/{kind}")).json()))
        for session in (await self._sessions.own())[:MAX_LOOKED_UP]:
            for message in await self._messages(session, LATEST):
                self._talk.note_message(as_dict(message.get("info")))
                for part in as_list(message.get("parts")):
                    self._talk.note_part(part)
        self._tell_state()

    def _take(self, event: dict[str, Any]) -> None:
        if self._is_over:
            return
        given = as_dict(event.get("properties"))
        match event.get("type"):
            case "message.updated":
                self._talk.note_message(as_dict(given.get("info")))
                self._notices.note_message(as_dict(given.get("info")))
            case "message.part.updated":
                self._talk.note_part(as_dict(given.get("part")))
                self._notices.note_part(as_dict(given.get("part")))
            case "session.created" | "session.updated":
                self._sessions.note_info(as_dict(given.get("info")))
            case "session.status":
                self._note_status(session_id(given.get("sessionID")), as_text(as_dict(given.get("status")).get("type")))
            case "session.idle":
                self._note_status(session_id(given.get("sessionID")), "idle")
            case "session.deleted":
                self._note_status(session_id(as_dict(given.get("info")).get("id")), "idle")
            case "session.error":
                self._note_error(session_id(given.get("sessionID")), as_dict(given.get("error")))
            case "tui.session.select":
                self._sessions.note_used(session_id(given.get("sessionID")))
            case "permission.asked":
                self._requests.note_asked(PERMISSION, given)
            case "permission.replied":
                is_allowed = given.get("reply") in ("once", "always")
                self._requests.note_ended(
                    as_text(given.get("requestID")), Resolution.ALLOWED if is_allowed else Resolution.DENIED
                )
            case "question.asked":
                self._requests.note_asked(QUESTION, given)
            case "question.replied":
                self._requests.note_ended(as_text(given.get("requestID")), Resolution.ANSWERED)
            case "question.rejected":
                self._requests.note_ended(as_text(given.get("requestID")), Resolution.DENIED)
            case _:
                return
        self._tell_state()

    def _note_status(self, session: str, status: str) -> None:
        self._sessions.note_status(session, status)
        if status == "idle":
            self._requests.note_idle(session)

    def _note_error(self, session: str, error: dict[str, Any]) -> None:
        """A message that was accepted may fail before it is stored."""
        text = as_text(as_dict(error.get("data")).get("message")) or as_text(error.get("name"))
        if session and error.get("name") != "MessageAbortedError":
            self._fail_storing(f"opencode could not take it: {text[:200]}")

    def _note_stored(self, stored: Stored) -> None:
        waiting = self._storing.get(stored.id)
        if waiting is not None and not waiting.done():
            waiting.set_result("")
        self._sessions.note_used(stored.session)

    def _note_read(self, id_: str) -> None:
        handed = self._handed.read(id_, EVIDENCE)
        self._talk.forget(id_)
        if handed is not None:
            self._given.pop(handed.message.uuid, None)

    def _note_heard(self, session: str, text: str, part: str, ended_ms: int) -> None:
        if self._is_over or ended_ms < self._own.since_ms or self._sessions.is_child(session):
            return
        self._listener.door_heard(text, part)
        self._listener.door_noticed(utter(Saying(part, text, ended_ms)))
        self._own.note_heard(ended_ms)

    def _tell_state(self) -> None:
        waiting_for = self._requests.waiting_for
        state = DoorState.WORKING if self._sessions.is_busy else DoorState.IDLE
        now = (DoorState.WAITING, waiting_for) if waiting_for else (state, "")
        if now != self._told and not self._is_over:
            self._told = now
            self._listener.door_state(*now)


def _version(answer: HttpAnswer) -> str:
    if answer.status == 401:
        raise DoorShut("The server of opencode does not know the password it was started with.")
    found = as_dict(answer.json())
    if answer.status != 200 or found.get("healthy") is not True:
        raise DoorShut(f"Something unknown answers at opencode's port (status {answer.status}).")
    return as_text(found.get("version"))


def _now() -> float:
    return asyncio.get_running_loop().time()
