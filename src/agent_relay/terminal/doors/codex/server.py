"""Codex's app-server as a way in: one that runs for this agent alone, beside the terminal it is shown in.

Messages are put into the conversation's own queue, which starts a turn when the agent is idle and waits for the end of one
when it is not. What the agent was given comes back with our id. The server may be started anew while the program runs:
then the connection is made again, and what was handed over is looked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from typing import Any

from agent_relay.terminal.doors.codex.app_server import (
    CLOSE_S,
    Refused,
    RequestId,
    Rpc,
    Threads,
    Unreachable,
    has_visitor,
    read_status,
)
from agent_relay.terminal.doors.codex.record import KNOWN, was_read
from agent_relay.terminal.doors.codex.requests import CodexRequests
from agent_relay.terminal.doors.door import Decision, DoorListener, DoorMessage, DoorShut, DoorState, NotTaken, Probe, Whereabouts
from agent_relay.terminal.doors.launch import AgentPlace
from agent_relay.terminal.doors.ledger import Handed, HandoverLedger
from agent_relay.terminal.output.json_fields import as_dict, as_list, as_text
from agent_relay.terminal.output.observations import Observation

START_S = 30.0  # the server is up before the program is; one that is not there by then was not started
THREAD_S = 600.0  # a person may have to log in, to trust the folder or to choose a conversation first
RELINK_S = 20.0
POLL_S = 0.1
TEND_S = 1.0
SOON_S = 0.25
GREETING_S = 0.5  # a terminal that is connected has said its greeting by then
STALLED_S = 2.0  # an idle agent takes up what is queued at once, unless a person broke off its last turn
WRITTEN_S = 0.5  # between leaving the queue and standing in the file
_MAX_PAGES = 20
_UPDATE = "Update Codex, or Agent Relay if Codex is newer."
_VERSION = re.compile(r"^[\w-]+/([\w.+-]+)")
_log = logging.getLogger("agent_relay.terminal")


class _QueuedMessage(Handed):
    thread_id: str = ""
    queued_id: str = ""  # by which it can be taken back


class CodexServer:
    name = "codex app-server"
    can_start_turns = True

    def __init__(self, path: str, place: AgentPlace, listener: DoorListener[Observation]) -> None:
        self._path = path
        self._place = place
        self._listener = listener
        self._rpc: Rpc | None = None
        self._threads = Threads(place.folder, listener.door_session)
        self._requests = CodexRequests(listener, self._reply)
        self._handed: HandoverLedger[_QueuedMessage] = HandoverLedger(listener)
        self._order = asyncio.Lock()
        self._due = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._told: tuple[DoorState, str] | None = None
        self._idle_since: float | None = None
        self._is_delivering = False
        self._is_over = False

    # --- opening and closing ---------------------------------------------------------------------------------------------

    async def open(self) -> Probe:
        rpc = await self._link(START_S)
        deadline = _now() + THREAD_S
        while not await self._try_thread(rpc):
            if rpc.lost.is_set():
                raise DoorShut("The app-server of Codex is gone.")
            if _now() > deadline:
                raise DoorShut("Codex has not begun a conversation.")
            await asyncio.sleep(POLL_S)
        self._tasks = [asyncio.create_task(self._keep(rpc)), asyncio.create_task(self._tend())]
        found = _VERSION.match(rpc.user_agent)
        return Probe(found[1] if found else "")

    async def _try_thread(self, rpc: Rpc) -> bool:
        try:
            if not await self._threads.find(rpc):
                return False
            page = await rpc.call("thread/queue/list", {"threadId": self._threads.id, "cursor": None})
            if not isinstance(page.get("data"), list):  # a version without queues is of no use to us
                raise DoorShut("This version of Codex lists its queue in an unknown format.", _UPDATE)
        except Refused as error:
            raise DoorShut(f"This version of Codex stores its conversations differently: {error}", _UPDATE) from None
        except Unreachable as error:
            raise DoorShut(str(error)) from None
        self._note_status(self._threads.state, self._threads.waiting_for)
        await self._subscribe(rpc)
        return True

    async def _link(self, seconds: float) -> Rpc:
        """Connected; raises DoorShut."""
        deadline = _now() + seconds
        await self._let_the_terminal_go_first(deadline)
        while True:
            rpc = Rpc(self._take_notice, self._take_request)
            try:
                await rpc.connect(self._path)
            except Refused as error:
                raise DoorShut(f"The app-server of Codex refused the connection: {error}") from None
            except Unreachable as error:
                if _now() > deadline:
                    raise DoorShut(str(error)) from None
                await asyncio.sleep(POLL_S)
            else:
                self._rpc = rpc
                return rpc

    async def _let_the_terminal_go_first(self, deadline: float) -> None:
        """Codex names itself to its model's provider after whoever was first to greet the server. That is not us."""
        since: float | None = None
        while _now() < deadline and (since is None or _now() - since < GREETING_S):
            since = (since or _now()) if has_visitor(self._path) else None
            await asyncio.sleep(POLL_S)

    async def _keep(self, rpc: Rpc) -> None:
        """A server that ended is started anew by whoever started it, as long as the program runs."""
        while True:
            await rpc.lost.wait()
            self._threads.note_unloaded()
            self._requests.drop()
            await rpc.close()
            try:
                rpc = await self._link(RELINK_S)
            except DoorShut as error:
                self._end(f"The app-server of Codex is gone and did not come back. {error}")
                return
            self._due.set()

    def _end(self, reason: str) -> None:
        """Told once: here, or to whoever is handing something over at that moment."""
        if not self._is_over:
            self._is_over = True
            self._handed.close()
            self._requests.close()
            if not self._is_delivering:
                self._listener.door_lost(reason)

    async def close(self) -> None:
        """Takes back what is still queued: it will reach the agent in another way."""
        self._is_over = True
        self._handed.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._requests.close()
        if self._rpc is not None:
            with contextlib.suppress(Refused, Unreachable, TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    for handed in self._handed:
                        await self._take_back(self._rpc, handed)
            await self._rpc.close()

    async def _take_back(self, rpc: Rpc, handed: _QueuedMessage) -> bool:
        params = {"threadId": handed.thread_id, "queuedSubmissionId": handed.queued_id}
        return bool((await rpc.call("thread/queue/delete", params)).get("deleted"))

    # --- delivering ------------------------------------------------------------------------------------------------------

    async def deliver(self, message: DoorMessage) -> str:
        async with self._order:
            rpc = self._ready()
            handed = self._handed.add(_QueuedMessage(message))  # before: it may be read before we are told
            self._is_delivering = True
            try:
                await self._add(rpc, handed)
            except Refused as error:
                self._handed.drop(message.uuid)
                self._due.set()
                raise NotTaken(f"Codex did not take it: {error}") from None
            except Unreachable:
                return await self._find_again(handed)
            finally:
                self._is_delivering = False
            self._expect_it_to_be_taken()
            return "queued in the conversation"

    def _expect_it_to_be_taken(self) -> None:
        """From now on, whether the queue moves is looked after."""
        if self._idle_since is not None:
            self._idle_since = _now()
        self._due.set()

    def _ready(self) -> Rpc:
        if self._is_over or self._rpc is None:
            raise DoorShut("The app-server of Codex is not open.")
        if self._rpc.lost.is_set() or not self._threads.is_loaded:
            raise NotTaken("Codex is reconnecting to its app-server.")
        return self._rpc

    async def _add(self, rpc: Rpc, handed: _QueuedMessage) -> None:
        handed.thread_id = self._threads.id
        given = [{"type": "text", "text": handed.message.text}]
        params = {"threadId": handed.thread_id, "clientUserMessageId": handed.message.uuid, "input": given}
        answer = await rpc.call("thread/queue/add", params)
        handed.queued_id = as_text(as_dict(answer.get("queuedSubmission")).get("id"))

    async def _find_again(self, handed: _QueuedMessage) -> str:
        """The connection broke while it was handed over: whether the server has it is asked when it is back."""
        deadline = _now() + RELINK_S
        while not self._is_over and _now() < deadline:
            where = await self.look_up(handed.message)
            if where is Whereabouts.READ:
                self._handed.read(handed.message.uuid, "transcript")
            if where in {Whereabouts.READ, Whereabouts.HELD}:
                return where.value
            if where is Whereabouts.NOWHERE:
                self._handed.drop(handed.message.uuid)
                raise NotTaken("The app-server of Codex ended while it was handed over.")
            await asyncio.sleep(POLL_S)
        self._end("The app-server of Codex is gone.")
        raise DoorShut("The app-server of Codex is gone.")

    # --- looking for what was handed over --------------------------------------------------------------------------------

    async def look_up(self, message: DoorMessage) -> Whereabouts:
        for _ in range(2):
            queued_id, is_known = await self._find_queued(message)
            if queued_id:
                handed = self._handed.get(message.uuid) or self._handed.add(_QueuedMessage(message, thread_id=self._threads.id))
                handed.queued_id = queued_id
                return Whereabouts.HELD
            paths = [thread.path for thread in KNOWN.load(self._place.folder)]
            if await asyncio.to_thread(was_read, paths, message):
                return Whereabouts.READ
            if not is_known:
                return Whereabouts.UNKNOWN
            await asyncio.sleep(WRITTEN_S)
        return Whereabouts.NOWHERE

    async def _find_queued(self, message: DoorMessage) -> tuple[str, bool]:
        """Its id in the queue; and whether the server could say."""
        if self._rpc is None or not self._threads.id:
            return "", False
        try:
            entries = await self._list_queue(self._rpc, self._threads.id)
        except (Refused, Unreachable):
            return "", False
        return next((as_text(entry.get("id")) for entry in entries if entry.get("clientUserMessageId") == message.uuid), ""), True

    async def _list_queue(self, rpc: Rpc, thread_id: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await rpc.call("thread/queue/list", {"threadId": thread_id, "cursor": cursor})
            entries += as_list(page.get("data"))
            cursor = as_text(page.get("nextCursor"))
            if not cursor:
                break
        return entries

    # --- what has to be asked of the server ------------------------------------------------------------------------------

    async def _tend(self) -> None:
        """Follows the person from one conversation to the next, and sets a queue going that stands still."""
        while True:
            self._due.clear()
            if self._rpc is not None and not self._rpc.lost.is_set() and not self._is_over:
                try:
                    await self._look(self._rpc)
                except (Refused, Unreachable) as error:
                    _log.info("the app-server of Codex: %s", error)
                except Exception:  # noqa: BLE001 - the next look may go well
                    _log.exception("the conversations of Codex could not be looked at")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._patience_s()):
                    await self._due.wait()

    def _patience_s(self) -> float | None:
        if not self._threads.is_loaded or (not self._threads.is_subscribed and self._idle_since is None):
            return SOON_S
        return TEND_S if self._handed else None

    async def _look(self, rpc: Rpc) -> None:
        if not self._threads.is_loaded and not await self._threads.find(rpc):
            return
        if await self._threads.judge(rpc):
            self._note_status(self._threads.state, self._threads.waiting_for)
            await self._move_queued(rpc)
        if not self._threads.is_subscribed and await self._subscribe(rpc):
            await self._catch_up()
        if self._idle_since is not None and _now() - self._idle_since >= STALLED_S:
            await self._set_going(rpc)

    async def _subscribe(self, rpc: Rpc) -> bool:
        """Not before the first turn; the state is told all the same."""
        if not await self._threads.subscribe(rpc):
            return False
        self._note_status(self._threads.state, self._threads.waiting_for)
        return True

    async def _catch_up(self) -> None:
        """Tells what was read before we were told of it."""
        paths = [thread.path for thread in KNOWN.load(self._place.folder)]
        for handed in self._handed:
            if await asyncio.to_thread(was_read, paths, handed.message):
                self._handed.read(handed.message.uuid, "transcript")

    async def _move_queued(self, rpc: Rpc) -> None:
        """Moves what waits in a conversation that the person has left to the next one."""
        async with self._order:
            for handed in [handed for handed in self._handed if handed.thread_id != self._threads.id]:
                if await self._take_back(rpc, handed):
                    await self._add(rpc, handed)

    async def _set_going(self, rpc: Rpc) -> None:
        """After a turn that a person broke off the queue stands still, until somebody says otherwise."""
        if not self._handed:
            return
        for entry in await self._list_queue(rpc, self._threads.id):
            if entry.get("clientUserMessageId") in self._handed:
                self._idle_since = _now()
                params = {"threadId": self._threads.id, "queuedSubmissionId": as_text(entry.get("id"))}
                await rpc.call("thread/queue/start", params)
                return
        await self._catch_up()

    # --- what the server says --------------------------------------------------------------------------------------------

    def _take_notice(self, method: str, params: dict[str, Any]) -> None:
        if self._is_over:
            return
        if method == "thread/started":
            self._threads.note_started(params.get("thread"))
            self._due.set()
            return
        if method == "serverRequest/resolved":
            self._requests.note_answered(params.get("requestId"))
            return
        thread_id = as_text(params.get("threadId"))
        if thread_id != self._threads.id:
            if method == "thread/status/changed" and self._threads.note_active(thread_id, as_dict(params.get("status"))):
                self._due.set()
            return
        match method:
            case "thread/status/changed":
                status = as_dict(params.get("status"))
                if status.get("type") == "notLoaded":
                    self._threads.note_unloaded()
                self._note_status(*read_status(status))
                self._due.set()
            case "item/started":
                self._requests.note_item(as_dict(params.get("item")), is_completed=False)
            case "item/completed":
                item = as_dict(params.get("item"))
                self._requests.note_item(item, is_completed=True)
                if item.get("type") == "userMessage":
                    self._handed.read(as_text(item.get("clientId")), "transcript")
            case "turn/completed":
                self._requests.note_turn_over(as_dict(params.get("turn")))
            case _:
                pass

    def _note_status(self, state: DoorState | None, waiting_for: str) -> None:
        if state is None or self._is_over:
            return
        self._idle_since = (self._idle_since or _now()) if state is DoorState.IDLE else None
        if (state, waiting_for) != self._told:
            self._told = (state, waiting_for)
            self._listener.door_state(state, waiting_for)

    # --- requests --------------------------------------------------------------------------------------------------------

    def _take_request(self, id_: RequestId, method: str, params: dict[str, Any]) -> None:
        if not self._is_over and as_text(params.get("threadId")) == self._threads.id:
            self._requests.ask(id_, method, params)

    async def _reply(self, id_: RequestId, result: dict[str, Any]) -> None:
        if self._rpc is None:
            raise Unreachable("The app-server of Codex is gone.")
        await self._rpc.reply(id_, result)

    async def answer(self, request_id: str, decision: Decision) -> None:
        await self._requests.answer(request_id, decision)


def _now() -> float:
    return asyncio.get_running_loop().time()
