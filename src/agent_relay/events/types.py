"""Every event as a struct, tagged by `type`. Names are those of the JSON in snake_case.

The first four fields are the envelope that every event has. They are filled in when it is recorded: `seq` counts up by
one and is never given twice, `by_agent` and `by_session` say whose event it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct, field

from agent_relay.protocol.payloads import Count

Number = int | float  # milliseconds, mostly; other people's clients may count in fractions
Word = Annotated[str, Meta(min_length=1)]
Risk = Literal["low", "medium", "high", "critical"]
Resolution = Literal["approved", "denied", "timeout"]
VoteName = Literal["approve", "reject", "abstain"]
GapReason = Literal["killed", "unwritten", "damaged"]


class Event(Struct, frozen=True, kw_only=True, tag_field="type", rename="camel", omit_defaults=True):
    seq: Count = field(name="_seq", default=0)
    ts: Count = field(name="_ts", default=0)
    by_session: str = field(name="_sessionId", default="")
    by_agent: str = field(name="_agentName", default="")


# --- sessions and agents -------------------------------------------------------------------------------------------------


class AgentInfo(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: Word
    cli: Word
    model: str | None = None
    version: str | None = None


class SessionConfig(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    permission_mode: str | None = None
    working_directory: str | None = None
    environment: dict[str, str] | None = None


class SessionStarted(Event, tag="session.started", frozen=True, kw_only=True):
    session_id: Word
    agent: AgentInfo
    started_at: Number
    config: SessionConfig


class SessionSummary(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Counts of what the agent's record showed; one that nobody knows is absent."""

    duration: Number  # milliseconds
    item_count: Count | None = None
    files_modified: Count | None = None
    commands_run: Count | None = None
    total_tokens: Count | None = None
    estimated_cost: Number | None = None  # US dollars


class SessionEnded(Event, tag="session.ended", frozen=True, kw_only=True):
    session_id: Word
    ended_at: Number
    reason: Literal["completed", "released", "crashed", "timeout"]
    summary: SessionSummary | None = None


class AgentSpawned(Event, tag="agent.spawned", frozen=True, kw_only=True):
    session_id: Word
    agent_name: Word
    cli: Word
    spawned_by: str
    task: str | None = None
    role: str | None = None


class AgentReleased(Event, tag="agent.released", frozen=True, kw_only=True):
    session_id: Word
    agent_name: Word
    released_by: str
    reason: str


class AgentState(Event, tag="agent.state", frozen=True, kw_only=True):
    state: Literal["starting", "idle", "working", "waiting", "offline"]
    waiting_for: str | None = None
    door: str | None = None
    door_note: str | None = None
    paused: bool = False
    paused_by: str | None = None
    hold: str | None = None  # why its messages wait, where it says so itself: a word of the glossary


# --- what an agent does --------------------------------------------------------------------------------------------------


class ItemStarted(Event, tag="item.started", frozen=True, kw_only=True):
    session_id: Word
    item_id: Word
    item_type: Literal["message", "tool_call", "thinking", "plan", "search", "test_run", "build"]
    started_at: Number
    metadata: dict[str, Any] | None = None


class Delta(Struct, frozen=True, kw_only=True):
    type: Literal["text", "tool_input", "tool_output"]
    content: str


class ItemDelta(Event, tag="item.delta", frozen=True, kw_only=True):
    session_id: Word
    item_id: Word
    delta: Delta


class ItemCompleted(Event, tag="item.completed", frozen=True, kw_only=True):
    session_id: Word
    item_id: Word
    completed_at: Number
    duration: Number | None  # null: the agent's record does not say when it began
    result: Any = None


class TokensUsed(Event, tag="tokens.used", frozen=True, kw_only=True):
    session_id: Word
    agent_name: Word
    model: str
    input_tokens: Count
    output_tokens: Count
    cache_read_tokens: Count | None = None
    cache_write_tokens: Count | None = None
    estimated_cost_usd: Number | None = None
    usage_id: str | None = None  # the CLI's own record of it: the same when it is told again, and counted once


class FileOperation(Event, tag="file.operation", frozen=True, kw_only=True):
    session_id: Word
    operation: Literal["read", "write", "edit", "delete", "create"]
    file_path: Word
    lines_changed: Count | None = None
    diff: str | None = None


class CommandExecuted(Event, tag="command.executed", frozen=True, kw_only=True):
    session_id: Word
    command: str
    exit_code: int | None  # null: the agent's record does not say
    duration: Number | None  # null: the agent's record does not say
    stdout: str | None = None
    stderr: str | None = None


# --- people --------------------------------------------------------------------------------------------------------------


class PermissionRequested(Event, tag="permission.requested", frozen=True, kw_only=True):
    session_id: Word
    request_id: Word
    tool: str
    description: str
    risk_level: Risk
    command: str | None = None
    file_path: str | None = None


class PermissionResolved(Event, tag="permission.resolved", frozen=True, kw_only=True):
    session_id: Word
    request_id: Word
    resolution: Resolution
    resolved_by: str  # an agent, `human` or `policy`
    resolved_at: Number
    reason: str | None = None


class QuestionRequested(Event, tag="question.requested", frozen=True, kw_only=True):
    session_id: Word
    question_id: Word
    question: str
    options: tuple[str, ...] | None = None
    default_answer: str | None = None


