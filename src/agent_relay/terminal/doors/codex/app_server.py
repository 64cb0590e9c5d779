"""Codex's app-server: the connection to it, and which of its conversations is the agent's.

Requests, answers and notices are one JSON object a message, over a WebSocket. What the server says is not trusted: anything
that is no message of a known shape is passed over.

The server runs for one terminal, and holds the conversations that were opened there, those that Codex has with itself
(titles, helpers) among them. The person is in the one that was begun last, or in which something was done last.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
import time
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct
from websockets.asyncio.client import ClientConnection, unix_connect
from websockets.exceptions import WebSocketException

from agent_relay.terminal.doors.codex.record import KNOWN, remember
from agent_relay.terminal.doors.door import DoorState
from agent_relay.terminal.doors.known import KnownSession
from agent_relay.terminal.output.json_fields import as_count, as_dict, as_text, decode_object
from agent_relay.version import __version__

CONNECT_S = 5.0
CALL_S = 10.0  # the server answers in milliseconds, from its memory or a small database
CLOSE_S = 2.0
VISIT_S = 3.0
MAX_MESSAGE_BYTES = 67_108_864  # what a tool printed comes in one piece; beyond that the connection is closed
# What streams in pieces, and comes whole as well. The person's terminal gets it all the same.
_UNWANTED = [
    "item/agentMessage/delta", "item/commandExecution/outputDelta", "item/fileChange/outputDelta", "item/plan/delta",
    "item/reasoning/summaryPartAdded", "item/reasoning/summaryTextDelta", "item/reasoning/textDelta",
    "command/exec/outputDelta", "process/outputDelta", "thread/tokenUsage/updated", "turn/diff/updated",
]  # fmt: skip
_CONNECTED = "03"  # in the kernel's list of sockets
_log = logging.getLogger("agent_relay.terminal")

RequestId: TypeAlias = int | str
Notice = Callable[[str, dict[str, Any]], None]
Asked = Callable[[RequestId, str, dict[str, Any]], None]
MAX_THREADS = 200
_REMEMBERED = 500


class Refused(Exception):  # noqa: N818 - named by the condition
    """The server answered that it will not."""


class Unreachable(Exception):  # noqa: N818 - named by the condition
    """There is no server, or no answer: whether it did what was asked, nobody can say."""


class Rpc:
    """`notice` and `asked` are called from the event loop; what they raise is logged."""

    def __init__(self, notice: Notice, asked: Asked) -> None:
        self._notice = notice
        self._asked = asked
        self._socket: ClientConnection | None = None
        self._waiting: dict[RequestId, asyncio.Future[dict[str, Any]]] = {}
        self._count = 0
        self._reader: asyncio.Task[None] | None = None
        self.lost = asyncio.Event()
        self.user_agent = ""

    async def connect(self, path: str) -> None:
        """Raises Unreachable, and Refused by a server that does not know our greeting."""
        _check_socket(path)
        try:
            async with asyncio.timeout(CONNECT_S):
                # Any address will do for a Unix socket.
                self._socket = await unix_connect(
                    path, "ws://localhost/rpc", compression=None, max_size=MAX_MESSAGE_BYTES, close_timeout=CLOSE_S
                )  # fmt: skip
        except (OSError, TimeoutError, WebSocketException, ValueError) as error:
            raise Unreachable(f"The app-server of Codex cannot be reached ({type(error).__name__}).") from None
        self._reader = asyncio.create_task(self._read(self._socket))
        client = {"name": "agent-relay", "title": "Agent Relay", "version": __version__}
        wishes = {"experimentalApi": True, "optOutNotificationMethods": _UNWANTED}
        try:
            greeting = await self.call("initialize", {"clientInfo": client, "capabilities": wishes})
            await self._send({"method": "initialized"})
        except BaseException:
            await self.close()
            raise
        self.user_agent = as_text(greeting.get("userAgent"))

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result; raises Refused and Unreachable. A server that is silent for too long is let go of."""
        self._count += 1
        key = self._count
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[key] = answer
        try:
            async with asyncio.timeout(CALL_S):
                await self._send({"id": key, "method": method, "params": params})
                return await answer
        except TimeoutError:
            if self._socket is not None:
                self._socket.transport.abort()
            raise Unreachable(f"The app-server of Codex did not answer {method}.") from None
        finally:
            self._waiting.pop(key, None)

    async def reply(self, id_: RequestId, result: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(CALL_S):
                await self._send({"id": id_, "result": result})
        except TimeoutError:
            raise Unreachable("The app-server of Codex does not read.") from None

    async def close(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError, WebSocketException):
                await self._socket.close()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _send(self, message: dict[str, Any]) -> None:
        if self._socket is None or self.lost.is_set():
            raise Unreachable("The app-server of Codex is gone.")
        try:
            await self._socket.send(msgspec.json.encode(message), text=True)
        except (OSError, WebSocketException):
            raise Unreachable("The app-server of Codex is gone.") from None

    async def _read(self, socket: ClientConnection) -> None:
        try:
            async for data in socket:
                self._take(data)
        except (OSError, WebSocketException) as error:
            _log.info("the app-server of Codex let go: %s", type(error).__name__)
        finally:
            self.lost.set()
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(Unreachable("The app-server of Codex is gone."))

    def _take(self, data: str | bytes) -> None:
        message = decode_object(data) or {}
        method, id_ = as_text(message.get("method")), message.get("id")
        try:
            if not method:
                self._take_answer(id_, message)
            elif isinstance(id_, int | str):
                self._asked(id_, method, as_dict(message.get("params")))
            else:
                self._notice(method, as_dict(message.get("params")))
        except Exception:  # noqa: BLE001 - one message that is not understood must not end the hearing
            _log.exception("%s of the app-server of Codex was not understood", method[:80] or "an answer")

    def _take_answer(self, id_: object, message: dict[str, Any]) -> None:
        answer = self._waiting.get(id_) if isinstance(id_, int | str) else None
        if answer is None or answer.done():
            return
        if "error" in message:
            said = as_text(as_dict(message["error"]).get("message"))
            answer.set_exception(Refused(said[:200] or "no reason given"))
        else:
            answer.set_result(as_dict(message.get("result")))


def has_visitor(path: str) -> bool:
    """Whether somebody is connected to this socket; where the system does not say, whether somebody had the time to."""
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="replace") as file:
            entries = [line.split(maxsplit=7) for line in file]
    except OSError:
        return _age_s(path) > VISIT_S
    real = os.path.realpath(path)
    return any(len(entry) == 8 and entry[5] == _CONNECTED and entry[7].rstrip("\n") == real for entry in entries)


