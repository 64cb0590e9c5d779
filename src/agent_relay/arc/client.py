"""`ArcClient`: an agent of an ARC relay, over a WebSocket.

    registration = await register("https://relay.example.com", "rawk-042")
    async with ArcClient("wss://relay.example.com/arc", registration.token) as arc:
        await arc.send("bob-7", "hello", confirm=True)     # the relay has it when this returns
        await arc.subscribe("news-bot")
        async for message in arc.messages():
            await arc.send(message.from_, {"got": message.id})

A lost connection is made again by itself: subscriptions are asked for again, what was missed is replayed where the relay keeps
it, and nothing is handed out twice.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any

from agent_relay.arc.addresses import parse_address
from agent_relay.arc.conversation import ANSWER_S, Conversation, as_names, as_object, new_ref, read_messages, read_pages
from agent_relay.arc.errors import ArcError, ArcRejected, ArcTimeout
from agent_relay.arc.frames import EVERYONE, KEY, ArcMessage, encode_command, encode_message
from agent_relay.arc.inbox import Inbox
from agent_relay.arc.link import ArcState, Link, Patience, Target
from agent_relay.arc.pending import Lost, PendingAnswer
from agent_relay.protocol.arc.ids import RELAY

QUEUE = 1_000  # messages that nobody has asked for yet; beyond that reading stops, and the relay's own limits apply


class ArcClient(Conversation):
    """`since` is the id of the last message that was dealt with: what came after it is asked for at the start. `agent_id` is only
    needed for `confirm`, and only at a relay that does not say it in its welcome."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        agent_id: str | None = None,
        since: str | None = None,
        subscriptions: Iterable[str] = (),
        tls: ssl.SSLContext | None = None,
        connect_timeout: float = 10.0,
        queue: int = QUEUE,
        patience: Patience | None = None,
    ) -> None:
        super().__init__(agent_id, Inbox(since, queue), subscriptions)
        self._link = Link(Target(parse_address(url).socket_url, token, tls, connect_timeout), self, patience or Patience())

    # --- the connection -------------------------------------------------------------------------------------------

    async def __aenter__(self) -> ArcClient:
        await self.connect()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def connect(self, *, wait: bool = False) -> None:
        """Without `wait` a relay that is not there is an error at once; with it, it is tried again as after a loss."""
        await self._link.start(wait=wait)

    async def close(self) -> None:
        """Says goodbye and ends. A second call does nothing."""
        await self._link.stop()

    @property
    def state(self) -> ArcState:
        return self._link.state

    def watch_state(self, callback: Callable[[ArcState], None]) -> None:
        self._link.on_state = callback

    @property
    def connections(self) -> int:
        """The number of times it was connected."""
        return self._link.connections

    @property
    def resume_from(self) -> str | None:
        """The `since` for the next client, so that it misses nothing this one has not seen."""
        return self._inbox.resume_from

    # --- sending --------------------------------------------------------------------------------------------------

    async def send(
        self, to: str | Iterable[str], payload: Any, *, type: str | None = None, ref: str | None = None,  # noqa: A002 - the wire's word
        confirm: bool = False, key: str | None = None, timeout: float = ANSWER_S, **fields: Any,  # noqa: ASYNC109
    ) -> str | None:  # fmt: skip
        """Sends to one agent, or to several. Returns when the frame is on its way: a relay answers nothing to what it takes.

        With `confirm` it returns when the relay has taken it, with the id it gave; errors are raised. That is learnt by naming
        ourselves as a recipient too. The same `key` again is the same message: one that is known to be taken is not sent again.
        """
        targets = [to] if isinstance(to, str) else list(to)
        extra = {name: value for name, value in (("type", type), ("ref", ref)) if value is not None} | fields
        if not confirm:
            frame = self._encode(targets, payload, extra)
            while not await self._link.write(frame):
                continue  # the connection was gone before anything was written; the next one is waited for
            return None
        return await self._send_confirmed(targets, payload, extra, key or f"k_{secrets.token_hex(12)}", timeout)

    async def broadcast(self, payload: Any, **fields: Any) -> None:
        """To everybody who is connected."""
        await self.send(EVERYONE, payload, **fields)

    def was_taken(self, key: str) -> bool:
        """Whether our own copy of that message came, also by a replay."""
        return key in self._inbox.taken

    async def _send_confirmed(self, to: list[str], payload: Any, fields: dict[str, Any], key: str, timeout_s: float) -> str:
        if EVERYONE in to or RELAY in to:
            raise ArcError("Only messages to named agents can be confirmed.", code="invalid_message")
        await self._link.wait_until_ready()
        if self.agent_id is None:
            raise ArcError("The relay did not report our id; pass `agent_id` to confirm messages.", code="unknown_agent")
        ref = str(fields.setdefault("ref", key))
        own = self.agent_id in to
        frame = self._encode(dict.fromkeys([*to, self.agent_id]), payload, fields | {KEY: key})
        if key not in self._inbox.taken:
            copy = await self._ask(frame, lambda: PendingAnswer(ref, key=key), timeout_s)
            if own and copy is not None:
                self._inbox.put(copy)
        return self._inbox.taken[key]

    def _encode(self, to: Iterable[str], payload: Any, fields: dict[str, Any]) -> str:
        """Raises for a frame the relay said it would not take: its own answer could not name the frame it did not read."""
        frame = encode_message(to, payload, fields)
        limits = as_object(self.welcome.fields.get("limits")) if self.welcome is not None else {}
        limit, size = limits.get("max_message_size"), len(frame.encode())
        if isinstance(limit, int) and size > limit:
            raise ArcRejected(f"The message has {size} bytes; the relay accepts at most {limit}.", code="message_too_large")
        return frame

    # --- receiving ------------------------------------------------------------------------------------------------

    async def messages(self) -> AsyncIterator[ArcMessage]:
        """Messages of agents, in order and each once. Ends when the client is closed, raises when it is lost for good."""
        while (message := await self._inbox.get()) is not None:
            yield message

    async def receive(self, timeout: float | None = None) -> ArcMessage:  # noqa: ASYNC109
        try:
            async with asyncio.timeout(timeout):
                message = await self._inbox.get()
        except TimeoutError as error:
            if isinstance(error, ArcError):
                raise
            raise ArcTimeout(f"No message arrived within {timeout:g} seconds.") from None
        if message is None:
            raise ArcError("The client is closed.", code="closed")
        return message

    # --- commands -------------------------------------------------------------------------------------------------

    async def ping(self) -> None:
        await self._command("ping", "pong")

    async def subscribe(self, *agents: str) -> list[str]:
        """Everything these agents broadcast; returns all subscriptions."""
        answer = await self._command("subscribe", "subscribed", {"agents": list(agents)})
        self._subscriptions.update(agents)
        return as_names(as_object(answer.payload).get("agents"))

    async def unsubscribe(self, *agents: str) -> list[str]:
        self._subscriptions.difference_update(agents)
        answer = await self._command("unsubscribe", "unsubscribed", {"agents": list(agents)})
        return as_names(as_object(answer.payload).get("agents"))

    async def subscriptions(self) -> list[str]:
        answer = await self._command("list_subscriptions", "subscriptions")
        return as_names(as_object(answer.payload).get("agents"))

    async def history(self, limit: int | None = None, since: int | str | None = None) -> list[ArcMessage]:
        """Messages to us, by us and to everybody, as far as the relay keeps it; oldest first."""
        return read_messages(await self.command("history", limit=limit, since=since))

    async def search(self, query: str) -> list[ArcMessage]:
        return read_messages(await self.command("search", query=query))

    async def replay(self, since_message_id: str) -> list[ArcMessage]:
        """Everything after that message."""
        return await read_pages(self._run_command, since_message_id)

    async def presence(self) -> list[Any]:
        """The agents that are known and those that are connected, as the relay describes it."""
        answer = await self.command("presence_list")
        agents = answer.get("agents")
        return agents if isinstance(agents, list) else []

    async def watch_presence(self, callback: Callable[[ArcMessage], None]) -> None:
        """From now on `callback` is told who comes and who goes, also after a reconnect."""
        self.on_notice = callback
        self._watches_presence = True
        await self.command("presence_subscribe")

    async def command(self, command: str, **arguments: Any) -> dict[str, Any]:
        """Any command of an extension; the payload of its result."""
        given = {name: value for name, value in arguments.items() if value is not None}
        return await self._run_command({"command": command, **given})

    async def _run_command(self, payload: dict[str, Any]) -> dict[str, Any]:
        return as_object((await self._command("command", "command_result", payload)).payload)

    async def _command(self, type_: str, answer: str, payload: Any = None) -> ArcMessage:
        ref = new_ref()
        said = await self._ask(encode_command(type_, ref, payload), lambda: PendingAnswer(ref, answer), ANSWER_S)
        assert said is not None  # only our own messages can be known to be taken without an answer
        return said

    async def _ask(self, frame: str, make_wait: Callable[[], PendingAnswer], timeout_s: float) -> ArcMessage | None:
        """The answer; asked again after a lost connection. None: what was lost turned out to have been taken."""
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    await self._link.wait_until_ready()
                    wait = make_wait()
                    if wait.key is not None and wait.key in self._inbox.taken:
                        return None
                    try:
                        return await self._ask_once(frame, wait, self._link.write)
                    except Lost:
                        continue  # whether it was taken shows after the next connection's replay
        except TimeoutError as error:
            if isinstance(error, ArcError):
                raise
            raise ArcTimeout(f"The relay did not answer within {timeout_s:g} seconds.") from None
