"""Calls of the tools, carried out: arguments in, text out. Whatever fails is a RelayError."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, assert_never

from agent_relay.mcp.speaker import Inbox, Speaker
from agent_relay.protocol.channels import gather_channels
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.mcp import texts
from agent_relay.protocol.mcp.resources import Resource
from agent_relay.protocol.mcp.tools import (
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
from agent_relay.protocol.names import CHANNEL_MARK, check_agent_name, check_channel, fold_name
from agent_relay.sdk.errors import DaemonNotRunning, TimedOut

_PAGE = 50
_THREADS = 20  # that are listed


class ToolCalls:
    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    @property
    def name(self) -> str:
        return self._speaker.name

    async def call(self, tool: str, given: Mapping[str, Any] | None) -> str:
        speaker = self._speaker
        match read_arguments(tool, given):
            case SendArguments(to, text, thread):
                return await self._send(read_target(to), text, thread)
            case AskArguments(to, text, seconds):
                return await self._ask(to, text, seconds)
            case ReplyArguments(id_, text):
                return await self._reply(id_, text)
            case InboxArguments(peek):
                return show_inbox(await speaker.read_inbox(peek=peek), speaker.name)
            case AgentsArguments():
                return await self._agents()
            case HistoryArguments() as asked:
                return await self._history(asked)
            case JoinArguments(channel, at_leisure, leave):
                channel = CHANNEL_MARK + channel.removeprefix(CHANNEL_MARK)
                check_channel(channel)
                if leave:
                    await speaker.leave(channel)
                    return texts.show_left(channel)
                await speaker.join(channel, at_leisure)
                return texts.show_joined(channel, at_leisure=bool(at_leisure))
            case SpawnArguments(name, cli, task):
                check_agent_name(name)
                await speaker.spawn(name, cli, task)
                return f"{name} runs and can be written to."
            case ReleaseArguments(name):
                check_agent_name(name)
                await speaker.release(name)
                return f"{name} is stopped."
            case ResultArguments(task, _, error) as given_result:
                message_id = await speaker.result(task, given_result.text, is_error=error is not None)
                return texts.show_result(task, message_id)
            case VoteArguments(proposal, choice, reason):
                return texts.show_vote(await speaker.vote(proposal, choice, reason), choice)
            case StatusArguments(id_):
                return await self._status(id_)
            case other:
                assert_never(other)

    # --- speaking -----------------------------------------------------------------------------------------------------------

    async def _send(self, to: str | list[str], text: str, thread: str | None, reply_to: str | None = None) -> str:
        sent = await self._speaker.send(to, text, thread, reply_to)
        return texts.show_sent(sent.message_id, sent.recipients, sent.queued, sent.skipped, sent.waits)

    async def _ask(self, to: str, text: str, seconds: int) -> str:
        try:
            answered = await self._speaker.ask(read_target(to), text, seconds)
        except TimedOut as error:
            raise RelayError(error.code, texts.show_no_answer(seconds, error.message)) from None
        return texts.show_answer(answered.by, answered.body)

    async def _reply(self, id_: str, text: str) -> str:
        async with self._speaker.observe() as relay:
            message = (await relay.message(id_)).message
        sender = str(message.get("from"))
        if fold_name(sender) == fold_name(self._speaker.name):
            raise RelayError(ErrorCode.INVALID_TARGET, "That message is your own; use relay_send to add to it.", field="id")
        thread = message.get("thread")
        return await self._send(sender, text, None if thread is None else str(thread), str(message["message_id"]))

    # --- looking ------------------------------------------------------------------------------------------------------------

    async def _agents(self) -> str:
        async with self._speaker.observe() as relay:
            view = await relay.agents()
        agents = [agent.raw for agent in view.agents]
        channels = gather_channels(agents, (), view.server.get("topic_lines") or {})
        return texts.show_agents(agents, self._speaker.name, now_ms(), channels)

    async def _history(self, asked: HistoryArguments) -> str:
        async with self._speaker.observe() as relay:
            page = await relay.history(with_=asked.with_, thread=asked.thread, search=asked.search, limit=asked.limit)
        found = page.messages[::-1]
        return texts.show_messages(found, now_ms(), "No message matches.", more=page.next_cursor is not None)

    async def _status(self, id_: str | None) -> str:
        async with self._speaker.observe() as relay:
            if id_ is not None:
                found = await relay.message(id_)
                return texts.show_life(found.message, found.trail, now_ms())
            view = await relay.agents()
        connected = sum(agent.connected for agent in view.agents)
        return texts.show_status(view.server, self._speaker.name, connected)

    # --- resources ----------------------------------------------------------------------------------------------------------

    async def read(self, resource: Resource) -> str:
        if resource.thread is None:
            return show_inbox(await self._speaker.read_inbox(peek=True), self._speaker.name)
        return await self._history(HistoryArguments(thread=resource.thread, limit=_PAGE))

    async def list_threads(self) -> list[str]:
        """The newest ones; none where the relay cannot be asked now."""
        try:
            async with self._speaker.observe() as relay:
                page = await relay.history(limit=_PAGE)
        except RelayError:
            return []
        return list(dict.fromkeys(str(each["thread"]) for each in page.messages if each.get("thread")))[:_THREADS]


def read_target(to: str) -> str | list[str]:
    """A name, or several between commas."""
    names = [name.strip() for name in to.split(",") if name.strip()]
    return names if len(names) > 1 else to.strip()


def show_inbox(found: Inbox, name: str) -> str:
    now = now_ms()
    parts = [texts.show_waiting(found.coming, now)] if found.coming else []
    if found.messages or not parts:
        parts.append(texts.show_messages(found.messages, now, f"Nothing waits for {name}."))
    return "\n\n".join([*parts, *filter(None, [found.note])])


def explain(error: RelayError) -> str:
    return texts.NOT_RUNNING if isinstance(error, DaemonNotRunning) else texts.explain(error)


def now_ms() -> int:
    return time.time_ns() // 1_000_000
