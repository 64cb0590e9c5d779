"""The blocking twin of `RelayClient`, for programs without an event loop.

    with SyncRelayClient("Alice") as relay:
        receipt = relay.send("Bob", "review auth.py")
        receipt.delivered(timeout=60)
        for message in relay.messages():
            message.reply("on it")

The connection lives on an event loop in a thread of its own, so heartbeats are answered whatever the program does.
Every method may be called from any thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from types import CodeType, TracebackType
from typing import Any, TypeVar, Unpack

from agent_relay.events.types import AnyEvent
from agent_relay.protocol.errors import ErrorCode
from agent_relay.protocol.payloads import Busy, ServerInfo
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.client import CLOSE_TIMEOUT_S, RelayClient
from agent_relay.sdk.errors import ConnectionLost, TimedOut
from agent_relay.sdk.events import EventFeed, EventsPage
from agent_relay.sdk.loop_thread import LoopThread
from agent_relay.sdk.messages import Incoming, Message
from agent_relay.sdk.receipts import Delivered, Receipt
from agent_relay.sdk.requests import Reply
from agent_relay.sdk.sending import PublishOptions, SendOptions, Target
from agent_relay.sdk.streams import MessageStream, code_of_loop, left_deliberately
from agent_relay.sdk.views import AgentsView, HistoryPage, MessageView, Spawned

T = TypeVar("T")


class SyncReceipt:
    """As `Receipt`; its methods block."""

    def __init__(self, receipt: Receipt, thread: LoopThread) -> None:
        self._receipt = receipt
        self._thread = thread

    @property
    def id(self) -> str:
        return self._receipt.id

    @property
    def message_id(self) -> str:
        return self._receipt.message_id

    @property
    def recipients(self) -> int:
        return self._receipt.recipients

    @property
    def queued(self) -> int:
        return self._receipt.queued

    @property
    def skipped(self) -> list[str]:
        return self._receipt.skipped

    @property
    def duplicate(self) -> bool:
        return self._receipt.duplicate

    def stored(self) -> SyncReceipt:
        self._thread.run(self._receipt.stored())
        return self

    def delivered(self, timeout: float | None = None) -> list[Delivered]:
        return self._thread.run(self._receipt.delivered(timeout))


class SyncMessage(Incoming):
    """As `Message`; its methods block."""

    __slots__ = ("_message", "_thread")

    def __init__(self, message: Message, thread: LoopThread) -> None:
        for name in Incoming.__slots__:
            setattr(self, name, getattr(message, name))
        self._message = message
        self._thread = thread

    def ack(
        self, response: Any = None, response_data: Any = None, *, door: str | None = None, evidence: str | None = None
    ) -> None:
        self._thread.run(self._message.ack(response, response_data, door=door, evidence=evidence))

    def nack(self, code: ErrorCode = ErrorCode.REJECTED, message: str | None = None, retry_after_ms: int | None = None) -> None:
        self._thread.run(self._message.nack(code, message, retry_after_ms))

    def reply(self, body: str, *, data: dict[str, Any] | None = None, kind: str = "message", ack: bool = True) -> SyncReceipt:
        return SyncReceipt(self._thread.run(self._message.reply(body, data=data, kind=kind, ack=ack)), self._thread)


class SyncMessageLoop:
    """One `for` over a stream; messages are acknowledged by the same rules as in `MessageLoop`."""

    def __init__(self, stream: MessageStream, thread: LoopThread, timeout: float | None) -> None:
        self._stream = stream
        self._thread = thread
        self._timeout = timeout
        self._current: Message | None = None
        self._body: CodeType | None = None

    def __iter__(self) -> SyncMessageLoop:
        return self

    def __next__(self) -> SyncMessage:
        self._body = code_of_loop()
        message, self._current = self._current, None
        if message is not None:
            self._thread.call(self._stream.acknowledge, message)
        try:
            self._current = self._thread.run(self._stream.receive(self._timeout))
        except TimedOut:
            raise StopIteration from None
        except ConnectionLost as error:
            if error.details.get("reason") == "closed":
                raise StopIteration from None
            raise
        return SyncMessage(self._current, self._thread)

    def __del__(self) -> None:
        if self._current is not None:
            deliberately = left_deliberately(self._body)
            self._thread.call(self._stream.acknowledge if deliberately else self._stream.put_back, self._current)


class SyncMessageStream:
    def __init__(self, stream: MessageStream, thread: LoopThread, timeout: float | None = None) -> None:
        self._stream = stream
        self._thread = thread
        self._timeout = timeout

    def __iter__(self) -> SyncMessageLoop:
        return SyncMessageLoop(self._stream, self._thread, self._timeout)

    def receive(self, timeout: float | None = None) -> SyncMessage:
        return SyncMessage(self._thread.run(self._stream.receive(timeout)), self._thread)


class SyncEventFeed:
    """As `EventFeed`; waiting for an event blocks."""

    def __init__(self, feed: EventFeed, thread: LoopThread) -> None:
        self._feed = feed
        self._thread = thread

    @property
    def cursor(self) -> int | None:
        return self._feed.cursor

    def __iter__(self) -> SyncEventFeed:
        return self

    def __next__(self) -> AnyEvent:
        event = self._thread.run(_next_or_none(self._feed))
        if event is None:
            raise StopIteration
        return event

    def close(self) -> None:
        self._thread.run(self._feed.aclose())


async def _begin(feed: EventFeed) -> EventFeed:
    return await feed.__aenter__()


async def _next_or_none(feed: EventFeed) -> AnyEvent | None:
    """StopAsyncIteration cannot leave a coroutine."""
    return await anext(feed, None)


class SyncRelayClient:
    """Takes what `RelayClient` takes. The callbacks `on_state`, `on_busy`, `on_control` and `on_event` are called on its
    thread."""

    def __init__(self, name: str | None = None, **options: Any) -> None:
        self.client = RelayClient(name, **options)
        self._thread = LoopThread()

    # --- the connection -------------------------------------------------------------------------------------------

    def __enter__(self) -> SyncRelayClient:
        self.connect()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close(CLOSE_TIMEOUT_S if kind is None else 1.0)

    def connect(self, *, wait: bool = False) -> None:
        self._thread.start()
        try:
            self._thread.run(self.client.connect(wait=wait))
        except BaseException:
            self._thread.stop()
            raise

    def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:
        with contextlib.suppress(ConnectionLost):  # closed before, or never connected
            self._thread.run(self.client.close(timeout))
        self._thread.stop()

    @property
    def name(self) -> str:
        return self.client.name

    @property
    def state(self) -> ClientState:
        return self.client.state

    @property
    def socket(self) -> str:
        return self.client.socket

    @property
    def session_id(self) -> str | None:
        return self.client.session_id

    @property
    def resume_token(self) -> str | None:
        return self.client.resume_token

    @property
    def server(self) -> ServerInfo | None:
        return self.client.server

    @property
    def backpressure(self) -> Mapping[str, Busy]:
        return dict(self.client.backpressure)

    # --- messages -------------------------------------------------------------------------------------------------

    def send(self, to: Target, body: str, *, retry_for: float = 0.0, **options: Unpack[SendOptions]) -> SyncReceipt:
        return SyncReceipt(self._run(self.client.send(to, body, retry_for=retry_for, **options)), self._thread)

    def submit(self, to: Target, body: str, **options: Unpack[SendOptions]) -> SyncReceipt:
        return SyncReceipt(self._run(self.client.submit(to, body, **options)), self._thread)

    def publish(self, topic: str, body: str, **options: Unpack[PublishOptions]) -> SyncReceipt:
        return SyncReceipt(self._run(self.client.publish(topic, body, **options)), self._thread)

    def request(self, to: Target, body: str, timeout: float = 30.0, **options: Unpack[SendOptions]) -> Reply:
        return self._run(self.client.request(to, body, timeout, **options))

    def receive(self, timeout: float | None = None) -> SyncMessage:
        return SyncMessage(self._run(self.client.receive(timeout)), self._thread)

    def messages(self, timeout: float | None = None) -> SyncMessageStream:
        return SyncMessageStream(self.client.messages(), self._thread, timeout)

    @contextlib.contextmanager
    def subscribe(self, topic: str) -> Iterator[SyncMessageStream]:
        feed = self.client.subscribe(topic)
        stream = self._run(feed.__aenter__())
        try:
            yield SyncMessageStream(stream, self._thread)
        finally:
            with contextlib.suppress(ConnectionLost):
                self._run(feed.__aexit__(None, None, None))

    def join(self, channel: str) -> None:
        self._run(self.client.join(channel))

    def leave(self, channel: str) -> None:
        self._run(self.client.leave(channel))

    # --- asking about the relay -----------------------------------------------------------------------------------

    def agents(self) -> AgentsView:
        return self._run(self.client.agents())

    def history(self, **filters: Any) -> HistoryPage:
        return self._run(self.client.history(**filters))

    def message(self, message_id: str) -> MessageView:
        return self._run(self.client.message(message_id))

    def dead_letters(self, limit: int = 50) -> HistoryPage:
        return self._run(self.client.dead_letters(limit))

    def count_data(self, agent: str) -> dict[str, int]:
        return self._run(self.client.count_data(agent))

    def forget(self, agent: str) -> dict[str, int]:
        return self._run(self.client.forget(agent))

    def remove(self, agent: str) -> int:
        return self._run(self.client.remove(agent))

    def retry_dead_letter(self, message_id: str) -> str:
        return self._run(self.client.retry_dead_letter(message_id))

    def events(self, types: Iterable[str] = (), **options: Any) -> SyncEventFeed:
        """Takes what `RelayClient.events` takes, and begins at once."""
        return SyncEventFeed(self._run(_begin(self.client.events(types, **options))), self._thread)

    def past_events(self, types: Iterable[str] = (), **filters: Any) -> EventsPage:
        return self._run(self.client.past_events(types, **filters))

    # --- agents the relay runs ------------------------------------------------------------------------------------

    def report(self, kind: str, /, **fields: Any) -> None:
        """Does not wait, so a callback may call it too; a report that cannot be written is logged."""
        self._thread.call(lambda said: self.client.report(kind, **said), fields)

    def control(self, agent: str, command: str, text: str | None = None, *, request_id: str | None = None) -> str:
        return self._run(self.client.control(agent, command, text, request_id=request_id))

    def spawn(self, name: str, cli: str, task: str | None = None, **options: Any) -> Spawned:
        """Takes what `RelayClient.spawn` takes."""
        return self._run(self.client.spawn(name, cli, task, **options))

    def release(self, name: str, reason: str | None = None) -> None:
        self._run(self.client.release(name, reason))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.run(work)
