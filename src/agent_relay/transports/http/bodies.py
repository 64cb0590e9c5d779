"""Input of clients: bodies and queries, each a struct that says what it may hold. Unknown fields are refused."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from agent_relay.events.types import EVENT_TYPES, VoteName
from agent_relay.protocol.channels import MAX_TOPIC_LINE
from agent_relay.protocol.payloads import LARGEST_NUMBER
from agent_relay.protocol.proposals import (
    DEFAULT_TIMEOUT_MS,
    MAX_BODY,
    MAX_PARTICIPANTS,
    MAX_REASON,
    MAX_TIMEOUT_MS,
    MAX_TITLE,
    MAX_WEIGHT,
)
from agent_relay.transports.http.repeats import KEY

Name = Annotated[str, Meta(min_length=1, max_length=64)]
Moment = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER, description="Milliseconds since 1970.")]
Sequence = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Words = Annotated[str, Meta(max_length=1000)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
MAX_AWAIT_MS = 600_000
NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"
_TARGETS = rf"^(\*|#{NAME}|{NAME}( *, *{NAME}){{0,99}})$"
_WORD = "[!-)+-\\-/-=?-~]+"  # printable, and no `.`, `*`, `>` or space
_TOPIC = rf"^{_WORD}(\.{_WORD})*$"
_PREFIXES = sorted({kind.partition(".")[0] for kind in EVENT_TYPES})
_TYPE = "|".join(re.escape(kind) for kind in [*EVENT_TYPES, *(f"{prefix}.*" for prefix in _PREFIXES), "*"])
Types = Annotated[
    str,
    Meta(
        pattern=f"^({_TYPE})( *, *({_TYPE})){{0,99}}$",
        description="Event types, separated by commas; `item.*` matches all of them.",
    ),
]
# Only described, and checked by the router: msgspec cannot do it (docs/gotchas.md).
Target = Annotated[str, Meta(extra_json_schema={"pattern": f"^{NAME}$"})]
Participant = Annotated[str, Meta(extra_json_schema={"pattern": f"^#?{NAME}$"})]
Targets = Annotated[
    str,
    Meta(
        max_length=10_000,
        description="A name, names separated by commas, `#channel` or `*`.",
        extra_json_schema={"pattern": _TARGETS},
    ),
]


Key = Annotated[
    str,
    Meta(
        pattern=f"^{KEY}$",
        description="The client's own message id, like `Idempotency-Key`: a repeat gets the first response.",
    ),
]
_CURSOR = "Continues after the previous page, or from the message with this id."
_BETWEEN = "Two names separated by a comma: what they wrote to each other alone."


class Body(Struct, forbid_unknown_fields=True):
    """A field that would be ignored would seem to have asked for something."""


class NewSession(Body, rename="camel"):
    agent: Annotated[str, Meta(min_length=1, max_length=64, description="The new agent's name.")]
    cli: Annotated[str, Meta(min_length=1, max_length=200, description="The CLI to run: claude, codex, gemini, …")]
    task: Annotated[str, Meta(description="Its first message.")] | None = None
    cwd: Path | None = None
    permission_mode: (
        Annotated[str, Meta(min_length=1, max_length=64, description="One of the CLI's own modes: `plan`, `acceptEdits`, …")]
        | None
    ) = None
    model: Annotated[str, Meta(min_length=1, max_length=128, description="As the CLI calls it.")] | None = None
    environment: dict[str, str] | None = None
    host: Annotated[str, Meta(min_length=1, max_length=32, description="The host of the cluster to run it on.")] | None = None
    transport: Annotated[
        Literal["terminal", "acp"], Meta(description="`acp`: by the Agent Client Protocol, which the CLI must speak.")
    ] = "terminal"


class PageCodeBody(Body):
    code: Annotated[str, Meta(min_length=1, max_length=1000, description="The code from `agent-relay open`, or the API token.")]


class SessionMessage(Body):
    message: Annotated[str, Meta(min_length=1)]
    id: Key | None = None


class NewMessage(Body, kw_only=True):
    """To agents, a channel or everyone, or under a topic to whoever listens."""

    body: Annotated[str, Meta(min_length=1)]
    to: Targets | Annotated[list[Target], Meta(min_length=1, max_length=100)] | None = None
    kind: Annotated[str, Meta(pattern="^[a-z][a-z0-9_.-]{0,63}$")] = "message"
    thread: Words | None = None
    topic: Annotated[str, Meta(pattern=_TOPIC, max_length=256)] | None = None
    data: Annotated[dict[str, Any], Meta(description="Beside the text, for programs.")] | None = None
    priority: Annotated[int, Meta(ge=0, le=9, description="0 goes first, 9 last.")] | None = None
    ttl_ms: (
        Annotated[int, Meta(ge=1, le=LARGEST_NUMBER, description="How long it may wait for delivery, in milliseconds.")] | None
    ) = None
    reply_to: Annotated[str, Meta(min_length=1, max_length=128, description="The message this one answers.")] | None = None
    wait_ms: Annotated[int, Meta(ge=1, le=MAX_AWAIT_MS, description="Wait this long for `delivered`.")] | None = None
    reply_ms: Annotated[int, Meta(ge=1, le=MAX_AWAIT_MS, description="Wait this long for an answer: `reply`.")] | None = None
    await_ms: Annotated[int, Meta(ge=1, le=MAX_AWAIT_MS, description="The older name of `wait_ms`.")] | None = None
    id: Key | None = None

    @property
    def waits(self) -> bool:
        return any(each is not None for each in (self.wait_ms, self.reply_ms, self.await_ms))


class MemberBody(Body):
    agent: Annotated[Target, Meta(description="The agent that joins or leaves; without it, you.")] | None = None
    at_leisure: Annotated[bool, Meta(description="Of `join`: whether only mentions wake the agent.")] | None = None


class TopicLineBody(Body):
    text: Annotated[str, Meta(max_length=MAX_TOPIC_LINE, description="Empty: there is none any more.")]


class NewProposal(Body):
    title: Annotated[str, Meta(min_length=1, max_length=MAX_TITLE)]
    participants: Annotated[
        list[Participant],
        Meta(min_length=1, max_length=MAX_PARTICIPANTS, description="Names, or `#channel` for its other members."),
    ]
    rule: Literal["majority", "unanimous", "quorum", "weighted"] = "majority"
    quorum: (
        Annotated[str, Meta(pattern="^[0-9]{1,7}%?$", description="How many must approve: `3`, or a share such as `60%`.")] | None
    ) = None
    weights: dict[str, Annotated[int, Meta(ge=1, le=MAX_WEIGHT)]] = {}
    timeout_ms: Annotated[int, Meta(ge=1, le=MAX_TIMEOUT_MS)] = DEFAULT_TIMEOUT_MS
    body: Annotated[str, Meta(max_length=MAX_BODY)] = ""


class VoteBody(Body):
    vote: VoteName
    reason: Annotated[str, Meta(max_length=MAX_REASON)] | None = None


class Decision(Body):
    reason: Words | None = None


class Approval(Decision):
    option: (
        Annotated[str, Meta(max_length=200, description="One of its `widerOptions`, in place of the one that allows it once.")]
        | None
    ) = None


class LikeThis(Body):
    pattern: (
        Annotated[str, Meta(min_length=1, max_length=500, description="Of commands or files; without it, exactly this one.")]
        | None
    ) = None


class NewMark(Body):
    at: Moment
    until: Moment | None = None  # it comes back then


MarkName = Annotated[str, Meta(min_length=1, max_length=300)]


class NewMarks(Body):
    set: Annotated[dict[MarkName, NewMark], Meta(max_length=500)] = {}
    remove: Annotated[list[MarkName], Meta(max_length=500)] = []


class AnswerBody(Body):
    answer: Annotated[str, Meta(min_length=1, max_length=20_000)]


class InputBody(Body):
    text: Annotated[str, Meta(description="Typed unchanged; a line feed is Enter.")]


class NewWorkspace(Body):
    path: Path
    name: Annotated[str, Meta(min_length=1, max_length=200)] | None = None


Dollars = Annotated[float, Meta(gt=0, le=1e9)]


class BudgetBody(Body, rename="camel"):
    """US dollars; an omitted limit is unlimited."""

    max_per_hour: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    max_per_session: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    max_total: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    alert_threshold: Annotated[float, Meta(gt=0, le=1)] | None = None
    action: Literal["alert", "pause-spawning", "stop-all"] = "alert"
    agents: Annotated[dict[Name, Dollars], Meta(max_length=500, description="By agent; `stop-all` stops that one.")] = {}
    teams: Annotated[dict[Name, Dollars], Meta(max_length=100, description="By team, of its agents together.")] = {}


class NewBudget(BudgetBody):
    confirm: Annotated[
        bool, Meta(description="Set it even if a limit is already exceeded, which pauses or stops agents at once.")
    ] = False


# --- queries -----------------------------------------------------------------------------------------------------------


class LinesQuery(Struct):
    lines: Annotated[int, Meta(ge=1, le=10_000)] = 200


class PageQuery(Struct):
    limit: Limit = 100


class ProposalsQuery(Struct):
    state: Annotated[Literal["open", "all"], Meta(description="`all` has those that have ended, too.")] = "open"


class MessagesQuery(Struct, rename={"with_": "with", "from_": "from"}):
    with_: Name | None = None
    from_: Name | None = None
    to: Words | None = None
    topic: Words | None = None
    thread: Words | None = None
    kind: Words | None = None
    search: Words | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Limit = 50
    cursor: Annotated[str, Meta(pattern="^([0-9]{1,19}|msg_0[0-8][0-9A-HJKMNP-TV-Z]{24})$", description=_CURSOR)] | None = None
    between: Annotated[str, Meta(pattern=rf"^{NAME},{NAME}$", description=_BETWEEN)] | None = None
    order: Literal["newest", "oldest"] = "newest"
    receipts: Annotated[Literal["true", "false"], Meta(description="Include how far each message got with each recipient.")] = (
        "false"
    )


class StreamQuery(Struct):
    types: Types | None = None
    since: Moment | None = None
    offset: (
        Annotated[int, Meta(ge=0, le=LARGEST_NUMBER, description="Everything after this `_seq`; 0 means everything.")] | None
    ) = None


class EventsQuery(Struct):
    types: Types | None = None
    agent: Name | None = None
    session: Name | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Limit = 100
    cursor: Annotated[str, Meta(pattern="^[0-9]{1,16}$")] | None = None


class CostsQuery(Struct):
    since: Moment | None = None
    until: Moment | None = None
    agent: Name | None = None
    session: Name | None = None
