"""Requests of agents to people: open permissions and questions, the people who answer them, and the fate of the answers.

A request is open from the wrapper's report of it until its report of the end. An answer is passed to the wrapper, which
carries it out or says why not; only then whoever answered is told. The first answer counts: while one is on its way no
other is taken. The person at the terminal may always be faster.

A wrapper that loses its connection says again what is open when it is back. Until then its requests are kept, but neither
shown nor answered. They are in memory alone: a new daemon hears of them from the wrappers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from agent_relay.core.context import Context
from agent_relay.core.policy import Policy, Ruling
from agent_relay.protocol.errors import ErrorCode, RelayError
from agent_relay.protocol.names import show
from agent_relay.protocol.reports import PermissionResolvedReport, QuestionResolvedReport, RequestFailedReport, Resolved
from agent_relay.protocol.requests import AgentRequest, OpenRequest, PermissionRequest, QuestionRequest
from agent_relay.protocol.short_ids import AMBIGUOUS, SHORT_ID

if TYPE_CHECKING:
    from agent_relay.core.agents import Agent

ANSWER_MS = 30_000  # for a wrapper to carry an answer out
FORGET_MS = 60_000  # after its wrapper was lost a request is gone; wrappers come back sooner, or not at all
MAX_OPEN = 50  # of one agent; more than that nobody answers
MAX_OVER = 1_000  # of all agents: of so many that are over it is known how they ended, for those who answer late
SHOWN_TEXT = 2_000  # characters of a text in a list; lists of many must fit into one frame
BY_POLICY, BY_HUMAN = "policy", "human"
BY_NOBODY = "abandoned"  # it was given up: its turn ended, or its wrapper is gone
BY_DOOR = "door"  # a wrapper says so of an answer that it gave for us
_GONE = "gone"  # nobody knows how it ended
COMMANDS = frozenset({"approve", "deny", "answer"})

Tell: TypeAlias = Callable[[RelayError | None], None]  # None: it was carried out
OnChange: TypeAlias = Callable[["PendingRequest", str, str, str], None]  # what became of it, by whom, and the answer's words


class _Answer(Struct):
    command: str
    text: str
    by: str
    tell: Tell
    deadline: int
    is_time_out: bool = False
    option: str = ""


class PendingRequest(Struct, eq=False):
    """A request that is open, and what becomes of it."""

    agent: Agent
    asked: AgentRequest
    risk: str
    asked_at: int  # wall clock
    expires: int | None = None  # steady clock: when it is denied by itself
    answer: _Answer | None = None
    lost: int | None = None  # steady clock: since when its wrapper is away, or has not said it again

    @property
    def id(self) -> str:
        return self.asked.id

    @property
    def is_permission(self) -> bool:
        return isinstance(self.asked, PermissionRequest)

    def describe(self) -> OpenRequest:
        """For a list: long texts are shortened."""
        shown = _shorten(self.asked)
        return OpenRequest(self.agent.name, shown, self.asked_at, self.risk, is_shortened=shown != self.asked)


class Requests:
    def __init__(self, context: Context, policy_of: Callable[[str], Policy], on_change: OnChange) -> None:
        self._context = context
        self._policy_of = policy_of  # by host: an agent is judged by the rules of its own
        self._on_change = on_change
        self._open: dict[tuple[str, str], PendingRequest] = {}  # (agent's key, id)
        self._over: dict[tuple[str, str], str] = {}  # how it ended; the oldest first

    # --- what wrappers say ----------------------------------------------------------------------------------------------

    def asked(self, agent: Agent, asked: AgentRequest) -> None:
        key = (agent.key, asked.id)
        known = self._open.get(key)
        if known is not None and known.asked == asked:
            if known.lost is not None:  # said again, after a reconnection
                known.lost = None
                self._decide(known)
            return
        if known is not None:  # who read the old words must not decide on the new ones
            self._end(known, _GONE, BY_NOBODY, _changed(known, ""))
        if sum(1 for owner, _ in self._open if owner == agent.key) >= MAX_OPEN:
            raise RelayError(ErrorCode.QUEUE_FULL, f"{agent.name} has {MAX_OPEN} open requests.", retry_after_ms=ANSWER_MS)
        self._over.pop(key, None)
        request = self._open[key] = PendingRequest(agent, asked, "", self._context.wall_ms)
        if isinstance(asked, PermissionRequest):
            policy = self._policy_of(agent.traits.host)
            request.risk = policy.judge(asked).risk
            if policy.timeout_ms is not None:
                request.expires = self._context.steady_ms + policy.timeout_ms
        self._on_change(request, "requested", "", "")
        self._decide(request)

    def _decide(self, request: PendingRequest) -> None:
        """Decides what the policy is sure about, which needs nobody."""
        asked = request.asked
        if isinstance(asked, QuestionRequest):
            return
        verdict = self._policy_of(request.agent.traits.host).judge(asked)
        if verdict.decision is Ruling.DENY or (verdict.decision is Ruling.APPROVE and asked.can_allow):
            command = "approve" if verdict.decision is Ruling.APPROVE else "deny"
            self._pass_on(request, command, verdict.reason, BY_POLICY, _nobody)

    def resolved(self, agent: Agent, report: Resolved) -> None:
        id_ = report.question_id if isinstance(report, QuestionResolvedReport) else report.request_id
        key = (agent.key, id_)
        if key not in self._open and self._over.get(key, _GONE) != _GONE:
            return  # it was told, and is said again
        request = self._open.get(key) or _before_our_time(agent, report, self._context.wall_ms)
        outcome = report.resolution if isinstance(report, PermissionResolvedReport) else "answered"
        words = report.answer if isinstance(report, QuestionResolvedReport) else ""
        answer = request.answer
        if answer is None or report.resolved_by != BY_DOOR:
            self._end(request, outcome, BY_HUMAN if report.resolved_by else BY_NOBODY, _too_late(request), words)
        else:
            outcome = "timeout" if answer.is_time_out and outcome == "denied" else outcome
            said = ". ".join(filter(None, (answer.option, answer.text)))
            self._end(request, outcome, answer.by, None, words or said)

    def _end(self, request: PendingRequest, outcome: str, by: str, error: RelayError | None, words: str = "") -> None:
        key = (request.agent.key, request.id)
        self._open.pop(key, None)
        self._over.pop(key, None)
        self._over[key] = f"{outcome} by {by}" if by and outcome != _GONE else outcome
        if len(self._over) > MAX_OVER:
            del self._over[next(iter(self._over))]
        answer, request.answer = request.answer, None
        self._on_change(request, outcome, by, words)
        if answer is not None:
            answer.tell(error)

    def failed(self, agent: Agent, report: RequestFailedReport) -> None:
        """It stays open, if it is: the wrapper says when it is not."""
        request = self._open.get((agent.key, report.request_id))
        if request is not None and request.answer is not None:
            answer, request.answer = request.answer, None
            answer.tell(_changed(request, report.reason) if report.changed else _not_done(request, report.reason))

    def disconnected(self, agent: Agent) -> None:
        for request in [request for request in self._open.values() if request.agent is agent]:
            request.lost = self._context.steady_ms
            if request.answer is not None:
                answer, request.answer = request.answer, None
                answer.tell(RelayError(ErrorCode.AGENT_OFFLINE, f"{agent.name} is no longer connected.", name=agent.name))

    # --- what people say ------------------------------------------------------------------------------------------------

    def _whole_id(self, agent: Agent, id_: str) -> str:
        """Of a request of this agent that begins so, as short ids do. Raises RelayError where several do."""
        mine = [known for owner, known in (*self._open, *self._over) if owner == agent.key]
        found = [known for known in mine if known.startswith(id_)] if len(id_) >= SHORT_ID and id_ not in mine else []
        if len(found) > 1:
            raise RelayError(ErrorCode.INVALID_FORMAT, AMBIGUOUS, field="payload.id", ids=found)
        return found[0] if found else id_

    def answer(
        self, agent: Agent, id_: str, command: str, text: str, by: str, tell: Tell, *, option: str = ""
    ) -> None:  # fmt: skip
        """Raises RelayError where there is nothing to answer; else `tell` is called once, later. `option`: to approve by that."""
        id_ = self._whole_id(agent, id_)
        key = (agent.key, id_)
        request = self._open.get(key)
        if request is None and key in self._over:
            raise _conflict(f"It is already closed ({self._over[key]}).", id_, "already_answered")
        if request is None or request.lost is not None:
            raise RelayError(ErrorCode.ROUTE_NOT_FOUND, f"{agent.name} has no open request {show(id_)}.", id=id_)
        if (command == "answer") is request.is_permission:
            verb = "approved or denied" if request.is_permission else "answered"
            raise RelayError(ErrorCode.INVALID_FORMAT, f"This request is {verb}.", field="payload.command")
        if request.answer is not None:
            raise _conflict("Somebody else is answering it.", id_, "being_answered")
        if option and (command != "approve" or option not in _wider_options(request.asked)):
            raise _conflict(f"Its dialog has no such option ({show(option)}).", id_, "no_such_option")
        if command == "approve" and not option and not request.asked.can_allow:
            raise _conflict(f"This can only be approved at {agent.name}'s own terminal; it can be denied here.", id_, "deny_only")
        if command == "answer" and not request.asked.can_allow:
            raise _conflict(f"This can only be answered at {agent.name}'s own terminal.", id_, "deny_only")
        self._pass_on(request, command, text, by, tell, option=option)

    def _pass_on(
        self, request: PendingRequest, command: str, text: str, by: str, tell: Tell, *, is_time_out: bool = False,
        option: str = "",
    ) -> None:  # fmt: skip
        holder = request.agent.peer
        if holder is None or not holder.active:
            tell(RelayError(ErrorCode.AGENT_OFFLINE, f"{request.agent.name} is not connected.", name=request.agent.name))
            return
        deadline = self._context.steady_ms + ANSWER_MS
        request.answer = _Answer(
            command=command, text=text, by=by, tell=tell, deadline=deadline, is_time_out=is_time_out, option=option
        )  # fmt: skip
        said = {"command": command, "id": request.id, "text": text, "by": by}
        holder.say("CONTROL", said | {"option": option} if option else said)

    # --- the rest -------------------------------------------------------------------------------------------------------

    def clock_says(self, now: int) -> None:
        for request in list(self._open.values()):
            answer = request.answer
            if request.lost is not None:
                if now >= request.lost + FORGET_MS:
                    self._end(request, _GONE, BY_NOBODY, None)
            elif answer is not None:
                if now >= answer.deadline:
                    request.answer = None
                    answer.tell(
                        RelayError(ErrorCode.DELIVERY_TIMEOUT, f"{request.agent.name} did not report what became of the answer.")
                    )
            elif request.expires is not None and now >= request.expires:
                request.expires = now + ANSWER_MS  # what could not be denied is denied again
                self._pass_on(request, "deny", "Nobody decided in time.", BY_POLICY, _nobody, is_time_out=True)

    def of(self, agent: Agent) -> list[OpenRequest]:
        return [request.describe() for request in self.all() if request.agent is agent]

    def all(self) -> list[PendingRequest]:
        """Those that can be answered now."""
        return [request for request in self._open.values() if request.lost is None]


def _wider_options(asked: AgentRequest) -> tuple[str, ...]:
    return asked.wider_options if isinstance(asked, PermissionRequest) else ()


def _shorten(asked: AgentRequest) -> AgentRequest:
    if isinstance(asked, QuestionRequest):
        return replace(asked, question=asked.question[:SHOWN_TEXT])
    command, file_path = (None if text is None else text[:SHOWN_TEXT] for text in (asked.command, asked.file_path))
    return replace(asked, command=command, file_path=file_path, description=asked.description[:SHOWN_TEXT])


def _before_our_time(agent: Agent, report: Resolved, wall_ms: int) -> PendingRequest:
    """A request from before this daemon was started, which has ended since."""
    if isinstance(report, QuestionResolvedReport):
        return PendingRequest(agent, QuestionRequest(report.question_id, ""), "", wall_ms)
    return PendingRequest(agent, PermissionRequest(report.request_id, ""), "", wall_ms)


def _nobody(error: RelayError | None) -> None:
    """A policy is not told what came of its decision; `on_change` is."""
    del error


def _too_late(request: PendingRequest) -> RelayError:
    return _conflict("Somebody at the terminal answered first.", request.id, "already_answered")


def _changed(request: PendingRequest, reason: str) -> RelayError:
    return _conflict(reason or "The dialog is no longer the one you answered.", request.id, "changed")


def _not_done(request: PendingRequest, reason: str) -> RelayError:
    return _conflict(reason or "The answer could not be carried out.", request.id, "not_done")


def _conflict(sentence: str, id_: str, reason: str) -> RelayError:
    return RelayError(ErrorCode.PERMISSION_DENIED, sentence, reason=reason, id=id_)
