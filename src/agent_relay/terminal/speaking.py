"""What an agent asked for, carried out in order: messages to others, files of its outbox; and what it hears if that fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable

from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.headers import HeaderMessage
from agent_relay.protocol.names import fold_name
from agent_relay.sdk.client import RelayClient
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.receipts import Receipt
from agent_relay.terminal.commands import Command, FileCommand, ReleaseCommand, SendCommand, SpawnCommand
from agent_relay.terminal.launch import Home
from agent_relay.terminal.outbox import Outbox, SentFile

PATIENCE_S = 60.0  # for a recipient's queue to have room
_AGAIN_S = 0.5
_MESSAGE_KINDS_NOT_YET = frozenset({"spawn", "release"})
_log = logging.getLogger("agent_relay.terminal")


class Speaker:
    """`relay` says which client to use now; `tell` gives the agent a notice."""

    def __init__(self, home: Home, relay: Callable[[], RelayClient], tell: Callable[[str], None]) -> None:
        self._relay = relay
        self._tell = tell
        self._commands: asyncio.Queue[Command] = asyncio.Queue()
        self._run = secrets.token_hex(8)
        self._count = 0
        self._asked: defaultdict[str, deque[str]] = defaultdict(deque)  # by sender: messages that wait for an answer
        self.outbox = Outbox(home.outbox, self._send_file)

    def say(self, command: Command) -> None:
        self._commands.put_nowait(command)

    def expect_answer(self, sender: str, message_id: str) -> None:
        asked = self._asked[fold_name(sender)]
        if message_id not in asked:
            asked.append(message_id)

    async def run(self) -> None:
        while True:
            command = await self._commands.get()
            try:
                await self._carry_out(command)
            finally:
                self._commands.task_done()

    async def drain(self, timeout_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._commands.join()
                await self.outbox.sweep()

    async def _carry_out(self, command: Command) -> None:
        match command:
            case SendCommand():
                await self._send(command)
            case FileCommand(name):
                if not await self.outbox.take(name):
                    self._tell(f"There is no file {name} in your outbox, so nothing was sent.")
            case SpawnCommand(name):
                self._tell(f"{name} was not started: starting agents for you is not possible yet.")
            case ReleaseCommand(name):
                self._tell(f"{name} was not released: ending agents for you is not possible yet.")

    async def _send(self, command: SendCommand) -> None:
        self._count += 1
        id_ = f"w_{self._run}_{self._count}"
        to = command.to[0] if len(command.to) == 1 else list(command.to)
        reply_to = self._answered(command)
        try:
            receipt = await self._insist(
                lambda relay: relay.send(
                    to, command.body, id=id_, kind=command.kind, thread=command.thread, data=command.data, reply_to=reply_to,
                    retry_for=PATIENCE_S,
                )
            )  # fmt: skip
        except RelayError as error:
            _log.info("a message to %s was refused: %s", command.target, error.code.value)
            self._tell(f"Your message to {command.target} was not sent. {explain(error)}")
            return
        _log.info("sent %s to %s", receipt.message_id, command.target)
        if receipt.skipped:
            self._tell(f"Your message did not reach {', '.join(receipt.skipped)}: their queues are full.")

    def _answered(self, command: SendCommand) -> str | None:
        """The question of the recipient that was asked first, and has no answer yet."""
        asked = self._asked.get(fold_name(command.to[0])) if len(command.to) == 1 and command.kind == "message" else None
        return asked.popleft() if asked else None

    async def _send_file(self, message: HeaderMessage, id_: str) -> SentFile:
        if message.kind in _MESSAGE_KINDS_NOT_YET:
            raise RelayError(ErrorCode.INVALID_HEADER, f"The kind {message.kind} is not possible yet.", header="KIND")
        try:
            receipt = await self._insist(
                lambda relay: relay.send(
                    message.target, message.body, id=message.id or id_, kind=message.kind, thread=message.thread,
                    priority=message.priority, ttl_ms=message.ttl_ms, reply_to=message.reply_to, topic=message.topic,
                    retry_for=PATIENCE_S,
                )
            )  # fmt: skip
        except RelayError as error:
            raise RelayError(error.code, explain(error)) from None
        return SentFile(receipt.message_id, receipt.recipients, receipt.queued)

    async def _insist(self, send: Callable[[RelayClient], Awaitable[Receipt]]) -> Receipt:
        """A daemon that is not there is waited for: the same id makes it the same message."""
        while True:
            try:
                return await send(self._relay())
            except ConnectionLost:
                await asyncio.sleep(_AGAIN_S)


def explain(error: RelayError) -> str:
    near = error.details.get("did_you_mean")
    hint = f" Did you mean {' or '.join(str(name) for name in near)}?" if isinstance(near, list) and near else ""
    return f"{error.message}{hint}"
