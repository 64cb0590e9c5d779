"""`RelayClient`: an agent of the relay, or an observer.

    async with RelayClient("Alice") as relay:
        receipt = await relay.send("Bob", "review auth.py")   # durable when this returns
        await receipt.delivered(timeout=60)                   # Bob has acknowledged it
        reply = await relay.request("Bob", "ready?", timeout=30)
        async for message in relay.messages():
            async with message:                               # acknowledged at its end, unless it raises
                await message.reply("on it")

A lost connection is made again by itself; what was not answered is sent again, what was not acknowledged comes again,
and nothing is doubled by that. Everything raised is a RelayError with a code of the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Unpack, overload

from agent_relay.protocol import payloads
from agent_relay.protocol.access_rules import AccessRule
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.negotiation import CAPABILITIES, SUPPORTED_VERSIONS
from agent_relay.protocol.places import ENV_NAME
from agent_relay.protocol.retry import RECONNECT_ATTEMPTS
from agent_relay.protocol.states import ClientState
from agent_relay.sdk.backoff import Backoff
from agent_relay.sdk.engine import Engine
from agent_relay.sdk.locate import StrPath, locate, working_directory
from agent_relay.sdk.messages import Message
from agent_relay.sdk.owner import find_owner_token
from agent_relay.sdk.pace import SLOW_DOWN_S
from agent_relay.sdk.proposals import Proposals
from agent_relay.sdk.queries import expect_receipt, expect_spawned
from agent_relay.sdk.receipts import Receipt
from agent_relay.sdk.requests import Question, Reply
from agent_relay.sdk.results import find_task, give_result
from agent_relay.sdk.sending import PUBLISH_OPTIONS, SEND_OPTIONS, PublishOptions, SendOptions, Target, check_options
from agent_relay.sdk.session import Greeting
from agent_relay.sdk.streams import MessageStream
from agent_relay.sdk.views import Spawned

MAX_INFLIGHT = 256
CONNECT_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0
_UNSUBSCRIBE_S = 2.0


class RelayClient(Proposals):
    """An agent's connection to the project's daemon, which it finds by itself unless `socket` or `state_dir` is given.

    `reconnect_attempts` limits the attempts after a lost connection; None means no limit. An `observer` has no name, sends and
    receives no messages, and can query everything. `resume_token` resumes the session of an earlier process. With `control`,
    others can pause, resume, interrupt, stop and type to this agent; `on_control` is called. A new agent joins the project's
    default channels (`#general`) unless `default_channels` is False. A message to a busy recipient waits up to `slow_down`
    seconds before it is sent; 0 sends it at once.
    """

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
        name = name or ("observer" if observer else os.environ.get(ENV_NAME))
        if not name:
            raise RelayError(
                ErrorCode.INVALID_TARGET, f"An agent needs a name: RelayClient(name), or {ENV_NAME} in the environment."
            )
        hello = {
            "agent": name,
            "cli": cli,
            "version": SUPPORTED_VERSIONS[-1],
            # Without acknowledgements nothing this client promises would hold, so they are not for choosing.
            "capabilities": {
                **dict.fromkeys(CAPABILITIES, True),
                "control": control,
                **(capabilities or {}),
                "ack": True,
                "max_inflight": max_inflight,
            },
            "meta": {"pid": os.getpid(), "cwd": working_directory(), **(meta or {})},
            **({"mode": "observer"} if observer else {}),
            **({"join_defaults": True} if default_channels and not observer else {}),
        }
        self.observer = observer
        self.on_state: Callable[[ClientState], None] | None = None
        self.on_busy: Callable[[payloads.BusyPayload], None] | None = None
        self.on_control: Callable[[payloads.ControlPayload], None] | None = None
        self.on_event: Callable[[payloads.AgentEventPayload], None] | None = None
        self._name = name
        place = locate(socket=socket, state_dir=state_dir)
        greeting = Greeting(hello, resume_token, None if observer else find_owner_token(place))
        engine = Engine(
            place.socket, greeting, self, self._reply,
            backoff=backoff or Backoff(), attempts=reconnect_attempts, connect_timeout=connect_timeout, slow_down=slow_down,
        )  # fmt: skip
        super().__init__(engine)
        self._session = engine.session
        self._inbox = engine.inbox
        self._sender = engine.sender

    def __repr__(self) -> str:
        busy = f", busy={sorted(self.backpressure)}" if self.backpressure else ""
        return f"{type(self).__name__}({self.name}, state={self.state.value}{busy})"

    # --- the connection -------------------------------------------------------------------------------------------

    async def __aenter__(self) -> RelayClient:
        await self.connect()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close(CLOSE_TIMEOUT_S if kind is None else 1.0)

    async def connect(self, *, wait: bool = False) -> None:
        """Connects. If no daemon is running, raises DaemonNotRunning at once; with `wait`, retries as after a lost connection."""
        await self._session.start(wait=wait)

    async def close(self, timeout: float = CLOSE_TIMEOUT_S) -> None:  # noqa: ASYNC109
        """Waits up to `timeout` seconds for answers to everything sent, then disconnects. Unacknowledged messages stay with the
        daemon. A second call does nothing."""
        try:
            if self.state not in {ClientState.CLOSED, ClientState.DISCONNECTED}:
                await self._engine.outbox.drain(timeout)
        finally:
            await self._session.stop()

    @property
    def name(self) -> str:
        """As the daemon spells it: in the case it was first registered."""
        welcome = self._session.welcome
        return (welcome.agent if welcome is not None else "") or self._name

    @property
    def state(self) -> ClientState:
        return self._session.state

    @property
    def backpressure(self) -> Mapping[str, payloads.BusyPayload]:
        """Recipients with long queues, by name, until their queues are short again. Messages to them are sent more slowly."""
        return self._engine.pace.busy

    @property
    def socket(self) -> str:
        return self._session.socket

    @property
    def session_id(self) -> str | None:
        return self._session.welcome.session_id if self._session.welcome is not None else None

    @property
    def resume_token(self) -> str | None:
        """Anyone who has it can take over this agent: treat it like a password."""
        return self._session.greeting.resume_token

    @property
    def server(self) -> payloads.ServerInfo | None:
        return self._session.welcome.server if self._session.welcome is not None else None

    # --- sending --------------------------------------------------------------------------------------------------

    @overload
    async def send(
        self, to: Target, body: str, *, wait: float | None = None, reply: None = None, retry_for: float = 0.0,
        **options: Unpack[SendOptions],
    ) -> Receipt: ...  # fmt: skip

    @overload
    async def send(
        self, to: Target, body: str, *, wait: None = None, reply: float, retry_for: float = 0.0, **options: Unpack[SendOptions]
    ) -> Reply: ...

    async def send(
        self, to: Target, body: str, *, wait: float | None = None, reply: float | None = None, retry_for: float = 0.0,
        **options: Unpack[SendOptions],
    ) -> Receipt | Reply:  # fmt: skip
        """Sends to an agent, a list of agents, `#channel` or `*`; returns when the message is durable.

        With `wait`, returns when every recipient has acknowledged it, or raises TimedOut after that many seconds; the message
        stays stored. With `reply` it is a question, and its answer is returned, as by `request`. Raises the RelayError it was
        refused with. With `retry_for`, temporary refusals (QUEUE_FULL, RATE_LIMITED) are retried for that many seconds, when
        the daemon advises.
        """
        check_options("send", options, SEND_OPTIONS)
        self._check_agent()
        if reply is not None:
            if wait is not None:
                raise TypeError("send() takes wait or reply, not both: an answer comes after the delivery.")
            return await self._sender.request(to, body, reply, **options)
        receipt = await self._sender.send(to, body, retry_for, **options)
        if wait is not None:
            await receipt.delivered(wait)
        return receipt

    async def submit(self, to: Target, body: str, **options: Unpack[SendOptions]) -> Receipt:
        """Like `send`, but does not wait for the daemon; await the receipt later. For many messages in a row.

        Waits only while 1,000 messages are unanswered, and briefly if the recipient is busy (`slow_down`). A refusal is raised
        only when the receipt is awaited.
        """
        if options:
            check_options("submit", options, SEND_OPTIONS)
        self._check_agent()
        return await self._sender.submit(to, body, **options)

    async def publish(
        self, topic: str, body: str, *, wait: float | None = None, **options: Unpack[PublishOptions]
    ) -> Receipt:  # fmt: skip
        """Sends to all subscribers of the topic; `wait` works as for `send`."""
        check_options("publish", options, PUBLISH_OPTIONS)
        return await self.send(None, body, topic=topic, wait=wait, **options)

    async def request(self, to: Target, body: str, timeout: float = 30.0, **options: Unpack[SendOptions]) -> Reply:  # noqa: ASYNC109
        """Sends a question and returns its answer: a reply message, or an acknowledgement with a response.

        Raises TimedOut (DELIVERY_TIMEOUT) if none comes within `timeout` seconds. Cancelling the task withdraws the question.
        """
        check_options("request", options, SEND_OPTIONS)
        self._check_agent()
        return await self._sender.request(to, body, timeout, **options)

    async def ask(self, to: Target, body: str, timeout: float = 30.0, **options: Unpack[SendOptions]) -> Question:  # noqa: ASYNC109
        """Like `request`, but returns once the question is durable; `answer_to` waits for the answer."""
        check_options("ask", options, SEND_OPTIONS)
        self._check_agent()
        return await self._sender.ask(to, body, timeout, **options)

    async def answer_to(self, question: Question, timeout: float = 30.0) -> Reply:  # noqa: ASYNC109
        """Waits for the answer. Raises TimedOut if none comes in time; the question is then withdrawn."""
        return await self._sender.answer_to(question, timeout)

    async def result(self, task_id: str, value: Any, error: str | None = None) -> Receipt:
        """Gives the result of a task that this agent was asked to do: text, or anything JSON can hold. With `error`, says why
        there is none. A task is a question in a thread of its own, and its id is that thread.

        Returns when the result is durable. Raises INVALID_TARGET for a task that this agent was not given, and REJECTED for one
        that already has its result.
        """
        self._check_agent()
        return await give_result(self, await find_task(self, task_id), value, error)

    async def _reply(self, message: Message, id_: str | None, body: str, data: dict[str, Any] | None, kind: str) -> Receipt:
        return await self.send(message.from_, body, thread=message.thread, data=data, kind=kind, reply_to=message.id, id=id_)

    # --- receiving ------------------------------------------------------------------------------------------------

    def messages(self, timeout: float | None = None) -> MessageStream:
        """Iterates over the messages to this agent. Each is acknowledged when the loop asks for the next; if the loop is left
        (`break`, an exception), the current one is put back unless it was answered: see `Message`.

        The loop ends when the client is closed, or when `timeout` seconds pass without a message. It raises when the
        connection is lost for good.
        """
        self._check_agent()
        return MessageStream(self._inbox, self._inbox.queue, timeout)

    async def receive(self, timeout: float | None = None) -> Message:  # noqa: ASYNC109
        """The next message. It is not acknowledged until `async with message`, `message.ack()`, `nack()` or `reply()` does it."""
        return await self.messages().receive(timeout)

    def discard(self, agent: str) -> None:
        """Acknowledges what that agent has sent and will send to this one, unread, for as long as this client lives. For agents
        that are not needed any more."""
        self._check_agent()
        self._inbox.discard_from(agent)

    @contextlib.asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncIterator[MessageStream]:
        """Subscribes to a topic or a pattern (`code.*`, `code.>`) while the block runs.

        Matching messages go to this feed instead of `messages()`.
        """
        self._check_agent()
        queue = self._inbox.open_feed(topic)
        subscribed = False
        try:
            await self._queries.ask("SUBSCRIBE", {"topic": topic})
            subscribed = True
            yield MessageStream(self._inbox, queue)
        finally:
            last = self._inbox.close_feed(topic, queue)
            if subscribed and last and self.state not in {ClientState.CLOSED, ClientState.DISCONNECTED}:
                await self._unsubscribe(topic)

    async def _unsubscribe(self, topic: str) -> None:
        outcome = self._queries.ask_unheard("UNSUBSCRIBE", {"topic": topic})
        if self._session.ready:  # otherwise it is said after the next reconnect, and nobody has to wait for that
            with contextlib.suppress(TimeoutError, RelayError):
                await asyncio.wait_for(outcome.wait(), _UNSUBSCRIBE_S)

    async def join(self, channel: str, *, agent: str | None = None) -> str:
        """Joins `#channel`; the first to join creates it. With `agent`, that one joins, connected or not. Returns who did."""
        return await self._change_membership("CHANNEL_JOIN", "join", channel, agent)

    async def leave(self, channel: str, *, agent: str | None = None) -> str:
        """Leaves `#channel`, even one joined by default: a later session does not join it again."""
        return await self._change_membership("CHANNEL_LEAVE", "leave", channel, agent)

    async def _change_membership(self, kind: str, command: str, channel: str, agent: str | None) -> str:
        if agent is not None:
            asked = payloads.ControlPayload(command, agent, channel=channel)
            return expect_receipt(await self._queries.ask("CONTROL", asked)).by or agent
        self._check_agent()
        await self._queries.ask(kind, {"channel": channel})
        return self.name

    # --- agents the relay runs, and what was not delivered ----------------------------------------------------------

    def report(self, kind: str, /, **fields: Any) -> None:
        """Tells the daemon about this agent: `agent.state`, `message.received`, `message.read`, `agent.input`.

        Without a connection it is dropped, except the newest `agent.state`, which is sent on every new connection. There is no
        answer; errors that the daemon finds are logged.
        """
        self._check_agent()
        self._engine.reports.say(kind, fields)

    async def control(self, agent: str, command: str, text: str | None = None, *, request_id: str | None = None) -> str:
        """`pause`, `resume`, `interrupt`, `stop`, or `input` with a text: for an agent that the relay runs. `approve`, `deny`
        (with a reason) and `answer` are for one of its open requests, and return when the agent has the answer.

        Returns its name as the daemon spells it, once the command is handed over. It is never sent twice: if the connection
        breaks before the answer, ConnectionLost is raised.
        """
        asked = {"command": command, "agent": agent, "text": text, **({"id": request_id} if request_id else {})}
        return expect_receipt(await self._queries.ask_once("CONTROL", asked)).by or agent

    async def spawn(
        self,
        name: str,
        cli: str,
        task: str | None = None,
        *,
        cwd: str | None = None,
        backend: str = "auto",
        environment: Mapping[str, str] | None = None,
        permission_mode: str | None = None,
        sandbox: bool = False,
        ephemeral: bool = False,
        host: str | None = None,
        run: str | None = None,
        model: str | None = None,
        role: str | None = None,
        team: str | None = None,
        restarts: int = 0,
        budget_usd: float | None = None,
        transport: str = "terminal",
    ) -> Spawned:
        """Starts a CLI as an agent of that name; returns once its program runs. `cli` is one that the relay
        knows (claude, codex, …) or that the settings allow; `task` is the first message it gets, from this agent;
        `permission_mode` is one of that CLI's own (`plan`, `acceptEdits`, …); `sandbox` runs it in a sandbox. An `ephemeral`
        agent leaves nothing: when it ends, its name is removed, and senders of undelivered messages are told. `host` is one of
        the cluster; without it, the least loaded that allows it: this one, unless others list it in `cluster_control`. With
        `run`, an id of your own, the agent belongs to this session: it is released when this client is gone for good.
        `model` is as the CLI calls it; `role` and `team` are kept with the session; `restarts` is how often a crash starts it
        again; it is released once its session has cost `budget_usd`. With the `transport` `acp` it runs by the Agent Client
        Protocol, for a CLI that speaks it.

        A reconnection repeats the request without starting a second agent.
        """
        asked = payloads.SpawnPayload(
            name, cli, task, cwd, backend, dict(environment or {}), permission_mode, sandbox, ephemeral, host, run, model,
            role, team, restarts, budget_usd, transport,
        )  # fmt: skip
        found = expect_spawned(await self._queries.ask("SPAWN", asked))
        return Spawned(found.name, found.session_id or "")

    async def release(self, name: str, reason: str | None = None) -> None:
        """Stops an agent that the daemon started; returns once its program has ended."""
        await self._queries.ask("RELEASE", payloads.ReleasePayload(name, reason))

    async def change_host(self, host: str, command: str) -> None:
        """`exclude_host` or `include_host`: whether a host takes part in the cluster. Returns once it is decided for good."""
        await self._queries.ask_once("CONTROL", {"command": command, "host": host})

    async def set_team(self, sha256: str, rules: Sequence[AccessRule]) -> None:
        """Puts a team's rules in force, in place of those before; none: everything is open. For the owner. Returns once they are
        durable."""
        await self._queries.ask_once("CONTROL", payloads.ControlPayload("set_team", id=sha256, rules=list(rules)))

    async def retry_dead_letter(self, message_id: str) -> str:
        """Sends it once more, as a new message, and returns the new one's id."""
        receipt = expect_receipt(await self._queries.ask("CONTROL", {"command": "retry_dead_letter", "id": message_id}))
        return receipt.message_id or ""

    async def count_data(self, agent: str) -> dict[str, int]:
        """Counts an agent's messages that are still on their way: `undelivered_from` it, and `undelivered_to` it."""
        return await self._order("count_data", agent)

    async def forget(self, agent: str) -> dict[str, int]:
        """Erases everything kept about an agent that is not running, and returns how much that was. For observers."""
        return await self._order("forget", agent)

    async def remove(self, agent: str) -> int:
        """Removes an agent that is not running from the lists, and returns how many messages waiting for it became dead
        letters. The history stays. For observers."""
        return (await self._order("remove", agent))["dead_letters"]

    async def _order(self, command: str, agent: str) -> dict[str, int]:
        receipt = expect_receipt(await self._queries.ask_once("CONTROL", {"command": command, "agent": agent}))
        counts: dict[str, int] = receipt.responseData
        return counts

    def _check_agent(self) -> None:
        if self.observer:
            raise RelayError(ErrorCode.PERMISSION_DENIED, "An observer has no messages: it neither sends nor receives.")
