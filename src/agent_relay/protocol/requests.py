"""Requests of agents to people, in the one shape that they have from the door or the screen to the page: permissions, questions.

A wrapper reports one as `permission.requested` or `question.requested`. While it is open, the daemon adds whose it is, since
when, and how much is at stake: so AGENTS lists it (`encode_open`), and so clients read it there (`decode_open`).
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from msgspec import Struct, field

from agent_relay.protocol.payloads import Identifier, Note, Text

PERMISSION, QUESTION = "permission", "question"


class PermissionRequest(Struct, frozen=True, rename="camel"):
    """The program asks a person whether it may do something; a dialog of its own is open as well."""

    kind: ClassVar[str] = PERMISSION

    id: Identifier = field(name="requestId")
    description: Text
    tool: Note = ""
    command: Text | None = None  # of a tool that looks for files, the pattern of their names
    file_path: Text | None = None  # of a tool for files; empty for the working directory
    real_path: Text | None = None  # where the file or folder really is, links followed; without it, not surely known
    project_root: Text | None = None  # the agent's project, links followed as well
    options: tuple[Note, ...] = ()
    wider_options: tuple[Note, ...] = ()  # those that allow more than this once; each is chosen by its whole text
    can_allow: bool = True  # some ways in can only refuse
    is_exact: bool = False  # tool, command and file are the program's own words, whole: what a rule may approve

    @property
    def subject(self) -> str:
        """The command or file that it is about."""
        return self.file_path or self.command or ""


class QuestionRequest(Struct, frozen=True, rename="camel"):
    """The program asks a person something else."""

    kind: ClassVar[str] = QUESTION

    id: Identifier = field(name="questionId")
    question: Text
    options: tuple[Note, ...] = ()
    default_answer: Note | None = None
    can_allow: bool = True  # whether it can be answered from elsewhere at all


AgentRequest: TypeAlias = PermissionRequest | QuestionRequest


class OpenRequest(Struct, frozen=True):
    """One that waits for a person."""

    agent: str
    request: AgentRequest
    asked_at: int  # milliseconds since 1970
    risk: str = ""  # of a permission
    is_shortened: bool = False  # its texts go on


def encode_open(found: OpenRequest) -> dict[str, Any]:
    """As AGENTS lists it."""
    request = found.request
    if isinstance(request, QuestionRequest):
        more: dict[str, Any] = {
            "default_answer": request.default_answer, "can_allow": request.can_allow, "question": request.question,
        }  # fmt: skip
    else:
        more = {
            "tool": request.tool, "risk": found.risk, "can_allow": request.can_allow, "command": request.command,
            "file": request.file_path, "description": request.description,
        }  # fmt: skip
    return {
        "kind": request.kind, "id": request.id, "agent": found.agent, "at": found.asked_at, "options": request.options, **more,
        "shortened": found.is_shortened,
    }  # fmt: skip


def decode_open(said: dict[str, Any]) -> OpenRequest:
    """Of an entry in AGENTS; older daemons say less."""
    id_, options, can_allow = str(said.get("id")), tuple(map(str, said.get("options") or ())), said.get("can_allow") is not False
    request: AgentRequest
    if said.get("kind") == QUESTION:
        request = QuestionRequest(id_, said.get("question") or "", options, said.get("default_answer"), can_allow)
    else:
        request = PermissionRequest(
            id_, said.get("description") or "", said.get("tool") or "", said.get("command"), said.get("file"), options=options,
            can_allow=can_allow,
        )  # fmt: skip
    return OpenRequest(
        str(said.get("agent")), request, int(said.get("at") or 0), said.get("risk") or "", said.get("shortened") is True
    )  # fmt: skip
