"""The content of `payload`, type by type. Unknown fields are ignored everywhere: they are a later version's."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from agent_relay.protocol.access_rules import AccessRule
from agent_relay.protocol.shadows import Shadowing

Identifier = Annotated[str, Meta(min_length=1, max_length=128)]
LARGEST_NUMBER = 2**53 - 1  # the largest integer that every JSON reader keeps exact; it fits a store's 64 bits as well
Count = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)]
Positive = Annotated[int, Meta(ge=1, le=LARGEST_NUMBER)]
MAX_DOOR, MAX_EVIDENCE = 64, 200  # characters; both are shown on one line
Door = Annotated[str, Meta(max_length=MAX_DOOR)]
Evidence = Annotated[str, Meta(max_length=MAX_EVIDENCE)]
Note = Annotated[str, Meta(max_length=200)]
Text = Annotated[str, Meta(max_length=20_000)]
KNOWN_KINDS = frozenset({"message", "action", "state", "thinking"})  # any other lowercase word will do as well

DEFAULT_PRIORITY = 5
NOTHING = Raw()


# --- handshake ---------------------------------------------------------------------------------------------------


class HelloSession(Struct):
    resume_token: str | None = None
    owner_token: str | None = None  # that of the HTTP API: a name that an agent held is the owner's to take


class HelloPayload(Struct):
    agent: str
    cli: str | None = None
    version: int = 1
    capabilities: dict[str, Any] = {}
    session: HelloSession | None = None
    meta: dict[str, Any] | None = None
    mode: str | None = None  # "observer": looks and controls, holds no name, is sent no messages
    join_defaults: bool = False  # an agent that is new here joins the daemon's default channels


class ServerInfo(Struct):
    max_frame_bytes: int
    heartbeat_ms: int
    name: str = ""
    version: str = ""
    queue_capacity: int = 0
    max_inflight: int = 0


class WelcomePayload(Struct):
    session_id: str
    resume_token: str
    server: ServerInfo
    negotiated_version: int = 1
    capabilities: list[str] = []
    agent: str = ""
    reply_to: str | None = None


class StreamPoint(Struct):
    """The position of a stream: the recipient's side in RESUME, both sides in SYNC."""

    topic: str = ""
    peer: str | None = None
    last_seq: Count = 0
    server_last_seq: int | None = None


class LastSeq(Struct):
    last_seq: Count


class ResumePayload(Struct):
    agent: str
    resume_token: str
    session_id: str | None = None
    streams: dict[str, LastSeq] | list[StreamPoint] = []
    capabilities: dict[str, Any] | None = None
    version: int | None = None


class SyncPayload(Struct):
    session_id: str
    resume_token: str
    streams: list[StreamPoint] = []
    reply_to: str | None = None


class ByePayload(Struct):
    reason: str | None = None


# --- messages ----------------------------------------------------------------------------------------------------


class SendPayload(Struct, omit_defaults=True):  # NOTHING cannot be written as JSON, so it must be left out
    """The part of a message that the daemon reads; it forwards the bytes as they came."""

    body: str
    kind: str = "message"
    thread: str | None = None
    data: Raw = NOTHING


class SyncRequest(Struct):
    correlationId: Identifier | None = None
    timeoutMs: Positive = 30_000
    blocking: bool = False


class SendMeta(Struct):
    requires_ack: bool = False
    ttl_ms: Positive | None = None
    priority: Annotated[int, Meta(ge=0, le=9)] = DEFAULT_PRIORITY
    reply_to: Identifier | None = None
    checksum: str | None = None
    sync: SyncRequest | None = None
    heard: Literal["screen"] | None = None  # how its sender, a wrapper, came to know it; else it is the agent's own word for sure


class Delivery(Struct):
    """`delivery` of a DELIVER."""

    seq: int
    session_id: str
    message_id: str
    attempt: int = 1
    queued_ms: int = 0
    prev_seq: int | None = None
    at_leisure: bool = False  # its recipient reads this channel at leisure, and it does not mention it
    copy: bool = False  # for a shadow: the message is not to it, and nobody waits for its answer


