"""Requests on the wire: as wrappers report them, and as AGENTS lists them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agent_relay.protocol.errors import RelayError
from agent_relay.protocol.payloads import AgentEventPayload
from agent_relay.protocol.reports import read_report
from agent_relay.protocol.requests import AgentRequest, OpenRequest, PermissionRequest, QuestionRequest, decode_open, encode_open

PERMISSION = PermissionRequest(
    "p1", "Run make?", "Bash", "make", "a.txt", "/srv/a.txt", "/srv", ("Yes", "No"), ("Yes, always",),
    can_allow=False, is_exact=True,
)  # fmt: skip
QUESTION = QuestionRequest("q1", "Which colour?", ("red", "blue"), "red", can_allow=False)


@pytest.mark.parametrize(
    ("request_", "fields"),
    [
        (
            PERMISSION,
            {
                "requestId": "p1", "description": "Run make?", "tool": "Bash", "command": "make", "filePath": "a.txt",
                "realPath": "/srv/a.txt", "projectRoot": "/srv", "options": ["Yes", "No"],
                "widerOptions": ["Yes, always"], "canAllow": False, "isExact": True,
            },
        ),
        (
            QUESTION,
            {
                "questionId": "q1", "question": "Which colour?", "options": ["red", "blue"], "defaultAnswer": "red",
                "canAllow": False,
            },
        ),
    ],
)  # fmt: skip
def test_a_report_is_the_struct_itself(request_: AgentRequest, fields: dict[str, Any]) -> None:
    assert msgspec.json.decode(msgspec.json.encode(request_)) == fields
    assert read_report(AgentEventPayload(f"{request_.kind}.requested", fields)) == request_


def test_what_a_wrapper_leaves_out_is_not_exact_and_what_it_adds_is_ignored() -> None:
    said = AgentEventPayload("permission.requested", {"requestId": "p1", "description": "?", "later": 1})
    assert read_report(said) == PermissionRequest("p1", "?", is_exact=False)
    assert read_report(AgentEventPayload("question.requested", {"questionId": "q", "question": "?"})) == QuestionRequest("q", "?")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"requestId": "", "description": "?"}, "requestId"),
        ({"description": "?"}, ""),
        ({"requestId": "p", "description": "x" * 20_001}, "description"),
        ({"requestId": "p", "description": "?", "options": ["x" * 201]}, "options"),
    ],
)
def test_the_field_that_is_wrong_is_named_as_on_the_wire(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(RelayError) as wrong:
        read_report(AgentEventPayload("permission.requested", fields))
    assert str(wrong.value.details.get("field", "")).startswith(f"payload.fields{'.' if field else ''}{field}")


def test_the_subject_is_the_file_or_else_the_command() -> None:
    assert (PERMISSION.subject, PermissionRequest("p", "?", command="ls").subject) == ("a.txt", "ls")
    assert PermissionRequest("p", "?", file_path="").subject == ""


@pytest.mark.parametrize("request_", [PERMISSION, QUESTION, PermissionRequest("p", ""), QuestionRequest("q", "")])
def test_an_open_one_is_read_as_it_is_listed(request_: AgentRequest) -> None:
    """But for what only the daemon's rules need."""
    risk = "high" if request_.kind == "permission" else ""
    said = msgspec.json.decode(msgspec.json.encode(encode_open(OpenRequest("Bob", request_, 7, risk, is_shortened=True))))
    found = decode_open(said)
    assert (found.agent, found.asked_at, found.risk, found.is_shortened) == ("Bob", 7, risk, True)
    assert found.request.kind == request_.kind
    assert msgspec.json.decode(msgspec.json.encode(encode_open(found))) == said


def test_an_older_daemon_may_say_less() -> None:
    found = decode_open({"kind": "question", "id": "q1", "agent": "Bob"})
    assert found == OpenRequest("Bob", QuestionRequest("q1", ""), 0)
