"""How Codex is started for its doors: what is added to the user's words, and when nothing is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_relay.terminal.doors.codex.hooks import VARIABLE, CodexStopHook, hook_flags
from agent_relay.terminal.doors.codex.launch import CodexLauncher
from agent_relay.terminal.doors.codex.queue import CodexQueue
from agent_relay.terminal.doors.codex.server import CodexServer
from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from tests.unit.terminal.doors.codex_hooked import TRUST
from tests.unit.terminal.doors.heard import Heard

INTRODUCTION = 'Agent Relay: you are Bob, and "quotes" and \\ stay.'


class Words:
    """The three commands that the launcher is given."""

    def __init__(self, prepared: PreparedStart) -> None:
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

    def prepare(self, *words: str, introduction: str = INTRODUCTION, asks_for_hooks: bool = False) -> PreparedStart:
        return CodexLauncher(asks_for_hooks=asks_for_hooks).prepare(self.program(*words), self.place, introduction)

    def trust(self) -> None:
        (self.home / "config.toml").write_text(TRUST)

    def program(self, *words: str) -> Program:
        environment = {"CODEX_HOME": str(self.home), "AGENT_RELAY_NAME": "Bob", "OTHER": "x"}
        return Program(("codex", *words), str(self.project), environment)

    def doors(self, prepared: PreparedStart) -> list[str]:
        return [type(door).__name__ for door in CodexLauncher().doors(self.program(), self.place, prepared.facts, Heard())]


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
    assert "app-server" in prepared.notes[0].whole
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
    assert "other permissions" in with_permissions.notes[0].whole


@pytest.mark.parametrize("where", ["home/config.toml", "project/.codex/config.toml"])
def test_the_users_own_instructions_stay(desk: Desk, where: str) -> None:
    path = desk.folder / where
    path.parent.mkdir(exist_ok=True)
    path.write_text('developer_instructions = "mine"\n')
    prepared = desk.prepare()
    assert told(Words(prepared).server) is None
    assert not prepared.is_introduced
    assert "developer instructions" in prepared.notes[0].whole
    assert not desk.prepare("-c", 'developer_instructions="mine"').is_introduced


@pytest.mark.parametrize("flags", [[], ["-c", 'default_permissions="mine"']])
def test_the_users_own_permissions_stay(desk: Desk, flags: list[str]) -> None:
    if not flags:
        (desk.home / "config.toml").write_text('default_permissions = "mine"\n')
    prepared = desk.prepare(*flags)
    assert prepared.program.argv[0] == "codex"
    assert "your own permissions" in prepared.notes[0].whole


# --- hooks -----------------------------------------------------------------------------------------------------------------


def hooks_of(prepared: PreparedStart) -> list[str]:
    return [word for word in prepared.program.argv if word.startswith("hooks.")]


def test_hooks_that_are_trusted_come_with_a_start_that_has_no_server(desk: Desk) -> None:
    desk.trust()
    prepared = desk.prepare("-p", "work")
    assert hooks_of(prepared) == hook_flags()[1::2]
    assert prepared.program.argv[-2:] == ("-p", "work")
    assert prepared.program.environment[VARIABLE] == str(desk.team / "codex-hook.sh")
    assert not any(VARIABLE in word for word in prepared.program.argv if not word.startswith("hooks."))
    assert len(prepared.notes) == 1
    assert desk.doors(prepared) == [CodexQueue.__name__, CodexStopHook.__name__]
    elsewhere = AgentPlace("Alice", str(desk.folder), "0123456789ab")
    assert hooks_of(CodexLauncher().prepare(desk.program("-p", "work"), elsewhere, "")) == hooks_of(prepared)


def test_they_need_no_introduction_to_find_the_conversation(desk: Desk) -> None:
    desk.trust()
    assert desk.doors(desk.prepare("--no-daemon", introduction="")) == [CodexQueue.__name__, CodexStopHook.__name__]


def test_nobody_is_asked_to_trust_them_who_did_not_want_that(desk: Desk) -> None:
    prepared = desk.prepare("-p", "work")
    assert hooks_of(prepared) == []
    assert VARIABLE not in prepared.program.environment
    assert "`wrap --codex-hooks`" in prepared.notes[-1].whole
    assert desk.doors(prepared) == [CodexQueue.__name__]


def test_who_wants_it_is_asked_and_told_so(desk: Desk) -> None:
    prepared = desk.prepare("-p", "work", asks_for_hooks=True)
    assert hooks_of(prepared) == hook_flags()[1::2]
    assert "“Trust all and continue”" in prepared.notes[-1].whole


@pytest.mark.parametrize("asks_for_hooks", [True, False])
def test_a_server_needs_none(desk: Desk, asks_for_hooks: bool) -> None:
    desk.trust()
    prepared = desk.prepare(asks_for_hooks=asks_for_hooks)
    assert hooks_of(prepared) == []
    assert VARIABLE not in prepared.program.environment
    assert ["app-server" in note.text for note in prepared.notes] == [True] * asks_for_hooks
    assert desk.doors(prepared) == [CodexServer.__name__, CodexQueue.__name__]


def test_the_users_own_hooks_of_the_start_stay(desk: Desk) -> None:
    desk.trust()
    own = ["-p", "work", "-c", 'hooks.Stop=[{hooks=[{type="command",command="say done"}]}]']
    prepared = desk.prepare(*own, asks_for_hooks=True)
    assert hooks_of(prepared) == own[-1:]
    assert "with your own hooks" in prepared.notes[-1].whole
    assert desk.doors(prepared) == [CodexQueue.__name__]


# --- the socket ------------------------------------------------------------------------------------------------------------


def test_a_socket_too_deep_in_the_folders_is_put_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent_relay.terminal.doors.codex.launch.short_socket_directory", lambda uid: str(tmp_path / "short"))
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
