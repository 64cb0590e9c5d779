"""Answers to clients, as structs: the JSON has their names in camelCase, as the events do."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from msgspec import UNSET, Struct, field

from agent_relay.events.types import AnyEvent, VoteName
from agent_relay.protocol.reports import UnusedDoor

V = TypeVar("V", bound=Struct)

RuleName = Literal["majority", "unanimous", "quorum", "weighted"]
AgentStateName = Literal["starting", "idle", "working", "waiting", "offline"]


def build(kind: type[V], found: Struct, **more: Any) -> V:
    """The view of what the relay says about the same thing: fields of the same names, but for those that are given."""
    shared = {
        name: value for name in kind.__struct_fields__ if name not in more and (value := getattr(found, name, UNSET)) is not UNSET
    }
    return kind(**shared, **more)


class Done(Struct):
    success: bool = True


class PageCodeView(Struct, rename="camel"):
    code: str
    expires_at: int


class PageKeyView(Struct):
    key: str  # sent as X-Relay-Page; the other half is the cookie


class ForgottenPages(Struct):
    forgotten: int


class ErasedData(Struct, rename="camel"):
    """`undelivered_from`: messages of it that others have not got yet. `undelivered_to`: those that it has not got."""

    undelivered_from: int
    undelivered_to: int
    messages: int
    events: int
    files: int


class Health(Struct, rename="camel"):
    status: Literal["ok"]
    version: str
    uptime_ms: int


class Ready(Struct):
    ready: bool


class HostView(Struct, rename="camel"):
    """`load`: 1 is as much work as the machine has cores. `behind`: records of the log that its copy does not have yet.
    `clock_ms`: how far its clock is ahead of the one of the host that answers."""

    host: str
    role: Literal["seat", "edge", "lost"]
    version: str
    agents: int
    load: float
    position: int
    behind: int
    clock_ms: int
    heard_at: int
    starts: list[str]
    is_self: bool
    is_excluded: bool


class HostList(Struct):
    """Without a cluster, all of it is empty. `host` is the one that answers."""

    project: str
    host: str
    seat: str
    trouble: str
    hosts: list[HostView]


class ProjectView(Struct):
    """`host` is what its HTTP is bound to; `agents`, how many are connected."""

    name: str
    path: str
    url: str
    host: str
    agents: int


class ProjectList(Struct):
    projects: list[ProjectView]


class Store(Struct, rename="camel"):
    kind: str
    messages: int
    size_bytes: int
    problem: str  # why nothing can be stored now, or what is wrong with it; "" for nothing
    lost: str  # what was found missing at a start; "" for nothing


class Status(Struct, rename="camel"):
    """Everything that is shown of the relay as a whole."""

    version: str
    you: str  # the name that messages from here are from
    project: str  # its directory
    project_name: str
    started_at: int
    uptime_ms: int
    agents: int
    connected: int
    messages: int
    dead_letters: int
    permissions: int  # that wait for a person
    questions: int
    total_tokens: int
    estimated_cost_usd: float | None
    last_seq: int  # of the events
    marks_version: int  # goes up when marks are changed
    storage: Store


class HoldView(Struct):
    """Why its messages wait: a word of the glossary, what the matter is, what to do about it ("": it ends by itself), and both in
    one line."""

    reason: str
    text: str
    todo: str
    line: str


class DoingView(Struct):
    """`what`: the type of an item, the operation on a file, or `run`; `text`: the file or the command."""

    kind: Literal["item", "file", "command"]
    what: str
    text: str
    at: int


class AgentView(Struct, rename="camel"):
    name: str
    connected: bool
    state: AgentStateName
    cli: str | None
    session_id: str
    queue_depth: int
    queue_capacity: int
    inflight: int
    registered_at: int
    last_seen_at: int
    host: str = ""  # of the cluster, where it is or was last; "": there is no cluster
    waiting_for: str | None = None
    paused: bool = False
    state_at: int | None = None  # since when it is in this state, where that was told
    doing: DoingView | None = None  # the newest that its CLI's record tells of its work
    door: str | None = None
    door_note: str | None = None
    hold: HoldView | None = None
    unused_doors: list[UnusedDoor] = []  # better ways in, the best first
    loop: dict[str, Any] | None = None
    open_requests: int = 0  # permissions and questions that wait for a person
    subscriptions: list[str] = []
    channels: list[str] = []
    shadows: list[str] = []  # whose messages it gets copies of
    shadowed_by: list[str] = []  # who gets copies of its own
    at_leisure: list[str] = []  # channels of which only mentions wake it
    capabilities: list[str] = []  # what it and the daemon agreed on
    meta: dict[str, Any] = {}
    model: str | None = None  # the one it last used
    total_tokens: int = 0
    estimated_cost_usd: float | None = None  # None: nothing was used, or no price is known


class MarkView(Struct):
    at: int
    until: int | None = None


class MarkList(Struct):
    """`version` goes up with every change; the status has it, too."""

    marks: dict[str, MarkView]
    version: int


class AgentList(Struct):
    agents: list[AgentView]
    next_cursor: str | None = None


class Output(Struct):
    """Oldest line first. `is_over`: the program has ended."""

    lines: list[str]
    is_over: bool = field(name="isOver", default=False)


class ChannelView(Struct, rename="camel"):
    name: str
    members: list[str]
    messages: int
    last_at: int | None = None
    topic_line: str = ""


class ChannelList(Struct):
    channels: list[ChannelView]
    next_cursor: str | None = None


class VoteView(Struct):
    vote: VoteName
    at: int
    reason: str | None
    heard: Literal["screen"] | None


class ProposalView(Struct, rename="camel"):
    """`departed`: participants that left the relay without a vote. `outcome` is null while it is open."""

    proposal_id: str
    title: str
    description: str
    proposed_by: str
    participants: list[str]
    consensus_type: RuleName
    quorum: str | None
    weights: dict[str, int]
    proposed_at: int
    expires_at: int
    votes: dict[str, VoteView]
    departed: list[str]
    outcome: Literal["approved", "rejected", "timeout", "withdrawn"] | None
    resolved_at: int | None
    resolution: str


class ProposalList(Struct):
    proposals: list[ProposalView]
    next_cursor: str | None = None


class TopicLine(Struct):
    channel: str
    text: str


class Membership(Struct):
    channel: str
    agent: str
    success: bool = True


class PermissionView(Struct, rename="camel"):
    request_id: str
    agent_name: str
    tool: str
    command: str | None
    file_path: str | None
    description: str
    risk_level: Literal["low", "medium", "high", "critical"]
    requested_at: int
    options: list[str] = []
    wider_options: list[str] = []  # those that allow more than this once
    is_exact: bool = False  # its words are the program's own, whole: what a rule may approve
    can_allow: bool = True


class PermissionList(Struct):
    permissions: list[PermissionView]
    next_cursor: str | None = None


class PastRequest(Struct, rename="camel"):
    at: int
    agent_name: str
    tool: str
    subject: str
    outcome: str | None = None  # `approved`, `denied` or `timeout`; null: it is open, or its end is not known
    resolved_by: str | None = None


class RulePreview(Struct, rename="camel"):
    """`found`: requests since then that the rule would have approved, the newest first, at most 50 of `count`; `looked`: how many
    requests there were. `path`: the file it was written to."""

    pattern: str
    tool: str
    about: Literal["command", "file"]
    exact: str
    wider: str  # a wider pattern that makes sense; "": there is none
    since: int
    problem: str = ""  # why it cannot be a rule
    looked: int = 0
    count: int = 0
    denied: int = 0  # those of them that were denied
    found: list[PastRequest] = []
    path: str = ""


class QuestionView(Struct, rename="camel"):
    question_id: str
    agent_name: str
    question: str
    options: list[str]
    requested_at: int
    can_allow: bool = True  # whether it can be answered here


class QuestionList(Struct):
    questions: list[QuestionView]
    next_cursor: str | None = None


class EventList(Struct):
    events: list[AnyEvent]
    next_cursor: str | None = None


class WorkspaceView(Struct, rename="camel"):
    id: str
    path: str
    name: str
    is_running: bool
    is_default: bool
    is_own: bool  # this daemon's


class WorkspaceList(Struct):
    workspaces: list[WorkspaceView]
    next_cursor: str | None = None
