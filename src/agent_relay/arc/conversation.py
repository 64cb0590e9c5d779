"""The conversation on a connection: the welcome, what is asked for anew after each connecting, and every frame that comes.

`ArcClient` is this, with what programs call. The link calls `greet`, `on_frame`, `on_lost` and `on_closed`.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from agent_relay.arc.errors import ArcError, ArcRejected
from agent_relay.arc.frames import ArcMessage, decode_frame, encode_command, read_message
from agent_relay.arc.inbox import Inbox
from agent_relay.arc.pending import ERROR, Lost, PendingAnswer, PendingAnswers, read_error
from agent_relay.protocol.arc.ids import RELAY

ANSWER_S = 30.0
_WELCOME_S = 5.0
_MOST_PAGES = 1_000  # of a replay; a relay that never comes to an end is not followed for ever
_log = logging.getLogger("agent_relay.arc")


class Conversation:
    def __init__(self, agent_id: str | None, inbox: Inbox, subscriptions: Iterable[str]) -> None:
        self.agent_id = agent_id
        self.welcome: ArcMessage | None = None
        self.on_error: Callable[[ArcRejected], None] | None = None  # the relay's errors that no call waits for
        self.on_notice: Callable[[ArcMessage], None] | None = None  # what else the relay itself says: who came, who left
        self._inbox = inbox
        self._pending = PendingAnswers()
        self._subscriptions = set(subscriptions)
        self._watches_presence = False
        self._welcomed = asyncio.Event()

    def offers(self, extension: str) -> bool:
        """Whether the relay announced it, as a capability or an extension."""
        said = self.welcome.fields if self.welcome is not None else {}
        return any(extension in as_names(said.get(part)) for part in ("capabilities", "extensions"))

    async def _ask_once(self, frame: str, wait: PendingAnswer, write: Callable[[str], Any]) -> ArcMessage:
        self._pending.open(wait)
        self._inbox.nudge()
        try:
            if await write(frame) is False:
                raise Lost
            return await wait.answer
        finally:
            self._pending.close(wait)

    async def greet(self, connection: ClientConnection) -> bool:
        """The relay's welcome is waited for, then our subscriptions and what was missed are asked for. False: no answer came."""
        self._welcomed.clear()
        self._inbox.hold()
        missed: list[ArcMessage] = []
        whole = False
        try:
            await self._wait_for_welcome(connection)
            await self._restore(connection)
            if self._replays:
                missed = await read_pages(partial(self._command_now, connection), str(self._inbox.resume_from))
            whole = True
        except ArcRejected as error:
            _log.warning("ARC: the relay does not replay missed messages: %s", error.message)
            whole = True
        except (TimeoutError, ConnectionClosed, Lost):
            pass
        finally:
            # What came meanwhile is not handed out where a part is missing before it: the next replay has both.
            if whole or not self._replays:
                self._inbox.release(message for message in missed if self._is_for_us(message))
        return whole

    @property
    def _replays(self) -> bool:
        return self._inbox.resume_from is not None and self.offers("persistence")

    async def _restore(self, connection: ClientConnection) -> None:
        """Says again what the relay may have forgotten about us."""
        try:
            if self._subscriptions:
                await self._say(connection, "subscribe", "subscribed", {"agents": sorted(self._subscriptions)})
            if self._watches_presence:
                await self._command_now(connection, {"command": "presence_subscribe"})
        except ArcRejected as error:
            _log.warning("ARC: the relay refused to renew a subscription: %s", error.message)

    async def _wait_for_welcome(self, connection: ClientConnection) -> None:
        """A relay that says none answers the ping all the same, after whatever it had to say before."""
        pong = asyncio.ensure_future(await connection.ping())
        welcomed = asyncio.create_task(self._welcomed.wait())
        try:
            await asyncio.wait({pong, welcomed}, timeout=_WELCOME_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            welcomed.cancel()
            if pong.done() and not pong.cancelled():
                pong.exception()

    async def _command_now(self, connection: ClientConnection, payload: dict[str, Any]) -> dict[str, Any]:
        return as_object((await self._say(connection, "command", "command_result", payload)).payload)

    async def _say(self, connection: ClientConnection, type_: str, answer: str, payload: Any) -> ArcMessage:
        ref = new_ref()
        async with asyncio.timeout(ANSWER_S):
            return await self._ask_once(encode_command(type_, ref, payload), PendingAnswer(ref, answer), connection.send)

    async def on_frame(self, frame: str | bytes) -> None:
        try:
            message = decode_frame(frame)
        except (ValueError, RecursionError):
            _log.warning("ARC: the relay sent a frame that is not an envelope.")
            return
        if message.type == "welcome" and message.from_ in {RELAY, ""}:
            self._on_welcome(message)
            return
        if message.key is not None and message.from_ == self.agent_id:
            self._inbox.note_taken(message.key, message.id)
        if self._pending.take(message):
            return
        if message.from_ == RELAY or not message.from_:
            self._on_notice(message)
        elif self._is_for_us(message):
            self._inbox.put(message)
            while self._inbox.full and not len(self._pending) and not self._inbox.ended:
                await self._inbox.wait_for_room()

    def on_lost(self) -> None:
        self._pending.lose_all()

    def on_closed(self, error: ArcError | None) -> None:
        self._pending.lose_all()
        self._inbox.end(error)

    def _on_welcome(self, message: ArcMessage) -> None:
        self.welcome = message
        agent_id = as_object(message.payload).get("agent_id")
        self.agent_id = agent_id if isinstance(agent_id, str) else self.agent_id
        self._welcomed.set()

    def _on_notice(self, message: ArcMessage) -> None:
        if message.type == ERROR or "error" in message.fields:
            error = read_error(message)
            if self.on_error is not None:
                self.on_error(error)
            else:
                _log.warning("ARC: the relay reports: %s (%s)", error.message, error.code)
        elif self.on_notice is not None:
            self.on_notice(message)

    def _is_for_us(self, message: ArcMessage) -> bool:
        """Our own copies of confirmed messages are not for whoever reads, nor is what we sent to others."""
        if message.from_ != self.agent_id or self.agent_id is None:
            return True
        if message.key is not None:
            self._inbox.note_taken(message.key, message.id)
            return False
        return self.agent_id in message.to


async def read_pages(ask: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]], since: str) -> list[ArcMessage]:
    """Everything after that message; a relay may give it in several parts."""
    found: list[ArcMessage] = []
    for _ in range(_MOST_PAGES):
        answer = await ask({"command": "replay", "since_message_id": since})
        page = read_messages(answer)
        found += page
        if not page or answer.get("more") is not True:
            break
        since = page[-1].id
    return found


def new_ref() -> str:
    return f"r_{secrets.token_hex(8)}"


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def as_names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def read_messages(answer: dict[str, Any]) -> list[ArcMessage]:
    found = answer.get("messages")
    return [read_message(one) for one in found if isinstance(one, dict)] if isinstance(found, list) else []