class AckPayload(Struct, omit_defaults=True):
    """A recipient's answer to a DELIVER."""

    ack_id: str
    seq: Count | None = None
    correlationId: str | None = None
    response: Raw = NOTHING
    responseData: Raw = NOTHING
    door: Door | None = None  # the way it went into the agent's program
    evidence: Evidence | None = None  # what was seen of that; alone it is ignored


class ReceiptPayload(Struct):
    """The daemon's ACK to a sender, or to a request."""

    ack_id: str
    stage: str = ""
    message_id: str | None = None
    recipients: int | None = None
    queued: int | None = None
    skipped: list[str] = []
    duplicate: bool = False
    by: str | None = None
    seq: int | None = None
    correlationId: str | None = None
    response: Any = None
    responseData: Any = None
    response_message_id: str | None = None
    door: str | None = None
    evidence: str | None = None
    topic: str | None = None
    channel: str | None = None
    proposal: dict[str, Any] | None = None  # as it is now


class NackPayload(Struct):
    """A recipient's refusal of a DELIVER, or the daemon's refusal of a SEND."""

    nack_id: str
    code: str
    message: str | None = None
    retry_after_ms: Count | None = None
    category: str | None = None
    retryable: bool | None = None
    details: dict[str, Any] | None = None
    message_id: str | None = None
    to: str | None = None
    correlationId: str | None = None
    waited_ms: int | None = None


class ErrorPayload(Struct):
    code: str
    message: str = ""
    category: str | None = None
    retryable: bool | None = None
    retry_after_ms: int | None = None
    fatal: bool = False
    details: dict[str, Any] | None = None
    reply_to: str | None = None


class BusyPayload(Struct):
    to: str = ""
    queue_depth: int = 0
    queue_capacity: int = 0
    retry_after_ms: int = 0
    estimated_delay_ms: int = 0
    accepting: bool = True
    cleared: bool = False


class CancelPayload(Struct):
    correlationId: Identifier


class Heartbeat(Struct):
    nonce: Any = None


# --- topics, channels, questions about the relay -----------------------------------------------------------------


class SubscribePayload(Struct, omit_defaults=True):
    """All but the topic are for `$events`."""

    topic: str | None = None
    types: list[str] = []
    agent: str | None = None
    session_id: str | None = None
    after_seq: Count | None = None
    since: Count | None = None


class UnsubscribePayload(Struct, omit_defaults=True):
    topic: str | None = None
    subscription: Identifier | None = None  # of `$events`: only this one


class Channel(Struct):
    channel: str | None = None


class JoinPayload(Channel, omit_defaults=True):
    at_leisure: bool | None = None  # only mentions wake the agent; None: as it was


class ListAgentsPayload(Struct, omit_defaults=True):
    cursor: Identifier | None = None  # of the answer before


class AgentsPayload(Struct):
    agents: list[dict[str, Any]] = []
    server: dict[str, Any] = {}
    sessions: list[dict[str, Any]] = []
    next_cursor: str | None = None
    reply_to: str | None = None


class HistoryPayload(Struct, omit_defaults=True, rename={"with_": "with", "from_": "from"}):
    """The messages to show. `view`: `messages`, `message` (one, by `id`, with its trail), `conversations`, `dead_letters`,
    `events` or `proposals` (one, by `id`; the open ones with `pending`)."""

    view: str = "messages"
    id: str | None = None
    with_: str | None = None
    from_: str | None = None
    to: str | None = None
    topic: str | None = None
    thread: str | None = None
    kind: str | None = None
    search: str | None = None
    since: Count | None = None
    until: Count | None = None
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    cursor: str | None = None
    pending: bool = False  # only messages that `to` has not acknowledged
    types: list[str] = []  # of events
    session_id: str | None = None  # of events
    between: Annotated[list[str], Meta(max_length=2)] = []  # two agents: what either wrote to the other alone
    oldest_first: bool = False
    receipts: bool = False  # say of every recipient how far the message has come