class QuestionResolved(Event, tag="question.resolved", frozen=True, kw_only=True):
    session_id: Word
    question_id: Word
    answer: str
    resolved_by: str


# --- messages, decisions -------------------------------------------------------------------------------------------------


class MessageExchanged(Event, tag="message.exchanged", frozen=True, kw_only=True):
    """A message is durable. `to` is as it was addressed: a name, names joined by commas, `*`, `#channel`, or "" for a
    topic alone; `channel` the topic, or else the channel."""

    session_id: str
    message_id: Word
    from_: Word = field(name="from")
    to: str
    body: str
    kind: str
    thread: str | None = None
    channel: str | None = None


class MessageDelivered(Event, tag="message.delivered", frozen=True, kw_only=True):
    """A recipient has acknowledged it; `door` and `evidence` where it went into a program, and what was seen of that."""

    message_id: Word
    to: Word
    attempt: Count
    latency_ms: Count
    door: str | None = None
    evidence: str | None = None


class ConsensusProposed(Event, tag="consensus.proposed", frozen=True, kw_only=True):
    session_id: str
    proposal_id: Word
    title: str
    proposed_by: str
    participants: tuple[str, ...]
    consensus_type: str
    description: str | None = None
    quorum: str | None = None
    weights: dict[str, int] | None = None
    expires_at: Number | None = None


class ConsensusVote(Event, tag="consensus.vote", frozen=True, kw_only=True):
    """A participant has voted, or changed its vote."""

    session_id: str
    proposal_id: Word
    voter: Word
    vote: VoteName
    reason: str | None = None


class ConsensusResolved(Event, tag="consensus.resolved", frozen=True, kw_only=True):
    session_id: str
    proposal_id: Word
    outcome: Literal["approved", "rejected", "timeout", "withdrawn"]
    votes: dict[str, VoteName]
    reasons: dict[str, str] | None = None  # of those who gave one
    resolution: str | None = None  # how it ended, in a sentence


# --- patterns ------------------------------------------------------------------------------------------------------------


class PatternStarted(Event, tag="pattern.started", frozen=True, kw_only=True):
    """An agent or a program has begun a run: agents that it starts, gives tasks and releases."""

    session_id: Word
    run_id: Word
    pattern: Word
    total: Count


class PatternProgress(Event, tag="pattern.progress", frozen=True, kw_only=True):
    session_id: Word
    run_id: Word
    step: Literal["started", "answered", "asked_again", "failed", "escalated", "recalled", "released"]
    task: str
    agent: str
    attempt: Count
    done: Count
    total: Count
    error: str | None = None


class PatternEnded(Event, tag="pattern.ended", frozen=True, kw_only=True):
    """`abandoned`: whoever ran it is gone, and the daemon has released its agents."""

    session_id: Word
    run_id: Word
    outcome: Literal["completed", "failed", "cancelled", "abandoned"]
    done: Count | None = None
    duration: Number | None = None
    total_tokens: Count | None = None
    estimated_cost_usd: Number | None = None


# --- the relay itself ----------------------------------------------------------------------------------------------------


class LoopDetected(Event, tag="loop.detected", frozen=True, kw_only=True):
    agents: tuple[str, ...]
    hops: Count
    stage: str
    text: str


class BudgetExceeded(Event, tag="budget.exceeded", frozen=True, kw_only=True):
    budget: Literal["hour", "session", "total", "agent", "team"]
    limit_usd: Number
    spent_usd: Number
    action: Literal["alert", "pause-spawning", "stop-all", "stop"]  # `stop`: of the one agent, or team, whose own budget it is
    agent: str | None = None
    team: str | None = None


class AccessDenied(Event, tag="access.denied", frozen=True, kw_only=True):
    """A team's rule stood against what the agent wanted: a message, a start, or an answer to a request."""

    action: Literal["send", "spawn", "approve"]
    to: Word
    rule: str


class StreamGap(Event, tag="stream.gap", frozen=True, kw_only=True):
    """Events may be missing before `oldest`. Without a `reason` they are no longer kept; `lost` says how many, where known."""

    oldest: Count
    lost: Count | None = None
    reason: GapReason | None = None


AnyEvent = (
    SessionStarted | SessionEnded | ItemStarted | ItemDelta | ItemCompleted | PermissionRequested | PermissionResolved
    | QuestionRequested | QuestionResolved | MessageExchanged | AgentSpawned | AgentReleased | ConsensusProposed
    | ConsensusVote | ConsensusResolved | PatternStarted | PatternProgress | PatternEnded | TokensUsed | FileOperation
    | CommandExecuted
    | MessageDelivered | AgentState | BudgetExceeded | LoopDetected | AccessDenied | StreamGap
)  # fmt: skip

EVENT_TYPES: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyEvent)}

# What a client may say of itself, or a wrapper of its own agent. The others are the daemon's to say.
REPORTABLE: frozenset[str] = frozenset(
    {
        "item.started", "item.delta", "item.completed", "permission.requested", "permission.resolved", "question.requested",
        "question.resolved", "tokens.used", "file.operation", "command.executed", "pattern.started",
        "pattern.progress", "pattern.ended",
    }
)  # fmt: skip


def type_of(event: Event) -> str:
    return str(event.__struct_config__.tag)
