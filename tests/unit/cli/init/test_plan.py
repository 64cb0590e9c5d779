"""Whole files: planned, written and restored byte for byte, whatever is in them."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.cli.init.files import Shelf
from agent_relay.cli.init.plan import Plan, carry_out, make_plan
from agent_relay.cli.init.targets import CLIS, find_present, find_targets

ANY_FILE = st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode("utf-8", "replace")) | st.sampled_from(
    [b"", b"{}", b"{ }", b'{"mcpServers":{}}', b'{"mcp": {}, // c\r\n}', b"\xef\xbb\xbf{\r\n}\r\n", b"extensions: {}",
     b"read: a.md", b"a = 1", b"a: 1", b"# Title\r\n\r\ntext", b"\n\n\n", b"[mcp_servers]\n"],
)  # fmt: skip
WHERE = ("CODEX_HOME", "XDG_CONFIG_HOME", "CONTINUE_GLOBAL_DIR")


class Place:
    def __init__(self, folder: Path) -> None:
        self.root, self.home = folder / "project", folder / "home"
        self.root.mkdir()
        self.home.mkdir()
        self.shelf = Shelf(str(folder / "relay"))

    def plan(self, *clis: str, remove: bool = False) -> Plan:
        return make_plan(list(clis or CLIS), str(self.root), self.shelf, remove=remove)

    def run(self, *clis: str, remove: bool = False) -> Plan:
        plan = self.plan(*clis, remove=remove)
        for step in plan.steps:
            carry_out(step, self.shelf)
        return plan

    def look(self) -> dict[str, bytes]:
        found = [path for folder in (self.root, self.home) for path in folder.rglob("*")]
        return {str(path): path.read_bytes() if path.is_file() else b"a folder" for path in found}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    found = Place(tmp_path)
    monkeypatch.setenv("HOME", str(found.home))
    for name in WHERE:
        monkeypatch.delenv(name, raising=False)
    return found


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_everything_is_made_and_nothing_is_left(place: Place) -> None:
    config = write(place.home / ".continue" / "config.yaml", b"name: Mine\nversion: 1.0.0\nschema: v1\n")
    before = place.look()
    assert place.run().problems == []
    assert {".mcp.json", "CLAUDE.md", "AGENTS.md", "GEMINI.md", "opencode.json", ".aider.conf.yml"} <= set(os.listdir(place.root))
    assert (place.home / ".codex" / "config.toml").exists()
    assert b"agent-relay" in config.read_bytes()
    assert {path.relative_to(place.home).as_posix() for path in place.home.rglob("*") if path.is_file()} == {
        ".codex/config.toml", ".config/goose/config.yaml", ".continue/config.yaml",
    }  # fmt: skip
    assert place.run().changes == []
    place.run(remove=True)
    assert place.look() == before
    assert place.run(remove=True).changes == []


def test_a_configuration_that_would_not_be_whole_is_not_made(place: Place) -> None:
    plan = place.run("continue")
    assert "run `cn` once first" in plan.problems[0]
    assert not (place.home / ".continue").exists()
    assert "relay_send" in (place.root / "AGENTS.md").read_text()


@given(st.sampled_from(CLIS), st.lists(ANY_FILE, min_size=2, max_size=2), st.sampled_from([0o644, 0o600, 0o755]))
def test_any_files_come_back_byte_for_byte(cli: str, contents: list[bytes], mode: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        place = Place(Path(folder))
        patch.setenv("HOME", str(place.home))
        for name in WHERE:
            patch.delenv(name, raising=False)
        for target, content in zip(find_targets(cli, str(place.root)), contents, strict=True):
            write(Path(target.path), content).chmod(mode)
        before = place.look()
        plan = place.run(cli)
        assert len(plan.changes) + len(plan.problems) == 2 or any(b"agent-relay" in content for content in contents)
        for step in plan.changes:
            assert stat.S_IMODE(os.stat(step.state.path).st_mode) == mode
        assert place.run(cli).changes == []
        place.run(cli, remove=True)
        assert place.look() == before


def test_a_file_that_two_share_stays_for_the_other(place: Place) -> None:
    place.run("codex", "opencode")
    place.run("codex", remove=True)
    assert (place.root / "AGENTS.md").exists()
    place.run("opencode", remove=True)
    assert not (place.root / "AGENTS.md").exists()


def test_the_entry_of_another_project_stays(place: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    place.run("codex")
    for step in make_plan(["codex"], str(other), place.shelf, remove=False).steps:
        carry_out(step, place.shelf)
    place.run("codex", remove=True)
    assert (place.home / ".codex" / "config.toml").exists()
    for step in make_plan(["codex"], str(other), place.shelf, remove=True).steps:
        carry_out(step, place.shelf)
    assert place.look() == {}


def test_what_a_person_changed_since_stays(place: Place) -> None:
    page = write(place.root / "CLAUDE.md", b"# Mine\n")
    place.run("claude")
    page.write_bytes(page.read_bytes() + b"And this.\n")
    (place.root / ".mcp.json").write_text(
        (place.root / ".mcp.json").read_text().replace('"mcpServers": {', '"mcpServers": {"own": {},')
    )
    place.run("claude", remove=True)
    assert page.read_bytes() == b"# Mine\nAnd this.\n"
    assert '"own": {}' in (place.root / ".mcp.json").read_text()
    assert "agent-relay" not in (place.root / ".mcp.json").read_text()


def test_a_lost_backup_is_done_without(place: Place, tmp_path: Path) -> None:
    page = write(place.root / "CLAUDE.md", b"# Mine\n")
    place.run("claude")
    for path in (tmp_path / "relay" / "init").iterdir():
        path.unlink()
    place.run("claude", remove=True)
    assert page.read_bytes() == b"# Mine\n"


def test_links_inside_the_project_are_followed_and_stay_links(place: Place) -> None:
    page = write(place.root / "AGENTS.md", b"# Ours\n")
    (place.root / "CLAUDE.md").symlink_to("AGENTS.md")
    plan = place.run("claude", "codex")
    assert len([step for step in plan.changes if step.state.real == str(page)]) == 1
    assert (place.root / "CLAUDE.md").is_symlink()
    assert page.read_bytes().count(b"agent-relay: begin") == 1
    place.run("claude", "codex", remove=True)
    assert page.read_bytes() == b"# Ours\n"
    assert (place.root / "CLAUDE.md").is_symlink()


def test_links_out_of_the_project_and_into_nothing_are_refused(place: Place) -> None:
    secret = write(place.home / ".profile", b"export X=1\n")
    (place.root / "CLAUDE.md").symlink_to(secret)
    (place.root / ".mcp.json").symlink_to("nowhere.json")
    plan = place.run("claude")
    assert plan.changes == []
    assert "leads out of the project" in plan.problems[1]
    assert "where there is nothing" in plan.problems[0]
    assert secret.read_bytes() == b"export X=1\n"


def test_a_persons_own_file_may_be_a_link(place: Place) -> None:
    real = write(place.home / "dotfiles" / "codex.toml", b"a = 1\n")
    (place.home / ".codex").mkdir()
    (place.home / ".codex" / "config.toml").symlink_to(real)
    place.run("codex")
    assert b"mcp_servers.agent-relay" in real.read_bytes()
    assert (place.home / ".codex" / "config.toml").is_symlink()


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        (b"{}", 0o444, "read-only"),
        (b"{", 0o644, "line 1"),
        (b"\xff\xfe{\0}\0", 0o644, "UTF-8"),
        (b"[]", 0o644, "not a JSON object"),
    ],
)
def test_files_that_cannot_be_edited_are_left_alone_and_the_rest_is_done(
    place: Place, content: bytes, mode: int, says: str
) -> None:  # fmt: skip
    file = write(place.root / ".mcp.json", content)
    file.chmod(mode)
    plan = place.run("claude")
    assert says in plan.problems[0]
    assert file.read_bytes() == content
    assert b"agent-relay" in (place.root / "CLAUDE.md").read_bytes()


def test_a_file_that_was_changed_meanwhile_is_left_alone(place: Place) -> None:
    page = write(place.root / "CLAUDE.md", b"# Mine\n")
    plan = place.plan("claude")
    page.write_bytes(b"# Mine, newer\n")
    step = next(step for step in plan.steps if step.state.real == str(page))
    with pytest.raises(Exception, match="changed meanwhile"):
        carry_out(step, place.shelf)
    assert page.read_bytes() == b"# Mine, newer\n"


def test_each_is_written_where_its_own_variables_say(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in WHERE:
        monkeypatch.setenv(name, str(tmp_path / name))
    found = [find_targets(cli, str(place.root))[0].path for cli in ("codex", "goose", "continue")]
    assert [Path(path).relative_to(tmp_path).as_posix() for path in found] == [
        "CODEX_HOME/config.toml", "XDG_CONFIG_HOME/goose/config.yaml", "CONTINUE_GLOBAL_DIR/config.yaml",
    ]  # fmt: skip


def test_claude_and_copilot_share_one_entry(place: Place) -> None:
    place.run("claude", "copilot")
    assert (place.root / ".mcp.json").read_text().count('"agent-relay": {') == 1
    place.run("claude", remove=True)
    assert (place.root / ".mcp.json").exists()
    place.run("copilot", remove=True)
    assert place.look() == {}


@pytest.mark.parametrize("name", ["kilo.jsonc", ".kilo/kilo.jsonc", ".kilo/kilo.json", "kilo.json"])
def test_kilo_is_given_the_file_that_the_project_has(place: Place, name: str) -> None:
    file = write(place.root / name, b'{ // ours\n  "autoupdate": false,\n}\n')
    place.run("kilo")
    assert b'"agent-relay"' in file.read_bytes()
    place.run("kilo", remove=True)
    assert file.read_bytes() == b'{ // ours\n  "autoupdate": false,\n}\n'


def test_present_ones_are_found(place: Place, tmp_path: Path) -> None:
    write(place.root / "opencode.jsonc", b"{}")
    program = write(tmp_path / "bin" / "gemini", b"#!/bin/sh\n")
    program.chmod(0o755)
    assert find_present(str(place.root), {"PATH": str(program.parent)}) == ["gemini", "opencode"]


def test_codex_and_gemini_are_told_what_to_pass_on(place: Place) -> None:
    place.run("codex", "gemini")
    for path in (place.home / ".codex" / "config.toml", place.root / ".gemini" / "settings.json"):
        for name in ("AGENT_RELAY_NAME", "AGENT_RELAY_TOKEN", "AGENT_RELAY_OUTBOX", "AGENT_RELAY_SOCKET"):
            assert name in path.read_text()
