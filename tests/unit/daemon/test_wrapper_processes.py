"""What a wrapper is started with, and what is kept for the next daemon."""

from __future__ import annotations

import json
import os
import queue
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent_relay.daemon.config import load_config
from agent_relay.daemon.directories import make_private_directory
from agent_relay.daemon.wrapper_processes import SESSIONS_FILE, WrapperProcesses, find_folder
from agent_relay.ports.agents import SessionRow
from agent_relay.protocol.errors import RelayError
from tests.unit.test_git_checkouts import add_worktree, make_repository

DEADLINE_S = 60.0


class Heard:
    """`ports.AgentListener`."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []

    def launched(self, session_id: str, pid: int, pid_started: str) -> None:
        self.said.append(("launched", session_id, pid > 0, pid_started != ""))

    def running(self, session_id: str) -> None:
        self.said.append(("running", session_id))

    def failed(self, session_id: str, sentence: str) -> None:
        self.said.append(("failed", session_id, sentence))

    def ended(self, session_id: str, exit_code: int | None) -> None:
        self.said.append(("ended", session_id, exit_code))


class Scene:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        state = folder / "state"
        make_private_directory(str(state))
        self.config = load_config(
            {}, {}, project_root=str(self.root), home=str(folder), state_dir=str(state), socket=str(state / "relay.sock")
        )  # fmt: skip
        self.posted: queue.Queue[Callable[[], None]] = queue.Queue()
        self.heard = Heard()
        self.wrappers = WrapperProcesses(self.config, self.posted.put, self.heard)

    def wait(self, count: int) -> list[tuple[Any, ...]]:
        while len(self.heard.said) < count:
            self.posted.get(timeout=DEADLINE_S)()
        return self.heard.said


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def row(**more: Any) -> SessionRow:
    facts: dict[str, Any] = {
        "id": "ses_1",
        "name": "Bob",
        "cli": sys.executable,
        "cwd": "",
        "backend": "pty",
        "spawned_by": "x",
        "started_at": 1,
    }
    return SessionRow(**facts | more)


def test_what_was_saved_is_found_again_and_nobody_else_reads_it(scene: Scene) -> None:
    assert scene.wrappers.load() == []
    rows = [row(task="secret"), row(id="ses_2", pid=7, pid_started="9")]
    scene.wrappers.save(rows)
    path = Path(scene.config.file(SESSIONS_FILE))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert scene.wrappers.load() == rows


@pytest.mark.parametrize("content", [b"", b"{", b'[{"id": 1}]', b"\xff", b'[{"id": "\xff"}]'])
def test_a_file_that_cannot_be_read_stops_nobody(scene: Scene, content: bytes) -> None:
    Path(scene.config.file(SESSIONS_FILE)).write_bytes(content)
    assert scene.wrappers.load() == []


def test_what_is_not_there_is_named(scene: Scene) -> None:
    with pytest.raises(RelayError, match="'no-such-cli' is not installed") as error:
        scene.wrappers.start(row(cli="no-such-cli"), {})
    assert error.value.details["reason"] == "cli_not_found"
    with pytest.raises(RelayError, match="does not exist") as error:
        scene.wrappers.start(row(cwd="nowhere"), {})
    assert error.value.details["reason"] == "cwd_not_found"


def be_seen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An interpreter in place of ours, and the file where it writes down what it was started with."""
    seen, program = folder / "seen.json", folder / "python"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        f"json.dump([sys.argv[1:], dict(os.environ), os.getcwd(), os.getsid(0) == os.getpid()], open({str(seen)!r}, 'w'))\n"
        "os.write(int(sys.argv[6].partition('=')[2]), b'{\"name\": \"Bob\"}')\nsys.exit(3)\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    return seen


