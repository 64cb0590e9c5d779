"""`doctor`: every finding says what is there, and what is wrong says how to mend it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from agent_relay.cli.doctor import places
from agent_relay.cli.doctor.clis import check_cli, check_profiles
from agent_relay.cli.doctor.findings import Finding, Verdict
from agent_relay.cli.doctor.machine import check_backends, check_machine
from agent_relay.cli.doctor.places import check_places
from agent_relay.cli.doctor.relay import check_events, check_relay
from agent_relay.cli.main import main
from agent_relay.sdk.locate import Place, locate
from agent_relay.terminal.profiles import tried_releases
from agent_relay.terminal.profiles.profile import load_profiles
from agent_relay.terminal.profiles.tried_releases import SCENES, YES, TriedRelease
from agent_relay.testing.daemon import DaemonProcess
from tests.unit.terminal.doors.codex_hooked import TRUST


def place_of(folder: Path) -> Place:
    return locate(start=folder, state_dir=folder / "state")


def program(folder: Path, name: str, says: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{says}\n")
    path.chmod(0o700)
    return str(path)


def find(findings: list[Finding], about: str) -> Finding:
    return next(finding for finding in findings if finding.about == about)


def test_a_machine_that_has_everything(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    found = list(check_machine(place_of(tmp_path), {"TERM": "xterm-256color"}))
    assert find(found, "tmux").verdict is Verdict.OK
    assert find(found, "state").verdict is Verdict.OK


def test_a_state_directory_that_others_can_read_is_bad_and_says_how_to_mend_it(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    os.chmod(tmp_path / "state", 0o755)
    found = next(each for each in check_machine(place_of(tmp_path), {"TERM": "xterm"}) if each.verdict is Verdict.BAD)
    assert found.mend == f"chmod 700 {tmp_path / 'state'}"
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o755  # nothing is changed


def test_a_state_directory_that_is_a_file_is_bad(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    assert [each.about for each in check_machine(place_of(tmp_path), {}) if each.verdict is Verdict.BAD] == ["state"]


def test_tmux_that_is_missing_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = find(list(check_machine(place_of(tmp_path), {"TERM": "xterm"})), "tmux")
    assert found.verdict is Verdict.NOTE
    assert "tmux 3.0" in found.mend


@pytest.mark.parametrize(("term", "verdict"), [("dumb", Verdict.NOTE), ("", Verdict.NOTE), ("xterm", Verdict.OK)])
def test_the_terminal(tmp_path: Path, term: str, verdict: Verdict) -> None:
    assert find(list(check_machine(place_of(tmp_path), {"TERM": term})), "terminal").verdict is verdict


def test_a_socket_that_a_daemon_left_behind(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    os.makedirs(os.path.dirname(place.socket), exist_ok=True)
    Path(place.socket).write_text("")
    (found,) = check_relay(place)
    assert (found.verdict, found.mend) == (Verdict.NOTE, "agent-relay up")


def test_a_daemon_that_answers_and_the_doors_of_its_agents() -> None:
    with DaemonProcess() as daemon, daemon.connect_sync("Bob", control=True) as bob:
        shut = {"door": "codex app-server", "reason": "You started Codex with -p.", "mend": "Start it without -p."}
        bob.report("agent.state", state="idle", door="codex queue", unusedDoors=[shut])
        bob.agents()  # answered after the report was heard
        place = locate(socket=daemon.socket, state_dir=daemon.state_dir)
        found = list(check_relay(place))
        assert find(found, "daemon").verdict is Verdict.OK
        used, unused = [each for each in found if each.about == "Bob"]
        assert (used.verdict, used.text) == (Verdict.NOTE, "reached by codex queue")
        assert unused.text == "codex app-server is not used: You started Codex with -p."
        assert unused.mend == "Start it without -p."
        bob.report("agent.state", state="idle", door="codex app-server")
        bob.agents()
        assert find(list(check_relay(place)), "Bob").verdict is Verdict.OK


@pytest.mark.parametrize(
    ("error", "is_in_cluster", "mend"),
    [
        ("[Errno 28] No space left on device", False, "free some space on that disk"),
        ("[Errno 28] No space left on device", True, "free some space on that disk"),
        ("[Errno 5] Input/output error", False, "check that disk"),
        ("NATS has no majority of its servers", True, "see below what is wrong with the cluster"),
    ],
)
def test_events_that_cannot_be_written_are_mended_where_the_fault_is(error: str, is_in_cluster: bool, mend: str) -> None:
    (found,) = check_events({"error": error}, is_in_cluster=is_in_cluster)
    assert (found.verdict, found.mend) == (Verdict.BAD, mend)


def test_versions_of_the_clis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claude = load_profiles()["claude"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert check_cli(claude).verdict is Verdict.ABSENT
    program(tmp_path, "claude", f"echo '{claude.recorded} (Claude Code)'")
    assert check_cli(claude).verdict is Verdict.OK
    program(tmp_path, "claude", "echo 99.0.1")
    found = check_cli(claude)
    assert (found.verdict, "on trial" in found.text) == (Verdict.OK, True)
    strict = check_cli(claude, "known")
    assert (strict.verdict, "messages are typed" in strict.text) == (Verdict.NOTE, True)
    assert '`doors = "probe"`' in strict.mend
    assert "doors are off" in check_cli(claude, "off").text
    program(tmp_path, "claude", "exit 3")
    assert check_cli(claude).verdict is Verdict.NOTE


def test_what_is_known_of_the_installed_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opencode = load_profiles()["opencode"]
    door, series = opencode.doors[0], dict.fromkeys(SCENES, YES)
    tried = {
        "opencode": {
            "7.0.1": TriedRelease("2026-11-19", door, scenes=series),
            "7.0.2": TriedRelease("2026-11-19", door, scenes={**series, "draft": "the draft was sent"}),
        }
    }
    monkeypatch.setattr(tried_releases, "load_tried", lambda: tried)
    monkeypatch.setenv("PATH", str(tmp_path))
    for version, said in (
        ("7.0.1", "tried on 2026-11-19: all went well"),
        ("7.0.2", "tried on 2026-11-19: draft did not go as it should"),
        ("7.0.3", "this release was not tried, the newest that was is 7.0.2"),
    ):
        program(tmp_path, "opencode", f"echo {version}")
        found = check_cli(opencode)
        assert f"({said})" in found.text
        assert ("on trial" in found.text) is (version != "7.0.1")
        assert (check_cli(opencode, "known").verdict is Verdict.OK) is (version == "7.0.1")


def test_a_version_that_its_door_cannot_be_prepared_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opencode = load_profiles()["opencode"]
    monkeypatch.setenv("PATH", str(tmp_path))
    program(tmp_path, "opencode", "echo 1.17.0")
    found = check_cli(opencode)
    assert (found.verdict, "messages are typed: opencode 1.17.0 ends at once" in found.text) == (Verdict.NOTE, True)
    assert found.mend.startswith("Update opencode")


def test_whether_codex_is_told_to_trust_the_relays_hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codex = load_profiles()["codex"]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    program(tmp_path, "codex", f"echo codex-cli {codex.recorded}")
    found = check_cli(codex)
    assert (found.verdict, "`wrap --codex-hooks` asks for it" in found.text) == (Verdict.OK, True)
    (tmp_path / "config.toml").write_text(TRUST)
    assert check_cli(codex).text.endswith("the relay's hooks are approved")


def test_the_command_ends_with_1_when_something_is_bad(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "state").write_text("")
    assert main(["doctor", "--json", "--state-dir", str(tmp_path / "state")]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {"about", "verdict", "text", "mend"} <= set(found[0])


def test_the_backends_really_run_a_program() -> None:
    found = {finding.about: finding for finding in check_backends()}
    assert {about: finding.verdict for about, finding in found.items()} == {"tmux": Verdict.OK, "pty": Verdict.OK}


def test_a_tmux_that_runs_nothing_is_said_so_and_agents_have_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "tmux", 'case "$1" in -V) echo tmux 3.4;; *) echo no space left >&2; exit 1;; esac')
    monkeypatch.setenv("PATH", str(tmp_path))
    found = {finding.about: finding for finding in check_backends()}
    assert (found["tmux"].verdict, found["pty"].verdict) == (Verdict.NOTE, Verdict.OK)
    assert "cannot run a program: no space left" in found["tmux"].text
    assert "--backend pty" in found["tmux"].mend


def test_without_any_terminal_nothing_works(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail() -> tuple[int, int]:
        raise OSError(28, "out of pty devices")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("pty.openpty", fail)
    assert [finding.verdict for finding in check_backends()] == [Verdict.BAD, Verdict.BAD]


def test_each_place_is_written_to_and_left_as_it_was(tmp_path: Path) -> None:
    place = place_of(tmp_path)
    (tmp_path / "state").mkdir(mode=0o700)
    os.makedirs(os.path.dirname(place.socket), exist_ok=True)
    assert {finding.verdict for finding in check_places(place)} == {Verdict.OK}
    assert list((tmp_path / "state").iterdir()) == []


@pytest.mark.parametrize(("call", "about"), [("os.fsync", "state"), ("socket.socket.bind", "socket"), ("os.mkdir", "state")])
def test_a_place_that_cannot_be_written_to_is_bad(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, about: str
) -> None:  # fmt: skip
    place = place_of(tmp_path)
    if call != "os.mkdir":
        (tmp_path / "state").mkdir(mode=0o700)
        os.makedirs(os.path.dirname(place.socket), exist_ok=True)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    if call == "socket.socket.bind":
        monkeypatch.setattr(places, "socket", Sockets())
    else:
        monkeypatch.setattr(call, fail)
    bad = [finding for finding in check_places(place) if finding.verdict is Verdict.BAD]
    assert bad[0].about == about
    assert "No space left on device" in bad[0].text
    assert not list(tmp_path.glob("state/*"))


class Sockets:
    """In place of the module: none can be bound."""

    AF_UNIX = 1

    def socket(self, _family: int) -> Sockets:
        return self

    def bind(self, _path: str) -> None:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        pass


def test_a_broken_profile_of_ones_own_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "agent-relay" / "profiles"
    folder.mkdir(parents=True)
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    place = locate(tmp_path, environ=environ)
    assert list(check_profiles(place, environ)) == []
    (folder / "chatty.toml").write_text("name = 'chatty'\nwrong = 1\n")
    (found,) = check_profiles(place, environ)
    assert (found.about, found.verdict) == ("profile", Verdict.BAD)
    assert f"{folder}/chatty.toml:" in found.text
    assert "profile test" in found.mend
