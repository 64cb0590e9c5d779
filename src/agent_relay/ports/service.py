"""The relay as those who serve people (the HTTP API, budgets, ARC's history) call it: structs in, structs out.

What is known at once is returned, everything else promised. Both may raise RelayError. `caller` is who wants it, as the system
says; it is checked by the relay at that moment, and recorded. Fields are named as on the wire (docs/protocol.md).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from typing import Any, Protocol, TypeVar

from msgspec import UNSET, Struct, UnsetType, field

from agent_relay.ports.callers import OWNER, Caller
from agent_relay.protocol.channels import ChannelFacts
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.payloads import HistoryPayload, ProposePayload, SpawnPayload
from agent_relay.protocol.proposals import Proposal
from agent_relay.protocol.reports import UnusedDoor
from agent_relay.protocol.requests import OpenRequest

T = TypeVar("T")

# The client that sends what is sent through the service, and the door by which the owner reads. Before the owner had a name, such
# messages were from it as well.
SERVICE_NAME = "http"


# --- what is ---------------------------------------------------------------------------------------------------------------


class StorageFacts(Struct):
    kind: str
    messages: int
    size_bytes: int
    wal_bytes: int
    problem: str
    lost: str


class ServerFacts(Struct):
    version: str
    project: str
    project_name: str
    started_at: int
    uptime_ms: int
    connected: int
    accepted: int
    refused: int
    dead_letters: int
    storage: StorageFacts


class AgentFacts(Struct):
    name: str
    connected: bool
    state: str
    waiting_for: str | None
    paused: bool
    door: str | None
    door_note: str | None
    hold: dict[str, Any] | None
    unused_doors: list[UnusedDoor]
    loop: dict[str, Any] | None
    requests: list[OpenRequest]  # long texts are shortened
    cli: str | None
    host: str  # of the cluster, where it is or was last; "": there is no cluster
    session_id: str
    queue_depth: int
    queue_capacity: int
    inflight: int
    registered_at: int
    last_seen_at: int
    subscriptions: list[str]
    channels: list[str]
    shadows: list[str]  # whose messages it gets copies of
    shadowed_by: list[str]  # who gets copies of its own
    at_leisure: list[str]  # channels of which only mentions wake it
    takes_control: bool
    capabilities: list[str]  # what it and the daemon agreed on
    meta: dict[str, Any]


class SessionFacts(Struct):
    session_id: str
    agent: str
    cli: str
    cwd: str
    backend: str
    transport: str
    host: str
    status: str
    permission_mode: str | None
    spawned_by: str
    task: str | None
    started_at: int
    exit_code: int | None
    ended_at: int | None
    reason: str | None
    team: str | None = None


class RecipientFacts(Struct):
    """`stage` and what follows only where receipts were asked for."""

    name: str
    seq: int
    status: str
    copy: bool | UnsetType = UNSET  # it is a shadow: no recipient
    stage: str | UnsetType = UNSET
    stage_at: int | UnsetType | None = UNSET
    door: str | UnsetType = UNSET
    evidence: str | UnsetType = UNSET


class DeadLetterFacts(Struct):
    to: str
    at: int
    code: str


class StoredMessage(Struct, rename={"from_": "from"}):
    message_id: str
    client_id: str
    from_: str
    to: str
    topic: str | None
    ts: int
    expires_at: int
    kind: str
    thread: str | None
    priority: int
    payload: dict[str, Any]
    payload_meta: dict[str, Any] | None
    recipients: list[RecipientFacts]
    skipped: list[str]
    truncated: bool | UnsetType = UNSET  # too large to be shown whole
    dead: DeadLetterFacts | UnsetType = UNSET


class MessagePage(Struct):
    messages: list[StoredMessage]
    next_cursor: str | None = None


class Step(Struct):
    at: int
    event: str
    to: str
    detail: str = ""
    door: str | None = None
    evidence: str | None = None
    hold: str | None = None  # of a step `waits`: why


class MessageLife(Struct):
    message: StoredMessage
    trail: list[Step]


class LastSaid(Struct, rename={"from_": "from"}):
    message_id: str
    from_: str
    to: str
    kind: str
    ts: int
    body: str


class ConversationFacts(Struct):
    type: str
    key: str
    count: int
    last: LastSaid


class DataCounts(Struct):
    """Counts of the data that is kept of an agent, or was."""

    undelivered_from: int = 0
    undelivered_to: int = 0
    messages: int = 0
    events: int = 0
    files: int = 0


# --- what is wanted, and what came of it ---------------------------------------------------------------------------------------


class Outgoing(Struct, frozen=True, kw_only=True):
    """A message that is to be sent; without `to`, to whoever listens to the topic."""

    to: str | list[str] | None
    body: str
    kind: str = "message"
    thread: str | None = None
    topic: str | None = None
    data: dict[str, Any] | None = None
    priority: int | None = None
    ttl_ms: int | None = None
    reply_to: str | None = None
    wait_ms: int | None = None  # for everyone to have it,
    reply_ms: int | None = None  # and for an answer


class Answer(Struct, frozen=True):
    """An answer; `message_id` where it came as a message of its own."""

    by: str
    body: str
    response: Any = None
    data: Any = None
    message_id: str | None = None


class Sent(Struct):
    """`delivered` is None where nobody waited for it."""

    message_id: str
    recipients: int
    queued: int
    skipped: list[str]
    delivered: bool | None = None
    by: list[str] = field(default_factory=list)  # who acknowledged it while somebody waited
    failure: str | None = None  # why it will not be delivered, where that is known already
    reply: Answer | None = None


class Requeued(Struct):
    """A dead letter that was sent again, under another id."""

    message_id: str
    to: str


class Started(Struct):
    name: str
    session_id: str


class KeyReused(RelayError):  # noqa: N818 - named by the condition
    """The key of a request stands for another one, which was carried out."""

    def __init__(self, key: str) -> None:
        super().__init__(
            ErrorCode.INVALID_FORMAT,
            f"The key {key} was used for another request; nothing was done. Use a new key for each request, and repeat a "
            "request unchanged.",
            field="Idempotency-Key", reason="key_reused",
        )  # fmt: skip


class RelayService(Protocol):
    @property
    def name(self) -> str:
        """The owner's, whom messages are from."""
        ...

    def server(self) -> ServerFacts: ...

    def agents(self) -> list[AgentFacts]: ...

    def agent(self, name: str) -> AgentFacts: ...

    def requests(self, agent: str | None = None) -> list[OpenRequest]:
        """Those of one agent, or of all, that wait for a person; long texts are shortened."""
        ...

    def sessions(self) -> list[SessionFacts]:
        """Those of agents that the daemon started, also ended ones."""
        ...

    def messages(self, asked: HistoryPayload) -> Awaitable[MessagePage]: ...

    def conversations(self, limit: int) -> Awaitable[list[ConversationFacts]]: ...

    def message(self, message_id: str) -> Awaitable[MessageLife]: ...

    def channels(self) -> Awaitable[list[ChannelFacts]]: ...

    def set_topic_line(self, channel: str, line: str, caller: Caller = OWNER) -> Awaitable[str]:
        """Sets the topic line; "" removes it. Returns the channel as it is spelled."""
        ...

    def change_membership(
        self, command: str, channel: str, agent: str | None, at_leisure: bool | None = None, caller: Caller = OWNER
    ) -> Awaitable[str]:
        """`join` or `leave`, for that agent or for whom messages are sent as; says who did."""
        ...

    def send(self, message: Outgoing, key: str | None = None) -> Awaitable[Sent]:
        """Returns when it is stored; with `wait_ms` when everyone has it, with `reply_ms` when it is answered, or when that time
        is over. Cancelled, nobody waits any more. Said again with the same `key` it is the same message, over restarts too."""
        ...

    def dead_letters(self, limit: int) -> Awaitable[list[StoredMessage]]: ...

    def retry(self, message_id: str, caller: Caller = OWNER) -> Awaitable[Requeued]:
        """Sends a dead letter again."""
        ...

    def dismiss(self, message_id: str, caller: Caller = OWNER) -> Awaitable[None]:
        """It is no dead letter any more, and stays in the history. Returns when that is durable."""
        ...

    def control(
        self, agent: str, command: str, text: str | None = None, for_ms: int | None = None, caller: Caller = OWNER
    ) -> Awaitable[None]:
        """Returns when the command was handed to the agent's wrapper. `for_ms`: how long a `pause` lasts."""
        ...

    def answer(
        self, agent: str, request_id: str, command: str, text: str, caller: Caller = OWNER, option: str | None = None
    ) -> Awaitable[None]:
        """`approve`, `deny` or `answer`. Returns when it was carried out. `option`: one of its `wider_options`."""
        ...

    def count_data(self, agent: str) -> Awaitable[DataCounts]:
        """Counts what of an agent is still on its way."""
        ...

    def forget(self, agent: str) -> Awaitable[DataCounts]:
        """Erases everything that is kept of an agent, and says how much it was."""
        ...

    def proposals(self, *, is_open: bool) -> list[Proposal]:
        """The newest first: the open ones, or all that are kept."""
        ...

    def proposal(self, proposal_id: str) -> Proposal: ...

    def propose(self, asked: ProposePayload, caller: Caller = OWNER) -> Awaitable[Proposal]:
        """In the owner's name, as `vote` is. Each returns when it is stored."""
        ...

    def vote(self, proposal_id: str, vote: str, reason: str | None, caller: Caller = OWNER) -> Awaitable[Proposal]: ...

    def withdraw(self, proposal_id: str, reason: str | None, caller: Caller = OWNER) -> Awaitable[Proposal]: ...

    def spawn(self, asked: SpawnPayload, caller: Caller = OWNER) -> Awaitable[Started]: ...

    def release(self, name: str, reason: str | None, caller: Caller = OWNER) -> Awaitable[None]: ...


# --- what keeps the promises ---------------------------------------------------------------------------------------------------


class Promise(Protocol[T]):
    """As asyncio's futures are: the core fulfils them, and whoever asked waits."""

    def set_result(self, result: T, /) -> None: ...

    def set_exception(self, exception: type[BaseException] | BaseException, /) -> None: ...

    def done(self) -> bool: ...

    def add_done_callback(self, fn: Callable[[Any], object], /) -> None: ...

    def __await__(self) -> Generator[Any, None, T]: ...


class Turns(Protocol):
    """The loop that a relay lives in, as far as somebody inside needs it. The core itself never waits."""

    def begin_turn(self) -> None:
        """Before anything is said to the relay."""
        ...

    def run_later(self, callback: Callable[[], None]) -> None:
        """In a turn of its own."""
        ...

    def promise(self) -> Promise[Any]: ...


def teams_of(service: RelayService) -> dict[str, str]:
    """The team of each session that was started with one. Raises RelayError."""
    return {session.session_id: session.team for session in service.sessions() if session.team}