def test_a_wrapper_is_given_what_it_needs_and_nothing_of_another_agent(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = be_seen(tmp_path, monkeypatch)
    others = {"AGENT_RELAY_NAME", "AGENT_RELAY_TOKEN", "AGENT_RELAY_OUTBOX", "AGENT_RELAY_SOCKET", "AGENT_RELAY_API_TOKEN"}
    for name in others:
        monkeypatch.setenv(name, "another's")
    session = row(cli="/bin/cat", cwd=".")
    scene.wrappers.start(session, {"LANG": "C"})
    assert scene.wait(3) == [("launched", "ses_1", True, True), ("running", "ses_1"), ("ended", "ses_1", 3)]
    words, environ, cwd, leads_a_session = json.loads(seen.read_text())
    assert words[:5] == ["-E", "-P", "-m", "agent_relay", "wrap"]
    assert words[-2:] == ["--", "/bin/cat"]
    assert {"--name=Bob", "--session=ses_1", "--backend=pty", f"--socket={scene.config.socket}"} <= set(words)
    assert (cwd, leads_a_session, session.cwd) == (os.path.realpath(scene.root), True, str(scene.root))
    assert (environ["LANG"], environ["AGENT_RELAY_PROJECT"]) == ("C", str(scene.root))
    assert environ["AGENT_RELAY_DOORS"] == scene.config.doors == "probe"
    assert not others & environ.keys()


@pytest.mark.parametrize(
    ("cli", "mode", "arguments", "variable"),
    [
        ("claude", "plan", ["--permission-mode", "plan"], None),
        ("codex", "read-only", ["--sandbox", "read-only", "--ask-for-approval", "on-request"], None),
        ("goose", "approve", [], "approve"),
        ("goose", None, [], None),
    ],
)
def test_a_permission_mode_is_said_to_the_cli(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: str, mode: str, arguments: list[str], variable: str | None
) -> None:
    seen = be_seen(tmp_path, monkeypatch)
    (tmp_path / cli).symlink_to("/bin/cat")
    scene.wrappers.start(row(cli=str(tmp_path / cli), permission_mode=mode), {})
    scene.wait(3)
    words, environ, *_ = json.loads(seen.read_text())
    assert words[words.index("--") + 1 :] == [str(tmp_path / cli), *arguments]
    assert environ.get("GOOSE_MODE") == variable


def test_a_wrapper_that_dies_without_a_word_never_ran(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    scene.wrappers.start(row(cli="/bin/cat"), {})
    assert scene.wait(2)[1][:2] == ("failed", "ses_1")
    monkeypatch.setattr(sys, "executable", "/no/such/interpreter")
    scene.wrappers.start(row(id="ses_2", cli="/bin/cat"), {})
    assert scene.wait(3)[2] == ("failed", "ses_2", "No such file or directory.")


def test_one_that_ended_meanwhile_says_how_in_its_file(scene: Scene) -> None:
    ends = Path(scene.config.file("sessions"))
    make_private_directory(str(ends))
    (ends / "ses_1.end").write_text("5")
    (ends / "ses_2.end").write_text("nonsense")
    for id_ in ("ses_1", "ses_2", "ses_3"):
        scene.wrappers.adopt(row(id=id_, pid=2**22 + 1, pid_started="1"))
    assert sorted(scene.wait(3)) == [("ended", "ses_1", 5), ("ended", "ses_2", None), ("ended", "ses_3", None)]
    assert list(ends.iterdir()) == []


def test_agents_are_started_in_the_project_alone(tmp_path: Path) -> None:
    project, other = tmp_path / "project", tmp_path / "other"
    for folder in (project / "inside", other / "deep", tmp_path / "project-not"):
        folder.mkdir(parents=True)
    (project / "way-out").symlink_to(other)
    (project / "way-in").symlink_to(project / "inside")
    (tmp_path / "to-other").symlink_to(other)
    assert find_folder("", str(project), ()) == str(project)
    assert find_folder("way-in", str(project), ()) == str(project / "inside")
    assert find_folder(str(project / "inside"), str(project), ()) == str(project / "inside")
    for outside in (
        "..", "way-out", "way-out/deep", "inside/../..", str(other), str(tmp_path / "project-not"), "/", "/etc", "a\0b", "\ud800"
    ):  # fmt: skip
        with pytest.raises(RelayError, match="is outside the project") as error:
            find_folder(outside, str(project), ())
        assert (error.value.details["reason"], error.value.details["setting"]) == ("cwd_not_allowed", "spawn_roots")
    assert find_folder("way-out/deep", str(project), (str(other),)) == str(other / "deep")
    assert find_folder(str(tmp_path / "to-other"), str(project), (str(other),)) == str(other)
    assert find_folder("/", str(project), ("/",)) == "/"


def test_agents_are_started_in_every_worktree_of_the_repository_and_in_no_other(tmp_path: Path) -> None:
    project = make_repository(tmp_path / "project")
    tree = add_worktree(project / ".git", tmp_path / "tree")
    (tree / "backend").mkdir()
    other = make_repository(tmp_path / "other")
    forged = tmp_path / "forged"
    forged.mkdir()
    (forged / ".git").write_text((tree / ".git").read_text())
    assert find_folder(str(tree / "backend"), str(project), ()) == str(tree / "backend")
    for outside in (other, forged, tmp_path):
        with pytest.raises(RelayError, match="is outside the project"):
            find_folder(str(outside), str(project), ())