def _age_s(path: str) -> float:
    try:
        return time.time() - os.lstat(path).st_ctime
    except OSError:
        return 0.0


def _check_socket(path: str) -> None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        raise Unreachable("Codex has no app-server for this agent.") from None
    if not stat.S_ISSOCK(status.st_mode) or status.st_uid != os.getuid():
        raise Unreachable("The app-server of Codex is not a socket that you own.")


class ServedThread(Struct, frozen=True):
    """A conversation, as the app-server tells of it."""

    thread: KnownSession
    is_agents: bool  # a person's conversation, not one that Codex has with itself
    state: DoorState | None
    waiting_for: str
    used_at: int


def read_thread(value: object) -> ServedThread | None:
    """None for anything that has no id."""
    told = as_dict(value)
    id_ = as_text(told.get("id"))
    if not id_:
        return None
    path = as_text(told.get("path"))
    own = not told.get("ephemeral") and not told.get("parentThreadId") and told.get("threadSource") in {"user", None}
    state, waiting_for = read_status(as_dict(told.get("status")))
    used_at = max(as_count(told.get("recencyAt")), as_count(told.get("createdAt")))
    return ServedThread(KnownSession(id_, path if path.endswith(".jsonl") else ""), own, state, waiting_for, used_at)


def read_status(status: dict[str, Any]) -> tuple[DoorState | None, str]:
    """The state of the thread, and what it waits for; None when it does not say, or says what we do not know."""
    match status.get("type"):
        case "idle" | "systemError":
            return DoorState.IDLE, ""
        case "active":
            flags = status.get("activeFlags")
            if isinstance(flags, list) and "waitingOnApproval" in flags:
                return DoorState.WAITING, "permission"
            if isinstance(flags, list) and "waitingOnUserInput" in flags:
                return DoorState.WAITING, "question"
            return DoorState.WORKING, ""
        case _:
            return None, ""


