"""A speaker that connects for each call: the person, or an agent that runs outside a wrapper under AGENT_RELAY_NAME.

Nothing stays connected between two calls, so that the name is free for whoever else uses it: a command, or the agent itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

from agent_relay.cli.commands.spawn import find_folder
from agent_relay.cli.output.reasons import explain_waiting, waiting_lines
from agent_relay.cli.person import is_you
from agent_relay.cli.project.link import NameInUse, connect_as, observe, own_name
from agent_relay.cli.project.waiting_messages import find_pending, find_unseen, note_seen
from agent_relay.mcp.speaker import Answered, Inbox, Sent
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.mcp.tools import MAX_LIMIT
from agent_relay.protocol.proposals import Proposal
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost, DaemonNotRunning, TimedOut
from agent_relay.sdk.locate import Place
from agent_relay.sdk.messages import Message

R = TypeVar("R")
_CLOSE_S = 2.0
_RETURN_S = 15.0  # a daemon that restarts is back by then
_AGAIN_S = 0.2
_QUIET_S = 0.2  # how long nothing comes before the daemon is asked whether anything is still waiting


class OwnAgent:
    def __init__(self, place: Place) -> None:
        self._place = place
        self.name = own_name(None)[0]
        self._answers: set[str] = set()  # messages that were handed over as answers: the inbox shows them no more

    def observe(self) -> RelayClient:
        return observe(self._place)

    @contextlib.asynccontextmanager
    async def _connected(self, max_inflight: int = 1) -> AsyncIterator[RelayClient]:
        try:
            relay = await connect_as(self._place, None, max_inflight=max_inflight)
        except NameInUse as taken:
            raise RelayError(
                ErrorCode.PERMISSION_DENIED,
                f"{taken.name} is connected elsewhere, and its messages go there.",
                reason="name_in_use",
            ) from None
        try:
            yield relay
        finally:
            await relay.close(_CLOSE_S)

    async def _insist(self, work: Callable[[RelayClient], Awaitable[R]]) -> R:
        """Says it again to a daemon that went away in the middle and is back: its id makes it the same message."""
        deadline: float | None = None
        said_as = ""
        while True:
            try:
                async with self._connected() as relay:
                    if said_as not in {"", relay.name}:
                        break  # by another name it would be another message
                    said_as = relay.name
                    return await work(relay)
            except (ConnectionLost, DaemonNotRunning):
                now = asyncio.get_running_loop().time()
                deadline = deadline or now + _RETURN_S
                if not said_as or now >= deadline:
                    raise
            await asyncio.sleep(_AGAIN_S)
        raise RelayError(
            ErrorCode.INTERNAL_ERROR,
            "The relay restarted, and it is not known whether the message was stored; relay_history tells.",
        )

    async def send(self, to: str | list[str], text: str, thread: str | None = None, reply_to: str | None = None) -> Sent:
        id_ = _make_id()

        async def work(relay: RelayClient) -> Sent:
            receipt = await relay.send(to, text, thread=thread, reply_to=reply_to, id=id_)
            waits = await explain_waiting(relay, receipt.message_id) if receipt.recipients else []
            return Sent(
                receipt.message_id, receipt.recipients, receipt.queued, list(receipt.skipped), [line for _, line in waits]
            )

        return await self._insist(work)

    async def ask(self, to: str | list[str], text: str, seconds: int) -> Answered:
        id_ = _make_id()

        async def work(relay: RelayClient) -> Answered:
            question = await relay.ask(to, text, float(seconds), id=id_)
            try:
                reply = await relay.answer_to(question, float(seconds))
            except TimedOut:
                message = (await relay.message(question.message_id)).message
                waits = waiting_lines(message, (await relay.agents()).agents)
                raise TimedOut(" ".join(f"{line}." for _, line in waits)) from None
            if reply.message is not None:
                self._answers.add(reply.message.id)
            return Answered(reply.by, reply.body)

        return await self._insist(work)

    async def join(self, channel: str, at_leisure: bool | None) -> None:
        async with self._connected() as relay:
            await relay.join(channel, at_leisure=at_leisure)

    async def leave(self, channel: str) -> None:
        async with self._connected() as relay:
            await relay.leave(channel)

    async def spawn(self, name: str, cli: str, task: str | None) -> None:
        async with self._connected() as relay:
            await relay.spawn(name, cli, task, cwd=find_folder(self._place, None))

    async def release(self, name: str) -> None:
        async with self._connected() as relay:
            await relay.release(name)

    async def result(self, task: str, text: str, *, is_error: bool) -> str:
        return (await self._insist(lambda relay: relay.result(task, text, text if is_error else None))).message_id

    async def vote(self, proposal: str, choice: str, reason: str | None) -> Proposal:
        return (await self._insist(lambda relay: relay.vote(proposal, choice, reason))).info

    # --- the inbox ----------------------------------------------------------------------------------------------------------

    async def read_inbox(self, *, peek: bool) -> Inbox:
        if peek:
            return Inbox((await self._look())[:MAX_LIMIT])
        async with self._connected(MAX_LIMIT) as relay:
            return Inbox(await self._take(relay))

    async def _look(self) -> list[dict[str, Any]]:
        async with self.observe() as relay:
            if is_you(self.name):
                return await self._find_unseen(relay, self.name)
            mine = (await relay.agents()).find(self.name)
            return [] if mine is None else await find_pending(relay, mine)

    async def _find_unseen(self, relay: RelayClient, name: str) -> list[dict[str, Any]]:
        found = await find_unseen(relay, self._place, name)
        return [each for each in found if each["message_id"] not in self._answers]

    async def _take(self, relay: RelayClient) -> list[dict[str, Any]]:
        """All that is there, the oldest first. It is acknowledged together, once all of it is in our hands."""
        is_person = is_you(relay.name)
        shown = (await self._find_unseen(relay, relay.name))[:MAX_LIMIT] if is_person else []
        known = {str(each["message_id"]) for each in shown}
        taken: list[Message] = []
        while len(taken) < MAX_LIMIT:
            try:
                message = await relay.receive(_QUIET_S)
            except TimedOut:
                mine = (await relay.agents()).find(relay.name)
                if mine is None or mine.queue_depth + mine.inflight <= len(taken):
                    break
                continue
            taken.append(message)
        shown += [
            {
                "message_id": message.id, "from": message.from_, "to": message.to, "topic": message.topic,
                "ts": message.ts - message.queued_ms, "thread": message.thread, "payload": {"body": message.body},
                "copy": message.is_copy,
                "payload_meta": {"sync": {"correlationId": message.correlation_id}} if message.correlation_id else None,
            }
            for message in taken
            if message.id not in known
        ]  # fmt: skip
        for message in taken:
            await message.ack()
        for each in shown if is_person else ():
            note_seen(self._place, str(each["message_id"]))
        return shown


def _make_id() -> str:
    return f"m_{secrets.token_hex(16)}"
