"""The blocking twin of `RelayClient`, for programs without an event loop.

    with SyncRelayClient("Alice") as relay:
        receipt = relay.send("Bob", "review auth.py")
        receipt.delivered(timeout=60)
        for message in relay.messages():
            with message:
                message.reply("on it")

The connection lives on an event loop in a thread of its own, so heartbeats are answered whatever the program does.
Every method may be called from any thread. What each does is said at `RelayClient`; a test holds both to the same names.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from agent_relay.protocol.payloads import AgentEventPayload, BusyPayload, ControlPayload, ServerInfo
from agent_relay.protocol.retry import RECONNECT_ATTEMPTS
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.client import CLOSE_TIMEOUT_S, CONNECT_TIMEOUT_S, MAX_INFLIGHT, RelayClient
from agent_relay.sdk.errors import ConnectionLost
from agent_relay.sdk.events import EventFeed
from agent_relay.sdk.locate import StrPath
from agent_relay.sdk.loop_thread import LoopThread
from agent_relay.sdk.pace import SLOW_DOWN_S
from agent_relay.sdk.requests import Reply
from agent_relay.sdk.sending import SendOptions, Target
from agent_relay.sdk.sync_parts import SyncEventFeed, SyncMessage, SyncMessageStream, SyncProposal, SyncQuestion, SyncReceipt

P = ParamSpec("P")
T = TypeVar("T")
W = TypeVar("W")


def _blocking(
    method: Callable[Concatenate[RelayClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncRelayClient, P], T]:
    """The same method, with the same parameters, that waits for its result."""

    @functools.wraps(method)
    def wait(self: SyncRelayClient, /, *arguments: P.args, **options: P.kwargs) -> T:
        return self._run(method(self.client, *arguments, **options))

    return wait


def _wrapped(
    wrap: Callable[[T, LoopThread], W], method: Callable[Concatenate[RelayClient, P], Coroutine[Any, Any, T]]
) -> Callable[Concatenate[SyncRelayClient, P], W]:
    """The same, for a result that has a blocking twin of its own."""

    @functools.wraps(method)
    def wait(self: SyncRelayClient, /, *arguments: P.args, **options: P.kwargs) -> W:
        return wrap(self._run(method(self.client, *arguments, **options)), self._thread)

    return wait


class SyncRelayClient:
    """Takes what `RelayClient` takes. The callbacks `on_state`, `on_busy`, `on_control` and `on_event` are called on its
    thread."""

    def __init__(
        self,
        name: str | None = None,
        *,
        socket: StrPath | None = None,
        state_dir: StrPath | None = None,
        cli: str | None = None,
        meta: Mapping[str, Any] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        max_inflight: int = MAX_INFLIGHT,
        control: bool = False,
        observer: bool = False,
        resume_token: str | None = None,
        reconnect_attempts: int | None = RECONNECT_ATTEMPTS,
        connect_timeout: float = CONNECT_TIMEOUT_S,
        backoff: Backoff | None = None,
        default_channels: bool = True,
        slow_down: float = SLOW_DOWN_S,
    ) -> None:
        self.client = RelayClient(
            name, socket=socket, state_dir=state_dir, cli=cli, meta=meta, capabilities=capabilities, max_inflight=max_inflight,
            control=control, observer=observer, resume_token=resume_token, reconnect_attempts=reconnect_attempts,
            connect_timeout=connect_timeout, backoff=backoff, default_channels=default_channels, slow_down=slow_down,
        )  # fmt: skip
        self._thread = LoopThread()

    def __repr__(self) -> str:
        return f"Sync{self.client!r}"

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
    def observer(self) -> bool:
        return self.client.observer

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
    def backpressure(self) -> Mapping[str, BusyPayload]:
        return dict(self.client.backpressure)

    @property
    def on_state(self) -> Callable[[ClientState], None] | None:
        return self.client.on_state

    @on_state.setter
    def on_state(self, callback: Callable[[ClientState], None] | None) -> None:
        self.client.on_state = callback

    @property
    def on_busy(self) -> Callable[[BusyPayload], None] | None:
        return self.client.on_busy

    @on_busy.setter
    def on_busy(self, callback: Callable[[BusyPayload], None] | None) -> None:
        self.client.on_busy = callback

    @property
    def on_control(self) -> Callable[[ControlPayload], None] | None:
        return self.client.on_control

    @on_control.setter
    def on_control(self, callback: Callable[[ControlPayload], None] | None) -> None:
        self.client.on_control = callback

    @property
    def on_event(self) -> Callable[[AgentEventPayload], None] | None:
        return self.client.on_event

    @on_event.setter
    def on_event(self, callback: Callable[[AgentEventPayload], None] | None) -> None:
        self.client.on_event = callback

    # --- messages -------------------------------------------------------------------------------------------------

    @overload
    def send(
        self, to: Target, body: str, *, wait: float | None = None, reply: None = None, retry_for: float = 0.0,
        **options: Unpack[SendOptions],
    ) -> SyncReceipt: ...  # fmt: skip

    @overload
    def send(
        self, to: Target, body: str, *, wait: None = None, reply: float, retry_for: float = 0.0, **options: Unpack[SendOptions]
    ) -> Reply: ...

    def send(
        self, to: Target, body: str, *, wait: float | None = None, reply: float | None = None, retry_for: float = 0.0,
        **options: Unpack[SendOptions],
    ) -> SyncReceipt | Reply:  # fmt: skip
        if reply is not None:
            if wait is not None:
                raise TypeError("send() takes wait or reply, not both: an answer comes after the delivery.")
            return self._run(self.client.send(to, body, reply=reply, **options))
        return SyncReceipt(self._run(self.client.send(to, body, wait=wait, retry_for=retry_for, **options)), self._thread)

    submit = _wrapped(SyncReceipt, RelayClient.submit)
    publish = _wrapped(SyncReceipt, RelayClient.publish)
    request = _blocking(RelayClient.request)

    ask = _wrapped(SyncQuestion, RelayClient.ask)

    def answer_to(self, question: SyncQuestion, timeout: float = 30.0) -> Reply:
        return self._run(self.client.answer_to(question.question, timeout))

    result = _wrapped(SyncReceipt, RelayClient.result)
    receive = _wrapped(SyncMessage, RelayClient.receive)

    def messages(self, timeout: float | None = None) -> SyncMessageStream:
        return SyncMessageStream(self.client.messages(), self._thread, timeout)

    def discard(self, agent: str) -> None:
        self._thread.call(self.client.discard, agent)

    @contextlib.contextmanager
    def subscribe(self, topic: str) -> Iterator[SyncMessageStream]:
        feed = self.client.subscribe(topic)
        stream = self._run(feed.__aenter__())
        try:
            yield SyncMessageStream(stream, self._thread)
        finally:
            with contextlib.suppress(ConnectionLost):
                self._run(feed.__aexit__(None, None, None))

    join = _blocking(RelayClient.join)
    leave = _blocking(RelayClient.leave)
    set_topic_line = _blocking(RelayClient.set_topic_line)

    # --- deciding together ----------------------------------------------------------------------------------------

    propose = _wrapped(SyncProposal, RelayClient.propose)
    vote = _wrapped(SyncProposal, RelayClient.vote)
    withdraw = _wrapped(SyncProposal, RelayClient.withdraw)
    proposal = _wrapped(SyncProposal, RelayClient.proposal)

    def proposals(self, open_only: bool = True) -> list[SyncProposal]:
        return [SyncProposal(each, self._thread) for each in self._run(self.client.proposals(open_only))]

    # --- asking about the relay -----------------------------------------------------------------------------------

    agents = _blocking(RelayClient.agents)
    channels = _blocking(RelayClient.channels)
    history = _blocking(RelayClient.history)
    message = _blocking(RelayClient.message)
    dead_letters = _blocking(RelayClient.dead_letters)
    retry_dead_letter = _blocking(RelayClient.retry_dead_letter)
    count_data = _blocking(RelayClient.count_data)
    forget = _blocking(RelayClient.forget)
    remove = _blocking(RelayClient.remove)
    past_events = _blocking(RelayClient.past_events)

    def events(
        self,
        types: Iterable[str] = (),
        *,
        agent: str | None = None,
        session_id: str | None = None,
        after_seq: int | None = None,
        since: int | None = None,
        timeout: float | None = None,
    ) -> SyncEventFeed:
        """Begins at once."""
        feed = self.client.events(
            types, agent=agent, session_id=session_id, after_seq=after_seq, since=since, timeout=timeout
        )  # fmt: skip
        return SyncEventFeed(self._run(_begin(feed)), self._thread)

    # --- agents the relay runs ------------------------------------------------------------------------------------

    def report(self, kind: str, /, **fields: Any) -> None:
        """Does not wait, so a callback may call it too; a report that cannot be written is logged."""
        self._thread.call(lambda said: self.client.report(kind, **said), fields)

    control = _blocking(RelayClient.control)
    change_host = _blocking(RelayClient.change_host)
    set_team = _blocking(RelayClient.set_team)
    spawn = _blocking(RelayClient.spawn)
    release = _blocking(RelayClient.release)

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.run(work)


async def _begin(feed: EventFeed) -> EventFeed:
    return await feed.__aenter__()