class Threads:
    """`changed` is told the id of each conversation that becomes the agent's."""

    def __init__(self, folder: str, changed: Callable[[str], None]) -> None:
        self._folder = folder
        self._changed = changed
        self._current: ServedThread | None = None
        self._candidates: list[str] = []
        self._others: dict[str, None] = {}  # those that are known not to be the agent's
        self.is_loaded = False
        self.is_subscribed = False

    @property
    def id(self) -> str:
        return self._current.thread.id if self._current is not None else ""

    @property
    def state(self) -> DoorState | None:
        return self._current.state if self._current is not None else None

    @property
    def waiting_for(self) -> str:
        return self._current.waiting_for if self._current is not None else ""

    async def find(self, rpc: Rpc) -> bool:
        """For a server that we have just met; False while there is no conversation. Only one that the person's terminal has
        opened will do: opened by us, it would run with other permissions than the person asked for."""
        loaded = (await rpc.call("thread/loaded/list", {})).get("data")
        ids = [as_text(id_) for id_ in loaded][-MAX_THREADS:] if isinstance(loaded, list) else []
        found = [served for id_ in ids if (served := await self._ask(rpc, id_)) is not None and served.is_agents]
        if not found:
            return False
        known = [thread.id for thread in KNOWN.load(self._folder)]
        best = max(found, key=lambda served: (_place(known, served.thread.id), served.used_at))
        self._use(best)
        return True

    async def judge(self, rpc: Rpc) -> bool:
        """True: the person has gone on to another conversation."""
        has_changed = False
        while self._candidates:
            served = await self._ask(rpc, self._candidates.pop(0))
            if served is not None and served.is_agents and served.thread.id != self.id:
                self._use(served)
                has_changed = True
        return has_changed

    async def subscribe(self, rpc: Rpc) -> bool:
        """From then on its events come. Before its first turn there is nothing to subscribe to."""
        try:
            answer = await rpc.call("thread/resume", {"threadId": self.id, "excludeTurns": True})
        except Refused:
            return False
        served = read_thread(answer.get("thread"))
        if served is None or served.thread.id != self.id:
            return False
        self._current = served
        remember(self._folder, served.thread)
        self.is_subscribed = True
        return True

    def note_unloaded(self) -> None:
        self.is_loaded = self.is_subscribed = False

    def note_started(self, value: object) -> None:
        served = read_thread(value)
        if served is not None and served.is_agents:
            self._candidates.append(served.thread.id)
        elif served is not None:
            self._leave(served.thread.id)

    def note_active(self, thread_id: str, status: dict[str, Any]) -> bool:
        """Something is done in another conversation; True when it may be one of the person's."""
        if not thread_id or status.get("type") != "active" or thread_id in self._others:
            return False
        self._candidates.append(thread_id)
        return True

    async def _ask(self, rpc: Rpc, thread_id: str) -> ServedThread | None:
        try:
            served = read_thread((await rpc.call("thread/read", {"threadId": thread_id})).get("thread"))
        except Refused:
            return None
        if served is not None and not served.is_agents:
            self._leave(thread_id)
        return served

    def _leave(self, thread_id: str) -> None:
        self._others[thread_id] = None
        if len(self._others) > _REMEMBERED:
            del self._others[next(iter(self._others))]

    def _use(self, served: ServedThread) -> None:
        self._current = served
        self.is_loaded, self.is_subscribed = True, False
        remember(self._folder, served.thread)
        self._changed(served.thread.id)


def _place(known: list[str], id_: str) -> int:
    return known.index(id_) if id_ in known else -1
