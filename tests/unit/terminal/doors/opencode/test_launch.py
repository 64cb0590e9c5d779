"""Starting opencode: what is added to the user's command and environment, what is left out, and why."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from agent_relay.terminal.doors.launch import AgentPlace, PreparedStart, Program
from agent_relay.terminal.doors.opencode.events import IdMaker
from agent_relay.terminal.doors.opencode.launch import OpencodeLauncher
from agent_relay.terminal.doors.opencode.sessions import PLUGIN, OwnSessions, TerminalView, read_view, view_path
from tests.unit.terminal.doors.heard import Heard

INTRODUCTION = "Agent Relay: you are Bob."


def prepare(
    folder: Path, *words: str, introduction: str = INTRODUCTION, version: str = "", **environment: str
) -> PreparedStart:  # fmt: skip
    return OpencodeLauncher(lambda: version).prepare(
        Program(("opencode", *words), str(folder), environment), place(folder), introduction
    )


def place(folder: Path) -> AgentPlace:
    return AgentPlace("Bob", str(folder), "0123456789ab")


def doors(folder: Path, prepared: PreparedStart) -> list[str]:
    return [door.name for door in OpencodeLauncher().doors(prepared.program, place(folder), prepared.facts, Heard())]


def test_a_plain_start_is_given_a_port_a_password_a_view_and_the_introduction(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, "--model", "a/b", "project", LANG="C")
    program, facts = prepared.program, prepared.facts
    assert program.argv == ("opencode", "--port", facts["port"], "--hostname", "127.0.0.1", "--model", "a/b", "project")
    assert 1024 < int(facts["port"]) < 65_536
    assert program.environment["OPENCODE_SERVER_PASSWORD"] == facts["password"] != ""
    assert program.environment["LANG"] == "C"
    assert prepared.is_introduced
    assert prepared.notes == ()
    assert doors(tmp_path, prepared) == ["opencode server"]


def test_the_password_is_new_each_time_and_in_no_argument_or_file(tmp_path: Path) -> None:
    first, second = prepare(tmp_path), prepare(tmp_path)
    assert first.facts["password"] != second.facts["password"]
    assert second.facts["password"] not in " ".join(second.program.argv)
    assert all(second.facts["password"] not in path.read_text() for path in tmp_path.iterdir())


def test_the_introduction_is_an_instruction_beside_the_users(tmp_path: Path) -> None:
    settings = json.loads(prepare(tmp_path).program.environment["OPENCODE_CONFIG_CONTENT"])
    assert list(settings) == ["instructions"]
    [path] = settings["instructions"]
    assert Path(path).read_text() == INTRODUCTION
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_the_view_is_a_plugin_of_the_terminal_alone(tmp_path: Path) -> None:
    (tmp_path / "opencode-view.json").write_text('{"name":"session","session":"ses_old"}')
    settings = json.loads(Path(prepare(tmp_path).program.environment["OPENCODE_TUI_CONFIG"]).read_text())
    assert settings == {"plugin": [[str(PLUGIN), {"path": view_path(str(tmp_path))}]]}
    assert PLUGIN.exists()
    assert read_view(str(tmp_path)) is None


@pytest.mark.parametrize("words", [("run", "hello"), ("serve",), ("attach", "http://x"), ("--version",), ("-h",), ("--mini",)])
def test_what_is_no_session_in_this_terminal_is_left_alone(tmp_path: Path, words: tuple[str, ...]) -> None:
    prepared = prepare(tmp_path, *words, LANG="C")
    assert prepared.program == Program(("opencode", *words), str(tmp_path), {"LANG": "C"})
    assert len(prepared.notes) == 1
    assert not prepared.is_introduced
    assert doors(tmp_path, prepared) == []


def test_a_port_of_the_users_is_used_as_they_set_it_up(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, "--port=4097", "--hostname", "0.0.0.0")
    assert prepared.program.argv == ("opencode", "--port=4097", "--hostname", "0.0.0.0")
    assert "OPENCODE_SERVER_PASSWORD" not in prepared.program.environment
    assert (prepared.facts["port"], prepared.facts["password"]) == ("4097", "")
    assert doors(tmp_path, prepared) == ["opencode server"]


def test_a_password_of_the_users_stays(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, OPENCODE_SERVER_PASSWORD="theirs", OPENCODE_SERVER_USERNAME="ann")
    assert prepared.program.environment["OPENCODE_SERVER_PASSWORD"] == "theirs"
    assert (prepared.facts["username"], prepared.facts["password"]) == ("ann", "theirs")


@pytest.mark.parametrize("words", [("--port", "0"), ("--port", "many"), ("--port",), ("--mdns",), ("--hostname", "x")])
def test_an_address_that_cannot_be_known_is_left_to_the_user(tmp_path: Path, words: tuple[str, ...]) -> None:
    prepared = prepare(tmp_path, *words)
    assert prepared.program.argv == ("opencode", *words)
    assert len(prepared.notes) == 1
    assert doors(tmp_path, prepared) == []


@pytest.mark.parametrize(
    ("words", "environment"), [(("--pure",), {}), ((), {"OPENCODE_PURE": "1"}), ((), {"OPENCODE_TUI_CONFIG": "/their/own"})]
)
def test_without_plugins_there_is_no_view(tmp_path: Path, words: tuple[str, ...], environment: dict[str, str]) -> None:
    prepared = prepare(tmp_path, *words, **environment)
    assert prepared.program.environment.get("OPENCODE_TUI_CONFIG") == environment.get("OPENCODE_TUI_CONFIG")
    assert "view" not in prepared.facts
    assert "which session" in prepared.notes[0].whole
    assert doors(tmp_path, prepared) == ["opencode server"]


@pytest.mark.parametrize("version", ["1.17.0", "1.17.0-beta.2", "1.16.9", "0.15.31"])
def test_a_version_that_would_end_at_once_is_started_plainly_and_it_is_said_why(tmp_path: Path, version: str) -> None:
    prepared = prepare(tmp_path, version=version, LANG="C")
    assert prepared.program == Program(("opencode",), str(tmp_path), {"LANG": "C"})
    (note,) = prepared.notes
    assert (note.doors, version in note.text, "Update opencode" in note.mend) == (("opencode server",), True, True)
    assert doors(tmp_path, prepared) == []


@pytest.mark.parametrize("version", ["1.17.1", "1.17.19", "1.18.0", "2.0", "", "unknown"])
def test_later_versions_and_those_that_are_not_known_are_prepared(tmp_path: Path, version: str) -> None:
    assert doors(tmp_path, prepare(tmp_path, version=version)) == ["opencode server"]


def test_settings_of_the_users_are_not_replaced_by_the_introduction(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, OPENCODE_CONFIG_CONTENT='{"theme":"x"}')
    assert prepared.program.environment["OPENCODE_CONFIG_CONTENT"] == '{"theme":"x"}'
    assert not prepared.is_introduced
    assert not prepare(tmp_path, introduction="").is_introduced


def test_the_session_that_is_asked_for_is_known(tmp_path: Path) -> None:
    assert prepare(tmp_path, "-s", "ses_1").facts["session"] == "ses_1"
    assert prepare(tmp_path, "--session=ses_1").facts["session"] == "ses_1"
    assert prepare(tmp_path, "--session", "ses_1", "--fork").facts["session"] == ""
    assert prepare(tmp_path, "--continue").facts["session"] == ""


# --- its files and ids ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "view"),
    [
        ('{"name":"home","session":""}', TerminalView("home")),
        ('{"name":"session","session":"ses_1"}', TerminalView("session", "ses_1")),
        ('{"name":"session","session":"dummy"}', TerminalView("session")),
        ('{"name":"session","session":"ses_../../x"}', TerminalView("session")),
        ('{"name":5}', TerminalView("")),
        ("nonsense", None),
    ],
)
def test_a_view_is_read_with_care(tmp_path: Path, text: str, view: TerminalView | None) -> None:
    Path(view_path(str(tmp_path))).write_text(text)
    assert read_view(str(tmp_path)) == view


def test_ids_grow_and_are_known_again_by_this_run_alone() -> None:
    maker = IdMaker("secret")
    first, second, third = maker.make("u1", 1_794_742_500_228), maker.make("u2", 1_794_742_500_228), maker.make("u3", 5)
    assert first.message < second.message < third.message
    assert first.message.startswith("msg_1defd3b84000")  # the time as opencode itself writes it
    assert len(first.message) == len("msg_1defd3b84001NRWU700sPQORvL")
    assert first.part == first.message.replace("msg_", "prt_")
    assert first.message.endswith(IdMaker("secret").tail("u1"))
    assert IdMaker("another").tail("u1") != maker.tail("u1") != maker.tail("u2")


def test_what_is_known_outlives_the_wrapper(tmp_path: Path) -> None:
    known = OwnSessions(str(tmp_path), 1_000)
    assert (known.latest, known.since_ms) == ([], 1_000)
    for session in ("ses_1", "ses_2", "ses_1"):
        known.add(session)
    known.note_heard(100_000)
    later = OwnSessions(str(tmp_path), 1_000)
    assert (later.latest, later.since_ms) == (["ses_2", "ses_1"], 40_000)
    prepare(tmp_path)
    assert OwnSessions(str(tmp_path), 1_000).latest == []
    (tmp_path / "opencode-known.json").write_text("{")
    assert OwnSessions(str(tmp_path), 7).since_ms == 7
