"""How Codex is started for its doors: what is added to the user's words, and when nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_relay.terminal.doors.codex import CodexKit
from agent_relay.terminal.doors.codex_queue import CodexQueue
from agent_relay.terminal.doors.codex_server import CodexServer
from agent_relay.terminal.doors.launching import AgentPlace, Prepared, Program
from tests.unit.terminal.doors.heard import Heard

INTRODUCTION = 'Agent Relay: you are Bob, and "quotes" and \\ stay.'


class Words:
    """The three commands that the launcher is given."""

    def __init__(self, prepared: Prepared) -> None:
        path, _log, first, second, *rest = prepared.program.argv[4:]
        self.path = path
        self.server = rest[: int(first)]
        self.shown = rest[int(first) : int(first) + int(second)]
        self.plain = rest[int(first) + int(second) :]


class Desk:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home, self.project, self.team = (folder / name for name in ("home", "project", "team"))
        for made in (self.home, self.project, self.team):
            made.mkdir()
        self.place = AgentPlace("Bob", str(self.team), "0123456789ab")

    def prepare(self, *words: str, introduction: str = INTRODUCTION) -> Prepared:
        return CodexKit().prepare(self.program(*words), self.place, introduction)

    def program(self, *words: str) -> Program:
        environment = {"CODEX_HOME": str(self.home), "AGENT_RELAY_NAME": "Bob", "OTHER": "x"}
        return Program(("codex", *words), str(self.project), environment)

    def doors(self, prepared: Prepared) -> list[str]:
        return [type(door).__name__ for door in CodexKit().doors(self.program(), self.place, prepared.facts, Heard())]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def told(words: list[str]) -> str | None:
    given = [word for word in words if word.startswith("developer_instructions=")]
    return json.loads(given[0].partition("=")[2]) if given else None


def test_it_has_a_server_of_its_own_and_is_introduced_with_its_start(desk: Desk) -> None:
    rest = ["--no-alt-screen", "-a", "on-request", "-s", "read-only", "-c", "model_verbosity=low", "fix the tests"]
    prepared = desk.prepare(*rest)
    words = Words(prepared)
    assert words.path == prepared.facts["server"]
    assert words.path.endswith(f"codex-{prepared.facts['mark']}.sock")
    assert words.server[:6] == ["codex", "app-server", "--listen", f"unix://{words.path}", "--config", "model_verbosity=low"]
    assert told(words.server) == f"{INTRODUCTION} [{prepared.facts['mark']}]" == told(words.plain)
    assert words.shown == ["codex", "--remote", f"unix://{words.path}", *rest]
    assert words.plain[-len(rest) :] == rest
    assert prepared.is_introduced
    assert prepared.notes == ()
    assert desk.doors(prepared) == [CodexServer.__name__, CodexQueue.__name__]


def test_what_it_runs_on_a_shared_server_keeps_its_own_name(desk: Desk) -> None:
    plain = Words(desk.prepare()).plain
    assert 'shell_environment_policy.set.AGENT_RELAY_NAME="Bob"' in plain
    assert not any("OTHER" in word for word in plain)


@pytest.mark.parametrize(
    "flags", [["-p", "work"], ["--cd", "sub"], ["--add-dir=../x"], ["--no-daemon"], ["--oss"], ["--strict-config"]]
)
def test_flags_that_mean_something_else_with_a_server(desk: Desk, flags: list[str]) -> None:
    prepared = desk.prepare(*flags)
    assert prepared.program.argv[0] == "codex"
    assert list(prepared.program.argv[-len(flags) :]) == flags
    assert "app-server" in prepared.notes[0]
    assert prepared.is_introduced
    assert desk.doors(prepared) == [CodexQueue.__name__]


@pytest.mark.parametrize(
    "words", [["exec", "do it"], ["login"], ["--version"], ["-m", "o3", "review"], ["--remote", "ws://far:1"]]
)
def test_what_is_no_conversation_is_left_as_it_is(desk: Desk, words: list[str]) -> None:
    prepared = desk.prepare(*words)
    assert prepared.program == desk.program(*words)
    assert not prepared.is_introduced
    assert prepared.notes
    assert desk.doors(prepared) == []


def test_a_conversation_that_is_taken_up(desk: Desk) -> None:
    prepared = desk.prepare("resume", "--last")
    words = Words(prepared)
    assert words.shown == ["codex", "resume", "--remote", f"unix://{words.path}", "--last"]
    assert told(words.server) is None
    assert not prepared.is_introduced
    with_permissions = desk.prepare("-s", "read-only", "resume", "--last")
    assert with_permissions.program.argv[0] == "codex"
    assert "other permissions" in with_permissions.notes[0]


@pytest.mark.parametrize("where", ["home/config.toml", "project/.codex/config.toml"])
def test_the_users_own_instructions_stay(desk: Desk, where: str) -> None:
    path = desk.folder / where
    path.parent.mkdir(exist_ok=True)
    path.write_text('developer_instructions = "mine"\n')
    prepared = desk.prepare()
    assert told(Words(prepared).server) is None
    assert not prepared.is_introduced
    assert "developer instructions" in prepared.notes[0]
    assert not desk.prepare("-c", 'developer_instructions="mine"').is_introduced


@pytest.mark.parametrize("flags", [[], ["-c", 'default_permissions="mine"']])
def test_the_users_own_permissions_stay(desk: Desk, flags: list[str]) -> None:
    if not flags:
        (desk.home / "config.toml").write_text('default_permissions = "mine"\n')
    prepared = desk.prepare(*flags)
    assert prepared.program.argv[0] == "codex"
    assert "permissions of your own" in prepared.notes[0]


def test_a_socket_too_deep_in_the_folders_is_put_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.terminal.doors.codex.short_socket_directory", lambda uid: str(tmp_path / "short"))
    deep = Desk(tmp_path)
    deep.place = AgentPlace("Bob", str(tmp_path / ("x" * 90)), "0123456789ab")
    (tmp_path / ("x" * 90)).mkdir()
    prepared = deep.prepare()
    assert prepared.facts["server"] == str(tmp_path / "short" / "0123456789ab" / f"Bob.codex-{prepared.facts['mark']}.sock")


def test_each_start_has_another_socket_and_removes_the_last_one(desk: Desk) -> None:
    """The server of the last start may end only now, and its keeper then removes its socket."""
    before = Path(desk.prepare().facts["server"])
    before.touch()
    after = Path(desk.prepare().facts["server"])
    assert before != after
    assert not before.exists()
