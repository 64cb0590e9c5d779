"""Requests as they are reported: bounded and cleaned, their files found, and exact only where they are whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agent_relay.protocol.requests import AgentRequest, PermissionRequest, QuestionRequest
from agent_relay.protocol.states import ClientState
from agent_relay.terminal.doors.door import Resolution
from agent_relay.terminal.files.project_files import ProjectFiles
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import Reporter

ASKED = PermissionRequest("p1", "Run make?", "Bash", "make", options=("Yes", "No"), is_exact=True)


class Daemon:
    state = ClientState.READY

    def __init__(self) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []

    def report(self, kind: str, /, **fields: Any) -> None:
        self.said.append((kind, fields))


def tell(request: AgentRequest, files: ProjectFiles | None = None) -> dict[str, Any]:
    daemon = Daemon()
    Reporter(RelayLink(daemon, lambda: daemon), files).asked(request)  # type: ignore[arg-type, return-value]
    ((kind, fields),) = daemon.said
    assert kind == f"{request.kind}.requested"
    return fields


def test_what_is_whole_is_told_as_it_is() -> None:
    assert tell(ASKED) == {
        "requestId": "p1", "description": "Run make?", "tool": "Bash", "command": "make", "filePath": None, "realPath": None,
        "projectRoot": None, "options": ("Yes", "No"), "widerOptions": (), "canAllow": True, "isExact": True,
    }  # fmt: skip
    assert tell(QuestionRequest("q1", "Which?\x1b", ("a\nb",))) == {
        "questionId": "q1", "question": "Which?\ufffd", "options": ("a b",), "defaultAnswer": None, "canAllow": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        replace(ASKED, command="make\x1b"),
        replace(ASKED, command="x" * 20_001),
        replace(ASKED, tool="Bash\n"),
        replace(ASKED, tool="x" * 201),
        replace(ASKED, tool="Read", command=None, file_path="a\x07.txt"),
        replace(ASKED, tool="Glob", command="*\x07", file_path="src"),
        replace(ASKED, is_exact=False),
    ],
)
def test_what_is_not_whole_is_not_exact(other: PermissionRequest) -> None:
    """Else a rule would approve a part of what is run."""
    fields = tell(other)
    assert fields["isExact"] is False
    assert (len(fields["tool"]) <= 200, len(fields["command"] or "") <= 20_000) == (True, True)
    assert "\x07" not in f"{fields['filePath']}{fields['command']}"


def test_files_are_looked_for_where_they_are_told_whole(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    files = ProjectFiles(str(tmp_path), str(tmp_path))
    real = str(tmp_path.resolve())
    reads = replace(ASKED, tool="Read", command=None, file_path="a.txt")
    found = tell(reads, files)
    assert (found["filePath"], found["realPath"], found["projectRoot"]) == ("a.txt", f"{real}/a.txt", real)
    lists = tell(replace(reads, tool="Glob", command="*.txt", file_path=""), files)
    assert (lists["filePath"], lists["command"], lists["realPath"], lists["isExact"]) == (None, "*.txt", real, True)
    for request in (replace(reads, file_path="a.txt\x1b"), replace(reads, file_path=None, command="a.txt")):
        assert (tell(request, files)["realPath"], tell(request, files)["projectRoot"]) == (None, None)


def test_what_is_open_is_said_again_to_a_new_daemon() -> None:
    daemon = Daemon()
    reporter = Reporter(RelayLink(daemon, lambda: daemon))  # type: ignore[arg-type, return-value]
    reporter.asked(ASKED)
    reporter.asked(QuestionRequest("q1", "Which?"))
    reporter.resolved("q1", Resolution.ANSWERED, "person")
    reporter.resolved("q1", Resolution.ANSWERED, "person")
    daemon.said.clear()
    reporter.joined()
    assert [fields["requestId"] for kind, fields in daemon.said if kind.endswith(".requested")] == ["p1"]
