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

from msgspec.structs import replace

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.ports.service import Answer, KeyReused, MessageLife, MessagePage, Outgoing, Sent
from agent_relay.protocol import envelope as e
from agent_relay.protocol.channels import ChannelFacts, gather_channels
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import check_agent_name, fold_name, is_own, show, spare_names
from agent_relay.protocol.payloads import (
    AgentsPayload,
    ControlPayload,
    HistoryPayload,
    HistoryResultPayload,
    ListAgentsPayload,
    ReceiptPayload,
)
from agent_relay.transports.inner import Answers, InnerClient
from agent_relay.transports.pump import Pump

F = TypeVar("F", bound=e.Envelope)

SENDER = "http"  # who messages that were sent over HTTP were from before, and are where the owner has no name
_NAME_WAIT_S = 1.0  # a command under our name is usually over by then
_NAME_RETRY_S = 0.1
_COME_BACK_S = 0.5
_OWN_CLIS = {"http", "agent-relay"}  # what the owner sent with
_GRACE_MS = 1_000
_CONVERSATIONS = 1_000


class InnerService:
    def __init__(
        self, pump: Pump, uid: int, wall_ms: Callable[[], int], owner_token: str | None = None, name: str = ""
    ) -> None:  # fmt: skip
        self._pump = pump
        self._uid = uid
        self._wall_ms = wall_ms
        self._owner_token = owner_token
        self.name = name or SENDER  # the owner's
        self._observer = InnerClient(pump, uid, SENDER, observer=True, wall_ms=wall_ms)
        self._senders: dict[str, InnerClient] = {}
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

    async def _list(self) -> AgentsPayload:
        whole = found = _expect(await self._observer.ask("LIST_AGENTS", ListAgentsPayload()), e.Agents).payload
        agents = {agent["name"]: agent for agent in found.agents}
        while found.next_cursor is not None:
            found = _expect(await self._observer.ask("LIST_AGENTS", ListAgentsPayload(found.next_cursor)), e.Agents).payload
            agents |= {agent["name"]: agent for agent in found.agents}  # one that left meanwhile comes again
        whole.agents = list(agents.values())
        return whole

    async def messages(self, asked: HistoryPayload) -> MessagePage:
        found = await self._history(asked)
        return MessagePage(found.messages, found.next_cursor)

    async def conversations(self, limit: int) -> list[dict[str, Any]]:
        return (await self._history(HistoryPayload(view="conversations", limit=limit))).conversations

    async def message(self, message_id: str) -> MessageLife:
        found = await self._history(HistoryPayload(view="message", id=message_id))
        return MessageLife(found.messages[0], found.trail)

    async def dead_letters(self, limit: int) -> list[dict[str, Any]]:
        return (await self._history(HistoryPayload(view="dead_letters", limit=limit))).messages

    async def _history(self, asked: HistoryPayload) -> HistoryResultPayload:
        return _expect(await self._observer.ask("HISTORY", asked), e.HistoryResult).payload

    async def channels(self) -> list[ChannelFacts]:
        return gather_channels(await self.agents(), await self.conversations(_CONVERSATIONS))

    # --- acting ---------------------------------------------------------------------------------------------------------

    async def retry(self, message_id: str, caller: Caller = OWNER) -> dict[str, Any]:
        answer = await self._observer.ask("CONTROL", {"command": "retry_dead_letter", "id": message_id}, caller)
        said = _expect(answer, e.Receipt).payload
        return {"message_id": said.message_id, "to": said.by}

    async def control(
        self, agent: str, command: str, text: str | None = None, for_ms: int | None = None, caller: Caller = OWNER
    ) -> None:  # fmt: skip
        await self._observer.ask("CONTROL", ControlPayload(command, agent, text, for_ms=for_ms), caller)

    async def answer(self, agent: str, request_id: str, command: str, text: str, caller: Caller = OWNER) -> None:
        await self._observer.ask("CONTROL", {"command": command, "agent": agent, "id": request_id, "text": text}, caller)

    async def change_membership(self, command: str, channel: str, agent: str | None, caller: Caller = OWNER) -> str:
        if agent is None:
            sender = await self._open_sender()
            await sender.ask("CHANNEL_JOIN" if command == "join" else "CHANNEL_LEAVE", {"channel": channel})
            return sender.name
        answer = _expect(await self._observer.ask("CONTROL", ControlPayload(command, agent, channel=channel), caller), e.Receipt)
        return answer.payload.by or agent

    async def count_data(self, agent: str) -> dict[str, int]:
        return await self._order("count_data", agent)

    async def forget(self, agent: str) -> dict[str, int]:
        return await self._order("forget", agent)

    async def _order(self, command: str, agent: str) -> dict[str, int]:
        answer = _expect(await self._observer.ask("CONTROL", ControlPayload(command, agent)), e.Receipt)
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

    async def send(self, message: Outgoing, key: str | None = None) -> Sent:
        sender = await self._open_sender()
        payload = {"kind": message.kind, "body": message.body}
        payload |= {name: value for name in ("thread", "data") if (value := getattr(message, name)) is not None}
        meta = {name: value for name in ("priority", "ttl_ms", "reply_to") if (value := getattr(message, name)) is not None}
        fields: dict[str, Any] = {"to": message.to, "topic": message.topic}
        is_awaited = message.wait_ms is not None or message.reply_ms is not None
        async with sender.follow(key) as answers:
            if is_awaited:
                meta["requires_ack"] = True
            if message.reply_ms is not None:
                # We give up first: whatever the daemon says then is about the message, and not about the waiting.
                meta["sync"] = {"correlationId": answers.id, "timeoutMs": message.reply_ms + _GRACE_MS, "blocking": True}
            if meta:
                fields["payload_meta"] = meta
            await sender.tell("SEND", payload, answers.id, **fields)
            stored = _expect(await answers.next(), e.Receipt).payload
            if stored.duplicate and key is not None:
                await self._check_same(stored.message_id or "", key, payload, fields)
            sent = Sent(stored.message_id or "", stored.recipients or 0, stored.queued or 0, stored.skipped)
            return await self._wait(sender, answers, sent, message) if is_awaited else sent

    async def _wait(self, sender: InnerClient, answers: Answers, sent: Sent, message: Outgoing) -> Sent:
        """Until everyone has it, or, where an answer is wanted, until that is here."""
        by: list[str] = []
        failure: str | None = None
        reply: Answer | None = None
        wants_reply = message.reply_ms is not None
        try:
            async with asyncio.timeout((message.reply_ms or message.wait_ms or 0) / 1000):
                while (reply is None) if wants_reply and sent.recipients else (len(by) < sent.recipients):
                    said = _expect(await answers.next(), e.Receipt).payload
                    if said.by and said.by not in by:
                        by.append(said.by)
                    if wants_reply and said.correlationId == answers.id:
                        reply = await self._read_answer(said)
        except TimeoutError:
            pass
        except RelayError as error:  # one of them refused it, or let its time pass
            failure = error.message
        finally:
            if wants_reply and reply is None:  # also where whoever asked has hung up
                sender.say_unheard("CANCEL", {"correlationId": answers.id})
        is_delivered = 0 < sent.recipients == len(by)
        return replace(sent, delivered=is_delivered, by=by, failure=failure, reply=reply)

    async def _read_answer(self, said: ReceiptPayload) -> Answer:
        if said.response_message_id is None:
            body = said.response if isinstance(said.response, str) else ""
            return Answer(said.by or "", body, said.response, said.responseData)
        payload = (await self.message(said.response_message_id)).message["payload"]
        return Answer(said.by or "", str(payload.get("body", "")), None, payload.get("data"), said.response_message_id)

    async def _check_same(self, message_id: str, key: str, payload: dict[str, Any], fields: dict[str, Any]) -> None:
        """A key that was given to another message, perhaps before a restart, does not stand for this one. Raises RelayError."""
        before = (await self.message(message_id)).message
        if before.get("truncated"):  # too large to be shown whole
            says_same = payload["body"].startswith(before["payload"]["body"])
        else:
            says_same = payload == before["payload"]
        if not says_same or _names(before["to"]) != _names(fields["to"]) or before["topic"] != fields["topic"]:
            raise KeyReused(key)

    async def _open_sender(self) -> InnerClient:
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

    def _sender_of(self, name: str) -> InnerClient:
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

    async def _come_back(self, client: InnerClient) -> None:
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
