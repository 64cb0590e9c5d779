"""Requests of agents to people: permissions and questions."""

from __future__ import annotations

from agent_relay.protocol.requests import OpenRequest, PermissionRequest, QuestionRequest
from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import AnswerBody, Approval, Decision
from agent_relay.transports.http.route import Call, Handler, Route
from agent_relay.transports.http.routes.agents import find_name
from agent_relay.transports.http.views import Done, PermissionList, PermissionView, QuestionList, QuestionView, build


async def permissions(api: Api, call: Call) -> PermissionList:
    """Of the agent that the path names, or of all."""
    found = api.service.requests(call.names.get("name"))
    return PermissionList([_show_permission(each, each.request) for each in found if isinstance(each.request, PermissionRequest)])


async def questions(api: Api, call: Call) -> QuestionList:
    found = api.service.requests(call.names.get("name"))
    return QuestionList([_show_question(each, each.request) for each in found if isinstance(each.request, QuestionRequest)])


def _show_permission(found: OpenRequest, request: PermissionRequest) -> PermissionView:
    return build(
        PermissionView, request, request_id=request.id, agent_name=found.agent, risk_level=found.risk,
        requested_at=found.asked_at, options=list(request.options), wider_options=list(request.wider_options),
    )  # fmt: skip


def _show_question(found: OpenRequest, request: QuestionRequest) -> QuestionView:
    return build(
        QuestionView, request, question_id=request.id, agent_name=found.agent, requested_at=found.asked_at,
        options=list(request.options),
    )  # fmt: skip


def _decider(command: str) -> Handler:
    async def decide(api: Api, call: Call) -> Done:
        await api.service.answer(
            find_name(api, call.names["name"]), call.names["requestId"], command, call.body.reason or "", call.caller,
            getattr(call.body, "option", None),
        )  # fmt: skip
        return Done()

    return decide


async def answer(api: Api, call: Call) -> Done:
    name = find_name(api, call.names["name"])
    await api.service.answer(name, call.names["questionId"], "answer", call.body.answer, call.caller)
    return Done()


_TAG = "permissions"
_ONE = "/api/v1/agents/{name}"
_FAILS = (404, 409, 422, 429, 503, 504)
ROUTES = (
    Route("GET", "/api/v1/permissions", permissions, "All permissions waiting for a person.", _TAG, PermissionList),
    Route("GET", "/api/v1/questions", questions, "All questions waiting for a person.", _TAG, QuestionList),
    Route("GET", _ONE + "/permissions", permissions, "Those of one agent.", _TAG, PermissionList, errors=(404,)),
    Route("GET", _ONE + "/questions", questions, "Those of one agent.", _TAG, QuestionList, errors=(404,)),
    *(
        Route(
            "POST", f"{_ONE}/permissions/{{requestId}}/{command}", _decider(command), summary, _TAG, Done,
            body=body, needs_body=False, errors=_FAILS, right="approve", takes_key=True,
        )
        for command, summary, body in (("approve", "Approve a request.", Approval), ("deny", "Deny a request.", Decision))
    ),
    Route(
        "POST", _ONE + "/questions/{questionId}/answer", answer, "Answer a question.", _TAG, Done, body=AnswerBody, errors=_FAILS,
        right="approve", takes_key=True,
    ),
)  # fmt: skip
