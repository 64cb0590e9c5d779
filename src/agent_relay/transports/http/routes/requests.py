"""What agents ask people: permissions and questions."""

from __future__ import annotations

from typing import Any

from agent_relay.transports.http.api import Api
from agent_relay.transports.http.bodies import AnswerBody, Decision
from agent_relay.transports.http.route import Call, Handler, Route
from agent_relay.transports.http.routes.agents import find_name
from agent_relay.transports.http.views import Done, PermissionList, PermissionView, QuestionList, QuestionView


def _show_permission(found: dict[str, Any]) -> PermissionView:
    return PermissionView(
        found["id"], found["agent"], found["tool"], found["command"], found["file"], found["description"], found["risk"],
        found["at"], found["options"], found["can_allow"],
    )  # fmt: skip


def _show_question(found: dict[str, Any]) -> QuestionView:
    return QuestionView(found["id"], found["agent"], found["question"], found["options"], found["at"], found["can_allow"])


async def _open_requests(api: Api, call: Call, kind: str) -> list[dict[str, Any]]:
    """Of the agent that the path names, or of all."""
    name = call.names.get("name")
    agents = await api.service.agents() if name is None else [await api.service.agent(name)]
    return [found for agent in agents for found in agent["requests"] if found["kind"] == kind]


async def permissions(api: Api, call: Call) -> PermissionList:
    return PermissionList([_show_permission(found) for found in await _open_requests(api, call, "permission")])


async def questions(api: Api, call: Call) -> QuestionList:
    return QuestionList([_show_question(found) for found in await _open_requests(api, call, "question")])


def _decider(command: str) -> Handler:
    async def decide(api: Api, call: Call) -> Done:
        await api.service.answer(
            await find_name(api, call.names["name"]), call.names["requestId"], command, call.body.reason or "", call.caller
        )
        return Done()

    return decide


async def answer(api: Api, call: Call) -> Done:
    name = await find_name(api, call.names["name"])
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
            body=Decision, needs_body=False, errors=_FAILS, right="approve", takes_key=True,
        )
        for command, summary in (("approve", "Approve a request."), ("deny", "Deny a request."))
    ),
    Route(
        "POST", _ONE + "/questions/{questionId}/answer", answer, "Answer a question.", _TAG, Done, body=AnswerBody, errors=_FAILS,
        right="approve", takes_key=True,
    ),
)  # fmt: skip
