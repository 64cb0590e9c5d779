"""`ports.RelayService` over inner clients: an observer that looks and controls, and one that sends as the daemon's owner.

The second is there from the first message that the owner sent, over HTTP or from the command line. Whatever is written to the
owner can be read in the history and in the stream of events, so it acknowledges everything. It gives way to a command of the
owner's that comes under the same name, and comes back when that is over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.service import KeyReused, MessageLife, MessagePage, Sent
from agent_relay.protocol import envelope as e
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, fold_name, is_own, show, spare_names
from agent_relay.protocol.payloads import Agents, Control, History, HistoryResult, ListAgents
from agent_relay.transports.inner import InnerClient
from agent_relay.transports.pump import Pump

F = TypeVar("F", bound=e.Envelope)

SENDER = "http"  # who messages that were sent over HTTP were from before, and are where the owner has no name
_NAME_WAIT_S = 1.0  # a command under our name is usually over by then
_NAME_RETRY_S = 0.1
_COME_BACK_S = 0.5
_OWN_CLIS = {"http", "agent-relay"}  # what the owner sent with


class InnerService:
    def __init__(
        self, pump: Pump[Any], uid: int, wall_ms: Callable[[], int], owner_token: str | None = None, name: str = ""
    ) -> None:  # fmt: skip
        self._pump = pump
        self._uid = uid
        self._wall_ms = wall_ms
        self._owner_token = owner_token
        self.name = name or SENDER  # the owner's
        self._observer = InnerClient(pump, uid, SENDER, observer=True, wall_ms=wall_ms)
        self._senders: dict[str, InnerClient[Any]] = {}
        self._choosing = asyncio.Lock()
        self._coming_back: set[asyncio.Task[None]] = set()
        self._is_over = False

    async def start(self) -> None:
        """Takes up the names again that the owner has sent under before: something may have been written to them meanwhile."""
        known = {fold_name(agent["name"]): agent for agent in await self.agents()}
        for name in dict.fromkeys((*spare_names(self.name), SENDER)):
            agent = known.get(fold_name(name))
            if agent is not None and (agent["cli"] in _OWN_CLIS or is_own(name)):
                with contextlib.suppress(RelayError):
                    await self._sender_of(name).open()

    def close(self) -> None:
        self._is_over = True
        self._observer.leave()
        for sender in self._senders.values():
            sender.leave()

    # --- looking --------------------------------------------------------------------------------------------------------

    async def server(self) -> dict[str, Any]:
        return (await self._list()).server

    async def agents(self) -> list[dict[str, Any]]:
        return (await self._list()).agents

    async def agent(self, name: str) -> dict[str, Any]:
        key = fold_name(name)
        for found in await self.agents():
            if fold_name(found["name"]) == key:
                return found
        raise RelayError(ErrorCode.AGENT_NOT_FOUND, f"There is no agent {show(name, 80)}.", name=name[:80])

    async def sessions(self) -> list[dict[str, Any]]:
        return (await self._list()).sessions

    async def _list(self) -> Agents:
        whole = found = _expect(await self._observer.ask("LIST_AGENTS", ListAgents()), e.Agents).payload
        agents = {agent["name"]: agent for agent in found.agents}
        while found.next_cursor is not None:
            found = _expect(await self._observer.ask("LIST_AGENTS", ListAgents(found.next_cursor)), e.Agents).payload
            agents |= {agent["name"]: agent for agent in found.agents}  # one that left meanwhile comes again
        whole.agents = list(agents.values())
        return whole

    async def messages(self, asked: History) -> MessagePage:
        found = await self._history(asked)
        return MessagePage(found.messages, found.next_cursor)

    async def conversations(self, limit: int) -> list[dict[str, Any]]:
        return (await self._history(History(view="conversations", limit=limit))).conversations

    async def message(self, message_id: str) -> MessageLife:
        found = await self._history(History(view="message", id=message_id))
        return MessageLife(found.messages[0], found.trail)

    async def dead_letters(self, limit: int) -> list[dict[str, Any]]:
        return (await self._history(History(view="dead_letters", limit=limit))).messages

    async def _history(self, asked: History) -> HistoryResult:
        return _expect(await self._observer.ask("HISTORY", asked), e.HistoryResult).payload

    # --- acting ---------------------------------------------------------------------------------------------------------

    async def retry(self, message_id: str, caller: Caller = OWNER) -> dict[str, Any]:
        answer = await self._observer.ask("CONTROL", {"command": "retry_dead_letter", "id": message_id}, caller)
        said = _expect(answer, e.Receipt).payload
        return {"message_id": said.message_id, "to": said.by}

    async def control(
        self, agent: str, command: str, text: str | None = None, for_ms: int | None = None, caller: Caller = OWNER
    ) -> None:  # fmt: skip
        await self._observer.ask("CONTROL", Control(command, agent, text, for_ms=for_ms), caller)

    async def answer(self, agent: str, request_id: str, command: str, text: str, caller: Caller = OWNER) -> None:
        await self._observer.ask("CONTROL", {"command": command, "agent": agent, "id": request_id, "text": text}, caller)

    async def count_data(self, agent: str) -> dict[str, int]:
        return await self._order("count_data", agent)

    async def forget(self, agent: str) -> dict[str, int]:
        return await self._order("forget", agent)

    async def _order(self, command: str, agent: str) -> dict[str, int]:
        answer = _expect(await self._observer.ask("CONTROL", Control(command, agent)), e.Receipt)
        counts: dict[str, int] = answer.payload.responseData
        return counts

    async def spawn(self, fields: dict[str, Any], caller: Caller = OWNER) -> dict[str, Any]:
        check_agent_name(fields["name"])
        sender = await self._open_sender()  # its first message, the task, is from us
        said = _expect(await sender.ask("SPAWN", fields, caller), e.SpawnResult).payload
        if not said.success:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, said.error or f"{said.name} was not started.")
        return {"name": said.name, "session_id": said.session_id}

    async def release(self, name: str, reason: str | None, caller: Caller = OWNER) -> dict[str, Any]:
        said = _expect(
            await (await self._open_sender()).ask("RELEASE", {"name": name, "reason": reason}, caller), e.ReleaseResult
        ).payload
        if not said.success:
            raise RelayError(ErrorCode.SERVICE_UNAVAILABLE, said.error or f"{said.name} was not released.")
        return {"name": said.name}

    # --- sending --------------------------------------------------------------------------------------------------------

    async def send(
        self,
        to: str | list[str] | None,
        body: str,
        *,
        kind: str,
        thread: str | None,
        topic: str | None,
        await_ms: int | None,
        key: str | None = None,
        data: dict[str, Any] | None = None,
        priority: int | None = None,
        ttl_ms: int | None = None,
        reply_to: str | None = None,
    ) -> Sent:
        sender = await self._open_sender()
        payload = _without_nothing({"kind": kind, "body": body, "thread": thread, "data": data})
        fields: dict[str, Any] = {"to": to, "topic": topic}
        wishes = {"requires_ack": await_ms is not None or None, "priority": priority, "ttl_ms": ttl_ms, "reply_to": reply_to}
        if meta := _without_nothing(wishes):
            fields["payload_meta"] = meta
        async with sender.follow(key) as answers:
            await sender.tell("SEND", payload, answers.id, **fields)
            stored = _expect(await answers.next(), e.Receipt).payload
            if stored.duplicate and key is not None:
                await self._check_same(stored.message_id or "", key, payload, fields)
            count = stored.recipients or 0
            sent = Sent(stored.message_id or "", count, stored.queued or 0, stored.skipped)
            if await_ms is None:
                return sent
            by: list[str] = []
            failure: str | None = None
            try:
                async with asyncio.timeout(await_ms / 1000):
                    while len(by) < count:
                        by.append(_expect(await answers.next(), e.Receipt).payload.by or "")
            except TimeoutError:
                pass
            except RelayError as error:  # one of them refused it, or let its time pass
                failure = error.message
            return Sent(sent.message_id, count, sent.queued, sent.skipped, len(by) == count, by, failure)

    async def _check_same(self, message_id: str, key: str, payload: dict[str, Any], fields: dict[str, Any]) -> None:
        """A key that was given to another message, perhaps before a restart, does not stand for this one. Raises RelayError."""
        before = (await self.message(message_id)).message
        if before.get("truncated"):  # too large to be shown whole
            says_same = payload["body"].startswith(before["payload"]["body"])
        else:
            says_same = payload == before["payload"]
        if not says_same or _names(before["to"]) != _names(fields["to"]) or before["topic"] != fields["topic"]:
            raise KeyReused(key)

    async def _open_sender(self) -> InnerClient[Any]:
        """Connected under the owner's name, or under one that stands in for it while somebody else has it."""
        async with self._choosing:
            deadline = asyncio.get_running_loop().time() + _NAME_WAIT_S
            for name in spare_names(self.name):
                while True:
                    client = self._sender_of(name)
                    try:
                        await client.open()
                        return client
                    except RelayError as error:
                        if not _is_in_use(error):
                            raise
                    if asyncio.get_running_loop().time() >= deadline:
                        break
                    await asyncio.sleep(_NAME_RETRY_S)
            raise RelayError(
                ErrorCode.SERVICE_UNAVAILABLE, f"Every name from {self.name} to {spare_names(self.name)[-1]} is taken."
            )

    def _sender_of(self, name: str) -> InnerClient[Any]:
        if name not in self._senders:
            self._senders[name] = InnerClient(
                self._pump, self._uid, name, observer=False, wall_ms=self._wall_ms, owner_token=self._owner_token,
                superseded=lambda: self._plan_to_come_back(name),
            )  # fmt: skip
        return self._senders[name]

    def _plan_to_come_back(self, name: str) -> None:
        task = asyncio.create_task(self._come_back(self._senders[name]))
        self._coming_back.add(task)
        task.add_done_callback(self._coming_back.discard)

    async def _come_back(self, client: InnerClient[Any]) -> None:
        """When the command that took our name is over: what is written to the owner meanwhile waits until then."""
        while not self._is_over:
            await asyncio.sleep(_COME_BACK_S)
            try:
                await client.open()
                return
            except RelayError as error:
                if not _is_in_use(error):
                    return  # the daemon is stopping, or the name is not ours any more


def _without_nothing(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _is_in_use(error: RelayError) -> bool:
    return error.details.get("reason") == "name_in_use"


def _names(to: str | list[str] | None) -> set[str]:
    """Whom a message is for, however that was written."""
    return {fold_name(name) for name in (to.split(",") if isinstance(to, str) else to or [])}


def _expect(answer: e.DaemonFrame, kind: type[F]) -> F:
    if not isinstance(answer, kind):
        raise RelayError(ErrorCode.INTERNAL_ERROR, f"The relay gave an answer of another kind: {type(answer).__name__}.")
    return answer
