"""A small ARC relay in memory, for the clients and for the suite that checks relays.

It keeps to the protocol, and breaks it in one place where a fault is planted: `SmallRelay("client-from")`. It is written for
being read beside the protocol and shares nothing with the daemon.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import re
import secrets
import threading
import time
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs

import uvicorn

MAX_BYTES = 65_536
_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9-]{1,62}[a-z0-9]")
_RESERVED = {"relay", "system", "all"}
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class Refused(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code


class SmallRelay:
    def __init__(self, *faults: str, extensions: tuple[str, ...] = ("persistence",), welcomes: bool = True) -> None:
        self.faults = set(faults)
        self.extensions = list(extensions)
        self.welcomes = welcomes
        self.agents: dict[str, str] = {}  # token → id
        self.ever: set[str] = set()
        self.peers: dict[str, Send] = {}
        self.subscriptions: dict[str, set[str]] = {}  # subscriber → whom
        self.stored: dict[str, list[dict[str, Any]]] = {}
        self.log: list[dict[str, Any]] = []
        self.frames: list[Any] = []  # what clients sent, for tests to look at
        self.refuse_next: list[int] = []  # statuses for the next attempts to connect
        self.mute = False  # answers no commands
        self.forget_next = 0  # so many messages are taken, and the connection breaks before anybody hears of it
        self._numbers = itertools.count(1)
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._config = uvicorn.Config(
            self, host="127.0.0.1", port=0, ws="websockets-sansio", lifespan="off", log_config=None, log_level="critical",
            ws_max_size=64 * 1024 * 1024 if "no-size-limit" in self.faults else 1024 * 1024, ws_ping_interval=None,
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        self._server = uvicorn.Server(self._config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    # --- as a server ------------------------------------------------------------------------------------------------

    def __enter__(self) -> SmallRelay:
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            assert time.monotonic() < deadline, "the relay did not start"
            time.sleep(0.005)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.should_exit = True
        self._thread.join(30)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        await self._server.serve()

    @property
    def url(self) -> str:
        port = self._server.servers[0].sockets[0].getsockname()[1]
        return f"ws://127.0.0.1:{port}/arc"

    def close_peer(self, agent_id: str, code: int) -> None:
        """Ends an agent's connection from the relay's side."""
        assert self._loop is not None
        close = self.peers[agent_id]({"type": "websocket.close", "code": code, "reason": "told to"})
        asyncio.run_coroutine_threadsafe(_await(close), self._loop).result(10)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._talk(scope, receive, send)
        elif scope["type"] == "http":
            status, body = await self._answer(scope, receive)
            headers = [(b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": json.dumps(body).encode()})

    # --- registering ------------------------------------------------------------------------------------------------

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, Any]:
        body = (await receive()).get("body", b"")
        try:
            match scope["method"], scope["path"]:
                case "POST", "/register":
                    return 200, self._register(body)
                case "POST", "/token/refresh":
                    agent = self._agent_of(scope)
                    return 200, {"agent_id": agent, "token": self._new_token(agent)}
                case "DELETE", "/register":
                    agent = self._agent_of(scope)
                    self.agents = {token: known for token, known in self.agents.items() if known != agent}
                    if agent in self.peers:
                        await self.peers[agent]({"type": "websocket.close", "code": 4001, "reason": ""})
                    return 200, {"agent_id": agent, "revoked": True}
            raise Refused(404, "not_found")
        except Refused as refused:
            return refused.status, {"error": refused.code, "message": f"No: {refused.code}."}

    def _register(self, body: bytes) -> dict[str, str]:
        try:
            said = json.loads(body or b"{}")
        except ValueError:
            raise Refused(400, "invalid_json") from None
        agent = said.get("agent_id") if isinstance(said, dict) else None
        if agent is None:
            agent = f"agent-{secrets.token_hex(4)}"
        if "any-agent-id" not in self.faults and not (isinstance(agent, str) and _AGENT_ID.fullmatch(agent)):
            raise Refused(400, "invalid_agent_id")
        if (agent in self.ever and "reuses-agent-ids" not in self.faults) or agent in _RESERVED:
            raise Refused(409, "agent_id_taken")
        self.ever.add(agent)
        return {"agent_id": agent, "token": self._new_token(agent)}

    def _new_token(self, agent: str) -> str:
        token = f"tok_{secrets.token_urlsafe(32)}"
        if "same-token" in self.faults:
            token = "tok_same"
        self.agents[token] = agent
        return token

    def _agent_of(self, scope: Scope) -> str:
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        given = headers.get("authorization", "").removeprefix("Bearer ")
        if not headers.get("authorization") and "no-query-token" not in self.faults:
            given = (parse_qs(scope.get("query_string", b"").decode()).get("token") or [""])[0]
        if given in self.agents:
            return self.agents[given]
        if "any-token" in self.faults and given:
            return f"guest-{len(given)}"
        raise Refused(401, "unauthorized")

    # --- the socket -------------------------------------------------------------------------------------------------

    async def _talk(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        try:
            if self.refuse_next:
                raise Refused(self.refuse_next.pop(0), "not_now")
            agent = self._agent_of(scope)
        except Refused as refused:
            await send({"type": "websocket.http.response.start", "status": refused.status, "headers": [(b"retry-after", b"7")]})
            await send({"type": "websocket.http.response.body", "body": b"{}"})
            return
        await send({"type": "websocket.accept"})
        old, self.peers[agent] = self.peers.get(agent), send
        if old is not None and "two-at-once" not in self.faults:
            await _quietly(old({"type": "websocket.close", "code": 4000, "reason": "superseded"}))
        try:
            if self.welcomes:
                await self._say(agent, "welcome", self._welcome(agent), **self._welcome(agent))
            for message in self.stored.pop(agent, []):
                await self._deliver(agent, message | {"stored": True})
            while (event := await receive())["type"] == "websocket.receive":
                await self._on_frame(agent, event)
        finally:
            if self.peers.get(agent) is send and "keeps-the-dead" not in self.faults:
                del self.peers[agent]

    def _welcome(self, agent: str) -> dict[str, Any]:
        return {
            "relay": "small", "version": "1.0", "capabilities": ["broadcast", "direct", "subscribe", "offline"],
            "extensions": self.extensions, "limits": {"max_message_size": MAX_BYTES, "rate_limit": "none"}, "agent_id": agent,
        }  # fmt: skip

    async def _on_frame(self, agent: str, event: dict[str, Any]) -> None:
        if self._stopped:
            return
        text = event.get("text")
        try:
            frame = json.loads(text) if text is not None else None
        except ValueError:
            frame = None
        self.frames.append(frame)
        if frame is None and "null-stops-it" in self.faults:
            self._stopped = True
            return
        size = len(text.encode()) if text is not None else len(event.get("bytes") or b"")
        if size > MAX_BYTES and "no-size-limit" not in self.faults:
            await self._error(agent, "message_too_large", None)
        elif not isinstance(frame, dict) or not is_addressed(frame):
            await self._error(agent, "invalid_message", None)
        elif "relay" in frame["to"]:
            await self._command(agent, frame)
        elif "payload" not in frame and "needs-no-payload" not in self.faults:
            await self._error(agent, "invalid_message", frame.get("ref"))
        else:
            await self._route(agent, frame)

    # --- routing ----------------------------------------------------------------------------------------------------

    async def _route(self, sender: str, frame: dict[str, Any]) -> None:
        message = {**frame, "id": self._new_id(), "from": sender, "ts": time.time_ns() // 1_000_000}
        for fault, field in (("client-from", "from"), ("client-ts", "ts"), ("client-id", "id")):
            if fault in self.faults and field in frame:
                message[field] = frame[field]
        if "drops-fields" in self.faults:
            message = {name: message[name] for name in ("id", "from", "to", "payload", "ts")}
        if "ts-in-seconds" in self.faults:
            message["ts"] //= 1000
        self.log.append(message)
        targets = self._targets(sender, frame["to"])
        if self.forget_next:
            self.forget_next -= 1
            await self.peers.pop(sender)({"type": "websocket.close", "code": 1011, "reason": ""})
        for target in targets:
            if target in self.peers:
                await self._deliver(target, message)
            elif target in self.ever and "*" not in frame["to"] and "forgets-the-absent" not in self.faults:
                self.stored.setdefault(target, []).append(message)

    def _targets(self, sender: str, to: list[str]) -> list[str]:
        if "*" in to:
            if "subscribers-only" in self.faults:
                return [peer for peer in self.peers if sender in self.subscriptions.get(peer, ())]
            return [peer for peer in self.peers if peer != sender or "echoes-broadcasts" in self.faults]
        targets = list(to) if "repeats" in self.faults else list(dict.fromkeys(to))
        if "first-recipient-only" in self.faults:
            targets = targets[:1]
        if "direct-to-all" in self.faults:
            targets = [peer for peer in self.peers if peer != sender]
        if "leaks-to-subscribers" in self.faults:
            targets += [who for who, whom in self.subscriptions.items() if sender in whom and who not in targets]
        return targets

    def _new_id(self) -> str:
        return "msg_always" if "same-id" in self.faults else f"msg_{next(self._numbers):08d}"

    async def _deliver(self, agent: str, message: dict[str, Any]) -> None:
        sending = self.peers[agent]({"type": "websocket.send", "text": json.dumps(message)})
        await (sending if "keeps-the-dead" in self.faults else _quietly(sending))

    # --- what is for the relay itself -------------------------------------------------------------------------------

    async def _command(self, agent: str, frame: dict[str, Any]) -> None:
        payload = frame.get("payload")
        arguments: dict[str, Any] = payload if isinstance(payload, dict) else {}
        ref = frame.get("ref")
        mine = self.subscriptions.setdefault(agent, set())
        if self.mute:
            return
        match frame.get("type"):
            case "ping":
                if "no-pong" not in self.faults:
                    await self._say(agent, "pong", {}, ref)
            case "subscribe":
                mine |= set(arguments["agents"])
                await self._say(agent, "subscribed", {"agents": sorted(mine), "count": len(mine)}, ref)
            case "unsubscribe":
                if "never-unsubscribes" not in self.faults:
                    mine -= set(arguments["agents"])
                await self._say(agent, "unsubscribed", {"agents": sorted(mine), "count": len(mine)}, ref)
            case "list_subscriptions":
                await self._say(agent, "subscriptions", {"agents": sorted(mine)}, ref)
            case "command" if arguments.get("command") in {"history", "search", "replay"}:
                found = {"command": arguments["command"], "messages": self._find(agent, arguments), "more": False}
                await self._say(agent, "command_result", found, ref)
            case _:
                await self._error(agent, "unknown_type", ref)

    def _find(self, agent: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
        seen = [
            message
            for message in self.log
            if agent in message["to"] or "*" in message["to"] or message["from"] == agent or "shows-all-history" in self.faults
        ]
        if "since_message_id" in arguments:
            return [message for message in seen if message["id"] > arguments["since_message_id"]]
        if "query" in arguments:
            return [message for message in seen if arguments["query"] in json.dumps(message["payload"])]
        return seen[-int(arguments.get("limit", 50)) :]

    async def _error(self, agent: str, code: str, ref: Any) -> None:
        if "silent-errors" not in self.faults:
            said = {"error": code, "message": f"No: {code}; look at `to` and `payload`."}
            await self._say(agent, "error", {"code": code, **said}, ref, **said)

    async def _say(self, agent: str, type_: str, payload: Any, ref: Any = None, **more: Any) -> None:
        envelope = {"id": self._new_id(), "from": "relay", "to": [agent], "type": type_, "payload": payload, **more}
        await self._deliver(agent, envelope | {"ts": time.time_ns() // 1_000_000} | ({"ref": ref} if ref is not None else {}))


def is_addressed(frame: dict[str, Any]) -> bool:
    to = frame.get("to")
    return isinstance(to, list) and bool(to) and all(isinstance(name, str) for name in to)


async def _quietly(sending: Awaitable[None]) -> None:
    with contextlib.suppress(Exception):  # whoever is gone is gone
        await sending


async def _await(sending: Awaitable[None]) -> None:
    await sending
