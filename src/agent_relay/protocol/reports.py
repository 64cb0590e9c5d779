"""Reports in a client's AGENT_EVENT, type by type, and the form of evidence in a trail.

`agent.state` says what an agent is doing, `message.received`, `message.handed` and `message.read` how far a message has come
inside it, `message.waits` why it comes no further, `agent.input` that a person gave it something new to do, `agent.process`
which program it is.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from agent_relay.protocol.decode import convert_fields
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.holds import Hold, HoldReason
from agent_relay.protocol.names import show
from agent_relay.protocol.payloads import AgentEventPayload, Door, Evidence, Identifier, Note, Positive, Text
from agent_relay.protocol.requests import AgentRequest, PermissionRequest, QuestionRequest

Word = Annotated[str, Meta(max_length=40)]


class UnusedDoor(Struct, frozen=True):
    """A better way into the program than the one in use: why it is not used, and what a person can do about it."""

    door: Door
    reason: Note
    mend: Annotated[str, Meta(max_length=500)] = ""  # empty: nothing


class StateReport(Struct, frozen=True, rename="camel"):
    state: Literal["starting", "idle", "working", "waiting", "offline"]
    waiting_for: Note | None = None  # what a `waiting` agent waits for: a permission, an answer
    door: Door | None = None  # the way messages go in now
    door_note: Note | None = None  # why it is not a better one
    paused: bool = False
    paused_by: Note | None = None
    keyboard: bool = False  # it is paused only while somebody has its keyboard on the page
    hold: Word | None = None  # why nothing can be typed for it now: a word of protocol.holds …
    hold_detail: Note | None = None  # … and what was seen
    unused_doors: Annotated[tuple[UnusedDoor, ...], Meta(max_length=8)] = ()  # the better ones, the best first


class ReceivedReport(Struct, frozen=True, rename="camel"):
    message_id: Identifier


class HandedReport(Struct, frozen=True, rename="camel"):
    """The program has it, through a door; that the agent has read it is another matter."""

    message_id: Identifier
    door: Door
    evidence: Evidence | None = None


class WaitsReport(Struct, frozen=True, rename="camel"):
    """It cannot be given to the agent now, and somebody should look why. It is not lost: it waits. `reason` is a word of
    protocol.holds; wrappers of older versions say a sentence."""

    message_id: Identifier
    reason: Note
    detail: Note = ""

    @property
    def hold(self) -> Hold:
        return Hold(self.reason, self.detail) if " " not in self.reason else Hold(HoldReason.OTHER.value, self.reason)


class ReadReport(Struct, frozen=True, rename="camel"):
    message_id: Identifier
    evidence: Evidence | None = None


class InputReport(Struct, frozen=True):
    pass


class ProcessReport(Struct, frozen=True):
    """A wrapper: what it starts is the agent's, and this is the program. Callers from inside are known by it."""

    pid: Positive | None = None  # None: not started yet


class PermissionResolvedReport(Struct, frozen=True, rename="camel"):
    """`gone`: the dialog is closed, and nobody can say how."""

    request_id: Identifier
    resolution: Literal["approved", "denied", "timeout", "gone"]
    resolved_by: Note = "human"


class QuestionResolvedReport(Struct, frozen=True, rename="camel"):
    question_id: Identifier
    answer: Text = ""
    resolved_by: Note = "human"


class RequestFailedReport(Struct, frozen=True, rename="camel"):
    """An answer of the daemon that could not be carried out. `changed`: since the dialog is another one, or gone."""

    request_id: Identifier
    reason: Note = ""
    changed: bool = False


Resolved = PermissionResolvedReport | QuestionResolvedReport
OfMessages = ReceivedReport | WaitsReport | HandedReport | ReadReport
Report = StateReport | OfMessages | InputReport | ProcessReport | AgentRequest | Resolved | RequestFailedReport
REPORTS: dict[str, type[Report]] = {
    "agent.state": StateReport,
    "message.received": ReceivedReport,
    "message.waits": WaitsReport,
    "message.handed": HandedReport,
    "message.read": ReadReport,
    "agent.input": InputReport,
    "agent.process": ProcessReport,
    "permission.requested": PermissionRequest,
    "permission.resolved": PermissionResolvedReport,
    "question.requested": QuestionRequest,
    "question.resolved": QuestionResolvedReport,
    "request.failed": RequestFailedReport,
}


def read_report(event: AgentEventPayload) -> Report:
    """Raises RelayError: FEATURE_UNSUPPORTED for another type, INVALID_FORMAT with the field that is wrong."""
    kind = REPORTS.get(event.type)
    if kind is None:
        error = RelayError(ErrorCode.FEATURE_UNSUPPORTED, f"Unknown report type {show(event.type, 80)}.")
        error.details = {"type": event.type[:128]}
        raise error
    return convert_fields(event.fields, kind, "payload.fields")


# --- evidence in a trail ------------------------------------------------------------------------------------------------


def encode_seen(door: str | None, evidence: str | None) -> str:
    """The detail of a trail's step; empty where nothing was said."""
    seen = {name: text for name, text in (("door", door), ("evidence", evidence)) if text is not None}
    return msgspec.json.encode(seen).decode() if seen else ""


def read_seen(detail: str) -> dict[str, str]:
    """`door` and `evidence` of such a detail, each where it was said."""
    try:
        return msgspec.json.decode(detail, type=dict[str, str])
    except msgspec.DecodeError:
        return {}


def describe_seen(seen: dict[str, Any]) -> str:
    """The same for people: "door typing, seen: composer"."""
    parts = [f"door {seen['door']}"] if seen.get("door") else []
    return ", ".join([*parts, f"seen: {seen['evidence']}"] if seen.get("evidence") else parts)