class HistoryResultPayload(Struct):
    messages: list[dict[str, Any]] = []
    events: list[Raw] = []
    next_cursor: str | None = None
    trail: list[dict[str, Any]] = []
    conversations: list[dict[str, Any]] = []
    proposals: list[dict[str, Any]] = []
    reply_to: str | None = None


class ControlPayload(Struct, omit_defaults=True):
    """`pause`, `resume`, `interrupt`, `stop`, `input`, and `approve`, `deny`, `answer` for the request `id`: from a client with
    the `agent` it is for, then on to that agent's connection. For the daemon itself: `retry_dead_letter`,
    `dismiss_dead_letter`, `withdraw_proposal`, `join` and `leave` for an `agent` and a `channel`, `set_topic_line` for the
    `text` of a `channel`, `count_data` and `forget` for what is kept of an `agent`, and `set_team` for the `rules` and
    `shadows` of the team whose file has the hash `id`."""

    command: str
    agent: str | None = None
    text: str | None = None
    id: str | None = None
    by: str | None = None  # who decided, as the agent's wrapper is told
    for_ms: Count | None = None  # how long a `pause` lasts if nobody asks again
    channel: str | None = None
    at_leisure: bool | None = None  # `join`, as in CHANNEL_JOIN
    option: str | None = None  # `approve`: one of the request's `wider_options`, in place of the one that allows it once
    host: str | None = None  # of the cluster: `exclude_host`, `include_host`
    rules: list[AccessRule] | None = None  # `set_team`: in place of those before
    shadows: list[Shadowing] | None = None  # the same


class SpawnPayload(Struct):
    name: str
    cli: str
    task: str | None = None
    cwd: str | None = None
    backend: str = "auto"
    environment: dict[str, str] = {}
    permission_mode: str | None = None
    sandbox: bool = False  # behind a wall; one that stands behind one starts no other
    ephemeral: bool = False  # when it ends its name goes, too, and what waits for it is given up
    host: str | None = None  # of the cluster; None: the least loaded of those that let the asker
    run: Identifier | None = None  # of the asker: it is released once the asker's session is gone for good
    model: Annotated[str, Meta(max_length=128)] | None = None  # as the CLI calls it; None: what its own settings say
    role: Note | None = None  # for the record: what it does in its team
    team: Identifier | None = None  # the mark of whoever started a whole team with it
    restarts: Annotated[int, Meta(ge=0, le=100)] = 0  # how often it is started again after a crash
    budget_usd: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None  # it is released once its session has cost so much
    transport: str = "terminal"  # or `acp`: by the Agent Client Protocol


class SpawnResultPayload(Struct):
    name: str
    success: bool
    session_id: str | None = None
    error: str | None = None
    reply_to: str | None = None


class ReleasePayload(Struct):
    name: str
    reason: str | None = None


class ReleaseResultPayload(Struct):
    name: str
    success: bool
    error: str | None = None
    reply_to: str | None = None


class AgentEventPayload(Struct, omit_defaults=True):
    type: str
    fields: dict[str, Any] = {}
    subscription: Identifier | None = None  # the id of the SUBSCRIBE that it answers
    event: Raw = NOTHING  # then: the whole event


class ProposePayload(Struct):
    title: str
    participants: list[str]
    description: str | None = None
    consensusType: str = "majority"
    timeoutMs: Positive | None = None
    quorum: int | str | None = None  # a number of approvals, or a share such as `60%`
    weights: dict[str, Positive] = {}


class VotePayload(Struct, omit_defaults=True):
    proposalId: str
    vote: str
    reason: str | None = None
    heard: Literal["screen"] | None = None  # as `heard` of a SEND


class ConsensusPayload(Struct):
    proposalId: str
    outcome: str
    votes: dict[str, str] = {}
    resolution: str = ""  # a sentence
