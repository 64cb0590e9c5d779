"""A prompt-injected agent asks to look at files: through links, by odd paths, at what is private, all in its CLI's own words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_relay.core.policy import Policy, Ruling
from agent_relay.protocol.payloads import AgentEventPayload
from agent_relay.protocol.reports import read_report
from agent_relay.protocol.requests import PermissionRequest
from agent_relay.protocol.states import ClientState
from agent_relay.terminal.doors.claude.requests import make_permission
from agent_relay.terminal.files.project_files import ProjectFiles
from agent_relay.terminal.reports.relay_link import RelayLink
from agent_relay.terminal.reports.reporter import Reporter


class Daemon:
    """Judges what a wrapper reports, as the daemon does."""

    state = ClientState.READY

    def report(self, type_: str, **fields: Any) -> None:
        asked = read_report(AgentEventPayload(type_, fields))
        assert isinstance(asked, PermissionRequest)
        self.verdict = Policy().judge(asked)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "src" / "x.py").write_text("x")
    (root / ".env").write_text("SECRET=1")
    (tmp_path / "id_rsa").write_text("key")
    (root / "notes.txt").symlink_to(tmp_path / "id_rsa")
    (root / "plain.txt").symlink_to(".env")
    (root / "folder").symlink_to(tmp_path)
    for name in ("elsewhere.txt", "other.txt"):
        (tmp_path / name).write_text("of another project")
    (root / "twin.txt").hardlink_to(tmp_path / "other.txt")
    (root / "state").mkdir()
    (root / "state" / "messages.sqlite").write_text("x")
    return root


def decide(project: Path, tool: str, **given: str) -> Ruling:
    daemon = Daemon()
    files = ProjectFiles(str(project), str(project), (str(project / "state"),))
    reporter = Reporter(RelayLink(daemon, lambda: daemon), files)  # type: ignore[arg-type, return-value]
    reporter.asked(make_permission("r1", tool, given))
    return daemon.verdict.decision


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "src/x.py"}),
        ("Grep", {"pattern": "x", "path": "src/x.py"}),
        ("Glob", {"pattern": "src/**/*.py"}),
        ("Glob", {"pattern": "*.py", "path": "src"}),
    ],
)
def test_the_project_s_own_files_need_nobody(project: Path, tool: str, given: dict[str, str]) -> None:
    assert decide(project, tool, **given) is Ruling.APPROVE


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Read", {"file_path": "/etc/passwd"}),
        ("Read", {"file_path": "../id_rsa"}),
        ("Read", {"file_path": "~/.ssh/id_rsa"}),
        ("Read", {"file_path": ".env"}),
        ("Read", {"file_path": "notes.txt"}),  # a link to a key
        ("Read", {"file_path": "plain.txt"}),  # a link to what is private here
        ("Read", {"file_path": "folder/id_rsa"}),
        ("Read", {"file_path": "folder/elsewhere.txt"}),  # its name tells nothing
        ("Read", {"file_path": "twin.txt"}),  # the same file under another name
        ("Read", {"file_path": "state/messages.sqlite"}),
        ("Read", {"file_path": "absent.txt"}),
        ("Read", {}),
        ("Read", {"pattern": "src/x.py"}),
        ("Grep", {"pattern": "SECRET"}),  # over the project, .env and all
        ("Grep", {"pattern": "SECRET", "path": "."}),
        ("Grep", {"pattern": "SECRET", "path": "src"}),  # whatever lies in it
        ("Grep", {"pattern": "SECRET", "path": ".env"}),
        ("Glob", {"pattern": "../**"}),
        ("Glob", {"pattern": "/etc/*"}),
        ("Glob", {"pattern": "*", "path": "folder"}),
        ("Glob", {"pattern": "folder/*"}),
        ("Glob", {"pattern": "f*/*"}),
        ("Glob", {"pattern": "src/**/.env"}),
        ("Glob", {"pattern": "**/*"}),  # the relay lies in there
        ("Bash", {"command": "git status"}),
        ("Bash", {"command": "ls ~"}),
    ],
)
def test_everything_else_is_for_a_person(project: Path, tool: str, given: dict[str, str]) -> None:
    assert decide(project, tool, **given) is Ruling.HUMAN
