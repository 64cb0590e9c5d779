"""Calls of the tools over HTTP, carried out by the relay's service in the owner's name. Whatever fails is a RelayError."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_never

from msgspec import to_builtins

from agent_relay.ports.callers import Caller
from agent_relay.ports.service import KeyReused, MessagePage, Outgoing, RelayService, Sent
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.mcp import texts
from agent_relay.protocol.mcp.resources import Resource
from agent_relay.protocol.mcp.tools import (
    MAX_LIMIT,
    AgentsArguments,
    AskArguments,
    HistoryArguments,
    InboxArguments,
    JoinArguments,
    ReleaseArguments,
    ReplyArguments,
    ResultArguments,
    SendArguments,
    SpawnArguments,
    StatusArguments,
    VoteArguments,
    read_arguments,
)
from agent_relay.protocol.names import CHANNEL_MARK, check_agent_name, check_channel, fold_name, show
from agent_relay.protocol.payloads import HistoryPayload, SpawnPayload
from agent_relay.transports.http.mcp.sessions import McpSession

_FIRST_MS = 24 * 3_600_000  # so far back the first look at the inbox goes
_PAGE = 50
_MOST_PAGES = 20  # of an inbox; whoever has more unread looks at the history
_THREADS = 20  # that are listed


class OwnerCalls:
    """The calls of one session. `caller`: who it is, as the system says; the service checks what needs a right."""

    def __init__(self, service: RelayService, wall_ms: Callable[[], int], session: McpSession, caller: Caller) -> None:
        self._service = service
        self._wall_ms = wall_ms
        self._session = session
        self._caller = caller

    async def call(self, tool: str, given: Mapping[str, Any] | None) -> str:
        service, caller = self._service, self._caller
        match read_arguments(tool, given):
            case SendArguments(to, text, thread):
                return _show_sent(await service.send(Outgoing(to=_read_target(to), body=text, thread=thread)))
            case AskArguments(to, text, seconds):
                return await self._ask(to, text, seconds)
            case ReplyArguments(id_, text):
                return await self._reply(id_, text)
            case InboxArguments(peek):
                return await self._inbox(peek=peek)
            case AgentsArguments():
                agents = [to_builtins(each) for each in service.agents()]
                return texts.show_agents(agents, service.name, self._wall_ms(), await service.channels())
            case HistoryArguments() as asked:
                return await self._history(asked)
            case JoinArguments(channel, at_leisure, leave):
                channel = CHANNEL_MARK + channel.removeprefix(CHANNEL_MARK)
                check_channel(channel)
                if leave:
                    await service.change_membership("leave", channel, None, caller=caller)
                    return texts.show_left(channel)
                await service.change_membership("join", channel, None, at_leisure, caller)
                return texts.show_joined(channel, at_leisure=bool(at_leisure))
            case SpawnArguments(name, cli, task):
                check_agent_name(name)
                await service.spawn(SpawnPayload(name, cli, task), caller)
                return f"{name} runs and can be written to."
            case ReleaseArguments(name):
                check_agent_name(name)
                await service.release(name, None, caller)
                return f"{name} is stopped."
            case ResultArguments() as result:
                return await self._result(result)
            case VoteArguments(proposal, choice, reason):
                return texts.show_vote(await service.vote(proposal, choice, reason, caller), choice)
            case StatusArguments(id_):
                return await self._status(id_)
            case other:
                assert_never(other)

    async def _ask(self, to: str, text: str, seconds: int) -> str:
        sent = await self._service.send(Outgoing(to=_read_target(to), body=text, reply_ms=seconds * 1000))
        if sent.reply is not None:
            return texts.show_answer(sent.reply.by, sent.reply.body)
        raise RelayError(ErrorCode.DELIVERY_TIMEOUT, texts.show_no_answer(seconds, sent.failure or ""))

    async def _reply(self, id_: str, text: str) -> str:
        message = (await self._service.message(id_)).message
        if fold_name(message.from_) == fold_name(self._service.name):
            raise RelayError(ErrorCode.INVALID_TARGET, "That message is your own; use relay_send to add to it.", field="id")
        reply = Outgoing(to=message.from_, body=text, thread=message.thread, reply_to=message.message_id)
        return _show_sent(await self._service.send(reply))

    async def _result(self, given: ResultArguments) -> str:
        """As `sdk.results` does it: a task is a question in a thread of its own, and only its first result counts."""
        text, name = given.text, self._service.name
        page = _plain(await self._service.messages(HistoryPayload(thread=given.task, to=name, limit=MAX_LIMIT)))
        asked = next((each for each in page if (each.get("payload_meta") or {}).get("sync")), page[0] if page else None)
        if asked is None:
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"{name} was given no task {show(given.task, 80)}; use the id that stands in the task.",
                field="task",
            )  # fmt: skip
        data = {"task": given.task} if given.error is None else {"task": given.task, "error": given.error}
        result = Outgoing(
            to=str(asked["from"]), body=text, kind="result", thread=given.task, data=data, reply_to=str(asked["message_id"])
        )
        try:
            sent = await self._service.send(result, f"result_{asked['message_id']}")
        except KeyReused:
            raise RelayError(
                ErrorCode.REJECTED, f"Task {show(given.task, 80)} already has a result; the first one counts."
            ) from None  # fmt: skip
        return texts.show_result(given.task, sent.message_id)

    async def _inbox(self, *, peek: bool) -> str:
        """The owner's messages are acknowledged for them as they come, so what a session has seen is known by the last id."""
        seen, now = self._session.seen, self._wall_ms()
        since = None if seen else now - _FIRST_MS
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._service.messages(
                HistoryPayload(to=self._service.name, since=since, limit=MAX_LIMIT, cursor=cursor)
            )  # fmt: skip
            fresh = [each for each in _plain(page) if str(each["message_id"]) > seen]
            found += fresh
            cursor = page.next_cursor
            if cursor is None or len(fresh) < len(page.messages):
                break
        fresh = found[::-1][:MAX_LIMIT]  # the oldest; the next look shows more
        if fresh and not peek:
            self._session.seen = str(fresh[-1]["message_id"])
        return texts.show_messages(fresh, now, f"Nothing waits for {self._service.name}.")

    async def _history(self, asked: HistoryArguments) -> str:
        found = await self._service.messages(
            HistoryPayload(with_=asked.with_, thread=asked.thread, search=asked.search, limit=asked.limit)
        )
        more = found.next_cursor is not None
        return texts.show_messages(_plain(found)[::-1], self._wall_ms(), "No message matches.", more=more)

    async def _status(self, id_: str | None) -> str:
        if id_ is not None:
            life = await self._service.message(id_)
            return texts.show_life(to_builtins(life.message), [to_builtins(step) for step in life.trail], self._wall_ms())
        facts = self._service.server()
        return texts.show_status(to_builtins(facts), self._service.name, facts.connected)

    # --- resources ----------------------------------------------------------------------------------------------------------

    async def read(self, resource: Resource) -> str:
        if resource.thread is None:
            return await self._inbox(peek=True)
        return await self._history(HistoryArguments(thread=resource.thread, limit=_PAGE))

    async def list_threads(self) -> list[str]:
        page = _plain(await self._service.messages(HistoryPayload(limit=_PAGE)))
        return list(dict.fromkeys(str(each["thread"]) for each in page if each.get("thread")))[:_THREADS]


def _plain(page: MessagePage) -> list[dict[str, Any]]:
    return [to_builtins(each) for each in page.messages]


def _read_target(to: str) -> str | list[str]:
    names = [name.strip() for name in to.split(",") if name.strip()]
    return names if len(names) > 1 else to.strip()


def _show_sent(sent: Sent) -> str:
    return texts.show_sent(sent.message_id, sent.recipients, sent.queued, sent.skipped)
